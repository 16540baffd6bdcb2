// expect: operations by key need records of type std::pair<key, value>
#include "common.hpp"

int main() {
  auto left = session().range(0, 9).map([](std::int64_t n) { return std::pair{n, n}; });
  left.join(session().range(0, 9)).collect();
}
