#pragma once

#include <cstdint>

namespace troupe::testing {

/// splitmix64: tiny, and the same everywhere.
class dice {
public:
  explicit dice(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    auto z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  std::uint64_t below(std::uint64_t n) { return next() % n; }
  std::uint64_t between(std::uint64_t low, std::uint64_t high) { return low + below(high - low + 1); }
  bool once_in(std::uint64_t n) { return below(n) == 0; }

private:
  std::uint64_t state_;
};

} // namespace troupe::testing
