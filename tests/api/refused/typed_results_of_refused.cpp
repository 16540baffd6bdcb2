// expect: this function cannot be called with the captures
#include "common.hpp"

std::uint64_t size_of(troupe::dataset<std::int64_t> numbers) { return numbers.count(); }

int main() {
  auto numbers = session().range(0, 9);
  std::vector<std::int64_t> all = numbers.map([](std::string& n) { return n.size(); }).collect();
  return static_cast<int>(all.size() + size_of(numbers));
}
