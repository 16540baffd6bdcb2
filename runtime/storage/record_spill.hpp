#pragma once

/// Records that a task puts aside: written one after another to a file without a name, and read again in their order.
/// Nothing is left of the file whatever dies.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

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
  std::uint64_t bytes() const noexcept { return written_; }

  /// Goes through the pages of a spill that is finished and outlives it. Each takes the memory of a page.
  class cursor {
  public:
    explicit cursor(const record_spill& from);
    /// The content of the next page: whole records; valid until the next call. Empty at the end.
    std::string_view next();

  private:
    const record_spill* from_;
    page_buffer buffer_;
    page_buffer::source source_;
  };

private:
  void close_page();

  std::string path_; ///< that it had, for messages
  std::shared_ptr<descriptor> file_;
  std::size_t page_content_;
  page_sealer sealer_;
  std::string page_; ///< at hand; begins with room for its header
  std::uint64_t written_ = 0;
};

} // namespace troupe
