// expect: a lambda that captures cannot travel to another process
#include "common.hpp"

int main() {
  long limit = 3;
  session().range(0, 9).map([&](std::int64_t n) { return n < limit; }).count();
}
