#pragma once

/// A file that holds the buckets of one block set: written once, then only read. It lies in a directory, or nowhere but
/// in memory (a sealed memfd); either way readers of this machine can be given a descriptor of it.
///
/// Form: the pages of bucket 0, of bucket 1, …; then the index: for each bucket u64 where its pages end, and u64
/// checksum (xxh3) of its number, where they begin and where they end; then a trailer: u64 number of buckets, u64
/// checksum of the index, u32 version, four bytes `TRPF`; all little-endian. So a file can be read by who knows nothing
/// of it but a descriptor, and a bucket by who has read its entry alone.

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/runtime/result.hpp>
#include <troupe/runtime/storage/descriptor.hpp>
#include <troupe/runtime/storage/file_io.hpp>

namespace troupe {

/// Part of an open file. The file may lose its name meanwhile.
struct file_piece {
  std::shared_ptr<const descriptor> file;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

/// Removes its name, where it has one, with the object. Any thread.
class block_file {
public:
  /// Reads the index of a file that somebody else has written, and holds it by its descriptor. Errors: io, malformed
  /// where it is not of this form.
  static result<std::unique_ptr<block_file>> adopt(descriptor file);
  ~block_file();
  block_file(const block_file&) = delete;
  block_file& operator=(const block_file&) = delete;

  /// The pages of one bucket, to be read only. Readers at the same time share one descriptor; without readers a file
  /// with a name has none, so that the number of files is not bounded by the number of descriptors that a process may
  /// have. Error io where the file, or what its index says of the bucket, is no longer what was written.
  /// @pre bucket < buckets()
  result<file_piece> open(std::uint32_t bucket) const;

  /// All of it, index included, for `adopt`. Error io.
  result<file_piece> open_whole() const;

  std::uint32_t buckets() const noexcept { return buckets_; }
  /// Bytes of the pages of all buckets.
  std::uint64_t size() const noexcept { return size_; }
  /// True where it has no name and takes memory instead of disk.
  bool in_memory() const noexcept { return in_memory_; }

private:
  friend class block_file_writer;
  block_file(std::string path, std::uint32_t buckets, std::uint64_t size)
    : path_(std::move(path)), buckets_(buckets), size_(size) {}
  result<std::shared_ptr<const descriptor>> descriptor_of_all() const;

  // The index stays where it is: with many buckets it would take more memory than what else is known of all files.
  const std::string path_; ///< "": it is held by its descriptor
  const std::uint32_t buckets_;
  const std::uint64_t size_;
  bool in_memory_ = false;
  std::shared_ptr<const descriptor> held_;
  mutable std::mutex mutex_;
  mutable std::weak_ptr<const descriptor> opened_;
};

/// Writes one block file. Removes it unless it was finished. One thread. Every error is io, says what the system said,
/// and makes the writer useless.
class block_file_writer {
public:
  /// A new file of mode 0600.
  static result<block_file_writer> create(std::string path);
  /// One that lies in memory alone; `name` is for those who look at the process.
  static result<block_file_writer> create_in_memory(const std::string& name);
  block_file_writer(block_file_writer&& other) noexcept = default;
  block_file_writer& operator=(block_file_writer&&) = delete;
  ~block_file_writer();

  /// Pages of the bucket at hand.
  result<void> append(std::string_view pages);
  /// The same, out of another file.
  result<void> append(int fd, std::uint64_t offset, std::uint64_t size);
  void end_bucket() { ends_.push_back(written_); }
  result<std::unique_ptr<block_file>> finish();
  /// The same for one on disk whose name is to stay: removing it is up to others.
  result<void> publish();

private:
  block_file_writer(std::string path, bool in_memory, descriptor file)
    : path_(std::move(path)), in_memory_(in_memory), owned_(!in_memory), file_(std::move(file)) {}
  error failed(int code) const;
  result<void> write_index();

  std::string path_; ///< where it lies in memory: what it is called
  bool in_memory_ = false;
  bool owned_ = false; ///< the name goes with the writer
  descriptor file_;
  std::uint64_t written_ = 0;
  std::vector<std::uint64_t> ends_;
  piece_writer pieces_;
};

} // namespace troupe
