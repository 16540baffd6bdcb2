// expect: this function returns nothing where a part of a record is expected
#include "common.hpp"

int main() {
  session().range(0, 9).sort_by([](std::int64_t) {}).count();
}
