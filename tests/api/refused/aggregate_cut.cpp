// expect: is more than zero
#include "common.hpp"

int main() {
  session()
      .range(0, 9)
      .key_by([](std::int64_t n) { return n % 2; })
      .aggregate_by_key(
          0, [](double sum, std::int64_t n) { return sum + 0.5 * static_cast<double>(n); }, std::plus<>{})
      .collect();
}
