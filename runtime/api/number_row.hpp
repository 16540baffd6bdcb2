#pragma once

/// Numbers for drawing by lot that are the same in every process: a task that runs again draws the same.

#include <cstdint>

#include <troupe/runtime/api/stable_hash.hpp>

namespace troupe::detail {

/// SplitMix64. Not for secrets. A plain value.
class number_row {
public:
  explicit constexpr number_row(std::uint64_t seed) noexcept : state_(seed) {}
  constexpr std::uint64_t next() noexcept { return stable_hash_end(state_ += 0x9e3779b97f4a7c15); }

private:
  std::uint64_t state_;
};

} // namespace troupe::detail
