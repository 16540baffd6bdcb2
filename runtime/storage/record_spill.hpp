#pragma once

/// Records that a task puts aside: written one after another to a file without a name, and read again in their order.
/// Nothing is left of the file whatever dies.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/runtime/storage/block_directories.hpp>
#include <troupe/runtime/storage/descriptor.hpp>
#include <troupe/runtime/storage/page.hpp>
#include <troupe/runtime/storage/page_buffer.hpp>

namespace troupe {

/// One thread at a time. Whatever fails throws std::runtime_error with the file's path and the reason.
class record_spill {
public:
  struct options {
    block_directories* directories = nullptr; ///< outlives the object
    std::string name;                         ///< what the file's name begins with, while it has one
    page_compression compression;
    std::size_t page_content = 64 << 10; ///< bytes; larger records have a page of their own
  };
  explicit record_spill(const options& opts);
  record_spill(record_spill&&) noexcept = default;
  record_spill& operator=(record_spill&&) noexcept = default;

  /// Where the next record goes: it is appended, whole, and then `wrote` is called.
  std::string& page() noexcept { return page_; }
  void wrote() {
    if (page_sealer::content_size(page_) >= page_content_) close_page();
  }
  /// Nothing is written after it, and nothing read before.
  void finish();
  /// Bytes that it takes on disk.
  std::uint64_t bytes() const noexcept;
  /// Bytes of its largest page so far: what reading it takes.
  std::uint64_t largest_page() const noexcept { return largest_page_; }

  /// Goes through the pages of a spill that is finished and outlives it. Takes the memory of its largest page.
  class cursor {
  public:
    explicit cursor(const record_spill& from);
    /// The content of the next page: whole records; valid until the next call. Empty at the end.
    std::string_view next();

  private:
    const record_spill* from_;
    std::size_t piece_ = 0;
    page_buffer buffer_;
    page_buffer::source source_;
  };

private:
  /// A file. There are several where a directory was full.
  struct piece {
    std::string path; ///< that it had, for messages
    std::shared_ptr<descriptor> file;
    std::uint64_t bytes = 0; ///< of whole pages
  };
  void close_page();
  void add_piece(std::string_view first_page);

  block_directories* directories_;
  std::string name_;
  std::size_t page_content_;
  page_sealer sealer_;
  std::string page_; ///< at hand; begins with room for its header
  std::uint64_t largest_page_ = 0;
  std::vector<piece> pieces_;
};

} // namespace troupe
