#pragma once

/// Blocks of one executor: map outputs and large results, where they were made. Safe from any thread.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/result.hpp>
#include <troupe/runtime/scheduling/reports.hpp>

namespace troupe {

/// Checksum of a block's bytes (xxh3, 64 bits), made when it is stored and compared by whoever has fetched it.
std::uint64_t block_checksum(std::string_view bytes) noexcept;

/// What produced a block set; buckets are numbered within. A result is a set of one bucket.
struct block_key {
  stage_id stage;
  partition_index partition = 0;
  attempt_number attempt = 0;

  auto operator<=>(const block_key&) const = default;
};
/// `stage 3 partition 7 attempt 0`.
std::string to_string(const block_key& key);

/// Bytes of one bucket; the owner keeps memory or mapping alive.
struct block_view {
  std::shared_ptr<const void> owner;
  std::string_view bytes;
  std::uint64_t checksum = 0; ///< as it was when the block was stored
};

class block_store {
public:
  struct options {
    std::string directory;                     ///< for files, one per map task; created by the caller, mode 0700
    std::uint64_t memory_limit = 256ull << 20; ///< bytes kept in memory; what comes beyond goes to files
  };
  explicit block_store(options opts);
  ~block_store(); ///< removes its files
  block_store(const block_store&) = delete;
  block_store& operator=(const block_store&) = delete;

  /// Stores one set. A repeated key replaces nothing and is an error (invalid_argument); a file that cannot be written
  /// is one too (io), and nothing is stored. @returns the total size.
  result<std::uint64_t> put(const block_key& key, std::vector<std::string> buckets);
  /// One bucket; error not_found names the key.
  result<block_view> get(const block_key& key, std::uint32_t bucket) const;
  /// Drops all sets of a stage, or one set. Views that were handed out stay valid.
  void remove(stage_id stage);
  void remove(const block_key& key);
  /// Bytes of all sets, in memory and in files.
  std::uint64_t bytes() const;
  std::vector<held_block> held() const;

private:
  struct impl;
  const std::unique_ptr<impl> impl_;
};

} // namespace troupe
