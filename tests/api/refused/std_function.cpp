// expect: a std::function cannot travel to another process
#include "common.hpp"

int main() {
  std::function<bool(std::int64_t)> even = [](std::int64_t n) { return n % 2 == 0; };
  session().range(0, 9).filter(even).count();
}
