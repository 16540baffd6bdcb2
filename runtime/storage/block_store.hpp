#pragma once

/// Blocks of one executor: map outputs, large results and cached partitions, where they were made. Safe from any
/// thread.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/result.hpp>
#include <troupe/runtime/scheduling/reports.hpp>
#include <troupe/runtime/storage/block_directories.hpp>
#include <troupe/runtime/storage/block_file.hpp>
#include <troupe/runtime/storage/bucket_writer.hpp>

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
  std::uint64_t source = 0; ///< number of the stage, of the dataset, or of the broadcast
  partition_index partition = 0;
  attempt_number attempt = 0; ///< of outputs

  auto operator<=>(const block_key&) const = default;
};
constexpr block_key output_key(stage_id stage, partition_index partition, attempt_number attempt) noexcept {
  return {block_kind::output, stage.value, partition, attempt};
}
/// `stage 3 partition 7 attempt 0`.
std::string to_string(const block_key& key);

/// The pages of one bucket, one after another: in memory in pieces of whole pages, or a piece of a file.
struct block_view {
  std::shared_ptr<const void> owner;       ///< keeps the memory, or the file, and what was taken of a budget for it
  std::span<const std::string_view> parts; ///< in memory
  file_piece piece;                        ///< else this, where it is not empty
  std::uint64_t size = 0;                  ///< bytes of pages

  bool in_file() const noexcept { return piece.file != nullptr; }
};

/// Where a block may be kept.
enum class storage_level : std::uint8_t {
  memory,          ///< nowhere else; where there is no room for it, it is not kept
  memory_and_disk, ///< in a file where there is no room for it, or no longer
  disk,
};

class block_store {
public:
  static constexpr std::uint64_t never_shared = ~std::uint64_t{0};
  static constexpr std::uint64_t unlimited = ~std::uint64_t{0};
  struct options {
    std::vector<std::string> directories;      ///< for files; created by the caller, mode 0700
    std::uint64_t memory_limit = 256ull << 20; ///< bytes kept in memory
    /// Sets in memory of at least so many bytes lie in files without a name, which other processes of this machine can
    /// be given; never: none does.
    std::uint64_t shared_from = never_shared;
    std::uint64_t max_descriptors = unlimited; ///< for those, and for sets that others have written
  };
  explicit block_store(options opts);
  ~block_store(); ///< removes its files
  block_store(const block_store&) = delete;
  block_store& operator=(const block_store&) = delete;

  /// Stores one set: in memory, where there is room or cached blocks of others can make some, those that were used
  /// longest ago first; else in a file. Errors, upon which nothing is stored:
  /// invalid_argument for a key that is there already; io where a file cannot be written; overloaded where there is no
  /// room in memory for what is kept nowhere else.
  result<void> put(const block_key& key, block_content content, storage_level level = storage_level::memory_and_disk);
  /// One bucket; error not_found names the key, io where its file is not what it was.
  result<block_view> get(const block_key& key, std::uint32_t bucket) const;
  /// A whole set as a block file on disk, for who takes it over; it is moved there first where it is in memory. Errors
  /// not_found and io.
  result<block_view> get_whole(const block_key& key);
  /// Stores a set that somebody else has written. Errors: invalid_argument for a key that is there already, overloaded
  /// where that would take too many descriptors.
  result<void> adopt(const block_key& key, std::unique_ptr<block_file> file);
  /// Drops all sets of a stage, or one set. Views that were handed out stay valid.
  void remove(stage_id stage);
  void remove(const block_key& key);
  /// Bytes of all sets, in memory and in files; and of those in memory, views of dropped ones included.
  std::uint64_t bytes() const;
  std::uint64_t bytes_in_memory() const noexcept;
  /// Its outputs.
  std::vector<held_block> held() const;
  /// Cached blocks that had to go since the last call.
  std::vector<block_key> take_evicted();

  /// Where its files lie; for those that spill before they store.
  block_directories& directories() noexcept;

private:
  struct impl;
  const std::unique_ptr<impl> impl_;
};

} // namespace troupe
