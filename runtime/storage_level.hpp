#pragma once

/// Where a block may be kept.

#include <cstdint>
#include <string_view>

namespace troupe {

/// Numbers are wire format.
enum class storage_level : std::uint8_t {
  memory = 0,          ///< nowhere else; where there is no room for it, it is not kept
  memory_and_disk = 1, ///< in a file where there is no room for it, or no longer
  disk = 2,
};
constexpr bool is_storage_level(std::uint64_t number) noexcept { return number <= 2; }

} // namespace troupe
