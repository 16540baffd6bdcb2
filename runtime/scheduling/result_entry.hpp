#pragma once

/// How a succeeded attempt's entry in `outcome_batch::results` is written: one byte that says what it is, then the
/// value itself, or the size of what stayed on the executor. Entries of other attempts are empty.

#include <cstdint>
#include <string>
#include <string_view>

#include <troupe/runtime/result.hpp>

namespace troupe {

/// Numbers are wire format.
enum class result_kind : std::uint8_t {
  inline_value = 0, ///< the value follows
  block = 1,        ///< a block of the attempt's own; u64 size follows
  map_output = 2,   ///< u64 size of all buckets, then those of each (see bucket_sizes) or nothing
  kept_output = 3,  ///< the same, and it is kept beyond the job
  files = 4,        ///< of a command: under names of their own, where others of its job read them; u64 size follows
};

struct result_entry {
  result_kind kind = result_kind::inline_value;
  std::string_view value;   ///< inline values only; a view of what was decoded
  std::uint64_t bytes = 0;  ///< size of the value, wherever it is
  std::string_view buckets; ///< of a map output: encoded sizes; a view of what was decoded

  bool is_map_output() const noexcept { return kind == result_kind::map_output || kind == result_kind::kept_output; }
};

/// Appends an inline value's entry.
void append_inline_entry(std::string& to, std::string_view value);
/// Appends the entry of a block or map output of `bytes` bytes.
/// @param buckets of a map output: encoded sizes of its buckets
void append_block_entry(std::string& to, result_kind kind, std::uint64_t bytes, std::string_view buckets = {});
/// Reads an entry; error malformed for anything that the two functions above do not write.
result<result_entry> decode_result_entry(std::string_view entry);

} // namespace troupe
