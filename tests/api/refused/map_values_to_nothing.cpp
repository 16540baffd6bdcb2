// expect: this function returns nothing where a part of a record is expected
#include "common.hpp"

int main() {
  session().range(0, 9).key_by([](std::int64_t n) { return n; }).map_values([](std::int64_t) {}).count();
}
