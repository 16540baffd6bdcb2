#pragma once

/// A file that holds the buckets of one block set: written once, then only read.
///
/// Form: the pages of bucket 0, of bucket 1, …; then the index: for each bucket u64 where its pages end; then a
/// trailer: u64 number of buckets, u64 checksum (xxh3) of the index, u32 version, four bytes `TRPF`; all little-endian.
/// So a file can be read by who knows nothing of it but its place.

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/runtime/result.hpp>

namespace troupe {

/// A file that is removed with the object. Mappings that were handed out outlive both. Any thread.
class block_file {
public:
  ~block_file();
  block_file(const block_file&) = delete;
  block_file& operator=(const block_file&) = delete;

  struct mapping {
    std::shared_ptr<const void> owner;
    std::string_view bytes;
  };
  /// The pages of one bucket. Readers at the same time share one mapping of the whole file; without readers there is
  /// none, so that the number of files is not bounded by the number of mappings that a process may have. Error io where
  /// the file is no longer what was written. @pre bucket < buckets()
  result<mapping> map(std::uint32_t bucket) const;

  std::uint32_t buckets() const noexcept { return static_cast<std::uint32_t>(ends_.size()); }
  /// Bytes of pages: of all buckets, and of one.
  std::uint64_t size() const noexcept { return ends_.empty() ? 0 : ends_.back(); }
  std::uint64_t size(std::uint32_t bucket) const noexcept { return end_of(bucket) - begin_of(bucket); }
  const std::string& path() const noexcept { return path_; }

private:
  friend class block_file_writer;
  block_file(std::string path, std::vector<std::uint64_t> ends) : path_(std::move(path)), ends_(std::move(ends)) {}
  std::uint64_t begin_of(std::uint32_t bucket) const noexcept { return bucket == 0 ? 0 : ends_[bucket - 1]; }
  std::uint64_t end_of(std::uint32_t bucket) const noexcept { return ends_[bucket]; }

  const std::string path_;
  const std::vector<std::uint64_t> ends_;
  mutable std::mutex mutex_;
  mutable std::weak_ptr<const void> mapped_;
};

/// Writes one block file. Removes it unless it was finished. One thread. Every error is io, says what the system said,
/// and makes the writer useless.
class block_file_writer {
public:
  /// A new file of mode 0600.
  static result<block_file_writer> create(std::string path);
  block_file_writer(block_file_writer&& other) noexcept;
  block_file_writer& operator=(block_file_writer&&) = delete;
  ~block_file_writer();

  /// Pages of the bucket at hand.
  result<void> append(std::string_view pages);
  /// The same, out of another file.
  result<void> append(int fd, std::uint64_t offset, std::uint64_t size);
  void end_bucket() { ends_.push_back(written_); }
  result<std::unique_ptr<block_file>> finish();

private:
  block_file_writer(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  result<void> flush();
  error failed(int code) const;

  std::string path_;
  int fd_ = -1;
  std::uint64_t written_ = 0;
  std::vector<std::uint64_t> ends_;
  std::string buffer_; ///< small pieces on their way
};

} // namespace troupe
