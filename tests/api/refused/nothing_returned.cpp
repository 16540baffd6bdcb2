// expect: this function returns nothing where a record is expected
#include "common.hpp"

int main() {
  session().range(0, 9).map([](std::int64_t) {}).count();
}
