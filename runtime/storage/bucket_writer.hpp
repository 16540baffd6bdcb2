#pragma once

/// What a task writes before it is stored: pages by bucket, in memory up to a limit and in spill files beyond it. The
/// files have no names, so that nothing is left of them however the process ends.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/runtime/result.hpp>
#include <troupe/runtime/storage/block_directories.hpp>
#include <troupe/runtime/storage/descriptor.hpp>
#include <troupe/runtime/storage/page.hpp>

namespace troupe {

/// Pages that went to a file without a name, bucket by bucket. Move-only.
class spill_file {
public:
  /// Writes the pages of all buckets. Error io.
  static result<spill_file> write(block_directories& directories, const std::string& name,
                                  const std::vector<std::vector<std::string>>& pages);

  int fd() const noexcept { return file_.get(); }
  std::uint64_t begin_of(std::uint32_t bucket) const noexcept { return bucket == 0 ? 0 : ends_[bucket - 1]; }
  std::uint64_t size(std::uint32_t bucket) const noexcept { return ends_[bucket] - begin_of(bucket); }
  std::uint64_t size() const noexcept { return ends_.empty() ? 0 : ends_.back(); }

private:
  descriptor file_;
  std::vector<std::uint64_t> ends_;
};

/// The bytes of one block set, ready to be stored: of each bucket what was spilled, the first spill first, and then its
/// pages.
struct block_content {
  std::vector<std::vector<std::string>> pages; ///< by bucket; sealed
  std::vector<spill_file> spills;

  std::uint64_t size(std::uint32_t bucket) const noexcept;
  std::uint64_t size() const noexcept;
  /// One bucket of one page.
  static block_content of(std::string value, page_compression how);
};

/// One task's; one thread.
class bucket_writer {
public:
  struct options {
    std::uint32_t buckets = 0;
    std::uint64_t memory = 64ull << 20; ///< bytes; what comes beyond is spilled
    page_compression compression{};
    block_directories* directories = nullptr; ///< for spills, outlives the writer; null: nothing is spilled
    std::string name{};                       ///< what the names of files begin with
  };
  explicit bucket_writer(options opts);

  std::uint32_t buckets() const noexcept { return static_cast<std::uint32_t>(buckets_.size()); }

  /// Where the next record of the bucket goes: it is appended, whole, and then `wrote` is called.
  std::string& page(std::uint32_t bucket) noexcept { return buckets_[bucket].open; }
  /// Throws std::runtime_error where it must spill and cannot.
  void wrote(std::uint32_t bucket) {
    auto& b = buckets_[bucket];
    const auto content = page_sealer::content_size(b.open);
    used_ += content - b.counted;
    b.counted = content;
    if (b.counted >= page_target_) close_page(b);
    if (used_ > opts_.memory) spill();
  }
  /// All of the bucket in one page of its own, however large: readers get it in one piece. @pre nothing is in it yet
  void write_whole(std::uint32_t bucket, std::string_view bytes);

  /// What was written. Nothing may be written after it.
  block_content finish();

  std::size_t spills() const noexcept { return spills_.size(); }

private:
  struct bucket_pages {
    std::string open;        ///< the page at hand; begins with room for its header
    std::size_t counted = 0; ///< bytes of its content that are in `used_`
    std::vector<std::string> sealed;
  };
  void close_page(bucket_pages& b);
  void close_pages();
  void spill();
  std::vector<std::vector<std::string>> take_pages();

  options opts_;
  std::size_t page_target_; ///< bytes of content
  page_sealer sealer_;
  std::vector<bucket_pages> buckets_;
  std::uint64_t used_ = 0; ///< bytes of all pages
  std::vector<spill_file> spills_;
};

} // namespace troupe
