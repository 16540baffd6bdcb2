// expect: join needs the same type of key on both sides
#include "common.hpp"

int main() {
  auto left = session().range(0, 9).map([](std::int64_t n) { return std::pair{n, n}; });
  auto right = session().range(0, 9).map([](std::int64_t n) { return std::pair{static_cast<int>(n), n}; });
  left.join(right).collect();
}
