#pragma once

/// One block set as it is stored: as pages in memory or as a block file. Immutable; any thread.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/runtime/result.hpp>
#include <troupe/runtime/storage/block_directories.hpp>
#include <troupe/runtime/storage/block_file.hpp>
#include <troupe/runtime/storage/block_store.hpp>
#include <troupe/runtime/storage/memory_budget.hpp>

namespace troupe {

class block_set {
public:
  using pointer = std::shared_ptr<const block_set>;

  /// Bytes that it takes in memory, with all that belongs to it.
  static std::uint64_t memory_for(const block_content& content) noexcept;
  /// In memory that was taken for it. @pre nothing of it was spilled
  block_set(block_content content, memory_budget::share memory);
  /// The same as a file that lies in memory, so that other processes of this machine can have a descriptor of it. Error
  /// io, where the system gives none; `content` and `memory` are as they were then.
  static result<pointer> make_shared_memory(const block_content& content, const std::string& name,
                                            memory_budget::share& memory, memory_budget::share descriptor);
  /// Written to a file in one of the directories.
  static result<pointer> write(block_directories& directories, const std::string& name, const block_content& content);
  /// The same set in a file.
  result<pointer> copy_to_file(block_directories& directories, const std::string& name) const;
  /// All of it as a file on disk. @pre not in_memory
  result<file_piece> open_whole() const { return file_->open_whole(); }
  /// Around a file that is there.
  explicit block_set(std::unique_ptr<block_file> file, memory_budget::share memory = {},
                     memory_budget::share descriptor = {})
    : size_(file->size()), file_(std::move(file)), memory_(std::move(memory)), descriptor_(std::move(descriptor)) {}

  std::uint64_t size() const noexcept { return size_; }
  /// Bytes that were taken for it.
  std::uint64_t memory() const noexcept { return memory_.bytes(); }
  std::uint32_t buckets() const noexcept { return file_ ? file_->buckets() : static_cast<std::uint32_t>(ends_.size()); }
  bool in_memory() const noexcept { return !file_ || file_->in_memory(); }
  /// One bucket; `self` is what owns this. @pre bucket < buckets()
  result<block_view> view(std::uint32_t bucket, const pointer& self) const;

private:
  std::span<const std::string_view> parts_of(std::uint32_t bucket) const noexcept;

  std::uint64_t size_ = 0;
  std::unique_ptr<block_file> file_; ///< null: the pages below
  memory_budget::share memory_;
  memory_budget::share descriptor_; ///< one, where `file_` holds it
  std::vector<std::string> pages_;
  std::vector<std::string_view> parts_; ///< of them, bucket after bucket
  std::vector<std::size_t> ends_;       ///< by bucket, in `parts_`
};

} // namespace troupe
