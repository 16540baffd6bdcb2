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
#include <troupe/runtime/storage/block_key.hpp>
#include <troupe/runtime/storage/bucket_writer.hpp>
#include <troupe/runtime/storage_level.hpp>

namespace troupe {

/// The pages of one bucket, one after another: in memory in pieces of whole pages, or a piece of a file.
struct block_view {
  std::shared_ptr<const void> owner;       ///< keeps the memory, or the file, and what was taken of a budget for it
  std::span<const std::string_view> parts; ///< in memory
  file_piece piece;                        ///< else this, where it is not empty
  std::uint64_t size = 0;                  ///< bytes of pages

  bool in_file() const noexcept { return piece.file != nullptr; }
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
  /// Stores a set as a cached one, and as the output of a task, too, until that is removed: as long it is not evicted.
  /// It takes the place of what was kept of the partition before, or that is evicted. Where there is no room for it at
  /// this level, or somebody else is just storing it, it is stored as the output alone, in a file if need be. @returns
  /// whether the partition is kept. Errors like `put`.
  result<bool> put_cached(const block_key& cached, const block_key& output, block_content content, storage_level level);
  /// One bucket; error not_found names the key, io where its file is not what it was.
  result<block_view> get(const block_key& key, std::uint32_t bucket) const;
  /// A whole set as a block file on disk, for who takes it over; it is moved there first where it is in memory. Errors
  /// not_found and io.
  result<block_view> get_whole(const block_key& key);
  /// Stores a set that somebody else has written. Errors: invalid_argument for a key that is there already, overloaded
  /// where that would take too many descriptors.
  result<void> adopt(const block_key& key, std::unique_ptr<block_file> file);
  /// Drops all sets of a stage, all that is kept of a dataset, or one set. Views that were handed out stay valid.
  void remove(stage_id stage);
  void remove(cache_id cache);
  void remove(const block_key& key);
  /// Drops what is kept of a partition as if it had to make room.
  void evict(cache_id cache, partition_index partition);
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
