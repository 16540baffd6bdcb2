#pragma once

/// One block set as it is stored: in memory or in a file. Immutable; any thread.

#include <cstdint>
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
  /// In memory that was taken for it. @pre nothing of it was spilled
  block_set(block_content content, memory_budget::share memory);
  /// Written to a file in one of the directories.
  static result<std::shared_ptr<const block_set>> write(block_directories& directories, const std::string& name,
                                                        const block_content& content);
  /// The same set in a file.
  result<std::shared_ptr<const block_set>> copy_to_file(block_directories& directories, const std::string& name) const;

  std::uint64_t size() const noexcept { return size_; }
  std::uint32_t buckets() const noexcept { return file_ ? file_->buckets() : static_cast<std::uint32_t>(ends_.size()); }
  bool in_memory() const noexcept { return !file_; }
  std::vector<std::uint64_t> sizes() const;
  /// One bucket; `self` is what owns this. @pre bucket < buckets()
  result<block_view> view(std::uint32_t bucket, const std::shared_ptr<const block_set>& self) const;

private:
  explicit block_set(std::unique_ptr<block_file> file) : size_(file->size()), file_(std::move(file)) {}
  std::span<const std::string_view> parts_of(std::uint32_t bucket) const noexcept;

  std::uint64_t size_ = 0;
  std::unique_ptr<block_file> file_; ///< null: in memory
  memory_budget::share memory_;
  std::vector<std::string> pages_;
  std::vector<std::string_view> parts_; ///< of them, bucket after bucket
  std::vector<std::size_t> ends_;       ///< by bucket, in `parts_`
};

} // namespace troupe
