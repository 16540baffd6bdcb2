#pragma once

/// Names of what block stores hold.

#include <compare>
#include <cstdint>
#include <string>

#include <troupe/runtime/ids.hpp>

namespace troupe {

/// Numbers are wire format.
enum class block_kind : std::uint8_t {
  output = 0,    ///< of a task attempt: its map output, one bucket per reduce task, or its result, a single bucket
  cached = 1,    ///< a partition of a dataset that is kept for later jobs; a single bucket
  broadcast = 2, ///< a value of a program's, in the program's own process; a single bucket
};

/// What produced a block set; buckets are numbered within.
struct block_key {
  block_kind kind = block_kind::output;
  std::uint64_t source = 0; ///< number of the stage, of what is kept of a dataset (`cache_id`), or of the broadcast
  partition_index partition = 0;
  attempt_number attempt = 0; ///< of outputs

  auto operator<=>(const block_key&) const = default;
};
constexpr block_key output_key(stage_id stage, partition_index partition, attempt_number attempt) noexcept {
  return {block_kind::output, stage.value, partition, attempt};
}
constexpr block_key cached_key(cache_id cache, partition_index partition) noexcept {
  return {block_kind::cached, cache.value, partition, 0};
}
/// `stage 3 partition 7 attempt 0`.
std::string to_string(const block_key& key);

} // namespace troupe
