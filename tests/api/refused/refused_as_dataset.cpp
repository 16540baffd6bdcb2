// expect: this function cannot be called with the captures
#include "common.hpp"

int main() {
  const troupe::dataset<std::int64_t> numbers = session().range(0, 9).map([](std::string& n) { return n.size(); });
  return static_cast<int>(numbers.union_with(numbers).count());
}
