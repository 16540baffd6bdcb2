// expect: must return a container of records, or take a last parameter troupe::emitter<U>&
#include "common.hpp"

int main() {
  session().range(0, 9).flat_map([](std::int64_t n) { return n; }).filter([](std::int64_t n) { return n > 0; }).count();
}
