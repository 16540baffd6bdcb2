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

/// What a writer spilled to one file without a name: segment after segment, each bucket by bucket. One descriptor for
/// however much is spilled. Move-only.
class spill_file {
public:
  /// With its first segment: the pages of all buckets. Error io.
  static result<spill_file> write(block_directories& directories, const std::string& name,
                                  const std::vector<std::vector<std::string>>& pages);
  /// Another segment. Error io, upon which the file stays as it was and gets no more.
  result<void> append(const std::vector<std::vector<std::string>>& pages);

  int fd() const noexcept { return file_.get(); }
  std::size_t segments() const noexcept { return ends_.size(); }
  std::uint64_t begin_of(std::size_t segment, std::uint32_t bucket) const noexcept {
    return bucket == 0 ? begins_[segment] : ends_[segment][bucket - 1];
  }
  std::uint64_t size(std::size_t segment, std::uint32_t bucket) const noexcept {
    return ends_[segment][bucket] - begin_of(segment, bucket);
  }

private:
  descriptor file_;
  std::string path_;                             ///< that it had, for messages
  std::vector<std::uint64_t> begins_;            ///< by segment
  std::vector<std::vector<std::uint64_t>> ends_; ///< by segment and bucket
};

/// The bytes of one block set, ready to be stored: of each bucket what was spilled, the first spill first, and then its
/// pages.
struct block_content {
  std::vector<std::vector<std::string>> pages; ///< by bucket; sealed
  std::vector<spill_file> spills;

  std::uint64_t size(std::uint32_t bucket) const noexcept;
  std::uint64_t size() const noexcept;
  /// By bucket.
  std::vector<std::uint64_t> sizes() const;
  /// One bucket of one page.
  static block_content of(std::string value, page_compression how);
};

/// One task's; one thread. What fails is remembered: whoever catches the exception cannot go on with a part of what was
/// written.
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

  /// Where the next record of the bucket goes: it is appended, whole, and then `wrote` is called. What was appended
  /// without that, since the record threw, is gone.
  std::string& page(std::uint32_t bucket) {
    auto& b = buckets_[bucket];
    if (page_sealer::content_size(b.open) != b.counted) b.open.resize(page_header_size + b.counted);
    return b.open;
  }
  /// Throws std::runtime_error where it must spill and cannot, or could not before.
  void wrote(std::uint32_t bucket) {
    auto& b = buckets_[bucket];
    const auto content = page_sealer::content_size(b.open);
    used_ += content - b.counted;
    b.counted = content;
    if (b.counted >= page_target_ || used_ > memory_) make_room(b);
  }
  /// All of the bucket in one page of its own, however large: readers get it in one piece. @pre nothing is in it yet
  void write_whole(std::uint32_t bucket, std::string_view bytes);

  /// What was written. Nothing may be written after it. Throws std::runtime_error where something of it was lost.
  block_content finish();

  /// How often it has spilled.
  std::size_t spills() const noexcept;

private:
  struct bucket_pages {
    std::string open;        ///< the page at hand; begins with room for its header
    std::size_t counted = 0; ///< bytes of its content that are in `used_`
    std::vector<std::string> sealed;
  };
  void make_room(bucket_pages& b);
  void check() const;
  void close_page(bucket_pages& b);
  void close_pages();
  void spill();
  std::vector<std::vector<std::string>> take_pages();

  options opts_;
  std::uint64_t memory_;    ///< bytes that pages may take
  std::size_t page_target_; ///< bytes of content
  bool failed_ = false;     ///< something that was written may be lost
  page_sealer sealer_;
  std::vector<bucket_pages> buckets_;
  std::uint64_t used_ = 0; ///< bytes of all pages
  std::vector<spill_file> spills_;
};

} // namespace troupe
