#pragma once

/// Reads the pages of a block one by one out of a file or off a connection, with no more memory than its largest page
/// takes.

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include <troupe/runtime/result.hpp>
#include <troupe/runtime/storage/block_file.hpp>
#include <troupe/runtime/storage/page.hpp>

namespace troupe {

/// One thread at a time. Keeps its memory from block to block.
class page_buffer {
public:
  /// Room for a few pages of usual size: fewer calls for the same bytes, and still within a core's own cache.
  static constexpr std::size_t usual_capacity = 512 << 10;
  /// @param capacity bytes that it takes; more where a page is larger
  explicit page_buffer(std::size_t capacity = usual_capacity) noexcept : least_(capacity) {}

  /// Puts between one and `room` bytes at `to`. @returns how many
  using source = std::function<result<std::size_t>(char* to, std::size_t room)>;

  /// Begins a block of so many bytes, as somebody says who may be wrong.
  void begin(std::uint64_t size) noexcept;
  /// All of the block was read.
  bool at_end() const noexcept { return unread_ == 0 && begin_ == end_; }
  /// The content of the next page; valid until the next call. Reads as far ahead as there is room, but not beyond the
  /// block. Errors: malformed where the bytes are not what was written, overloaded without memory for a page, and those
  /// of the source. @pre not at_end
  result<std::string_view> next(const source& from);
  /// Bytes of the pages that were given out since `begin`.
  std::uint64_t taken() const noexcept { return taken_; }

private:
  result<void> make_available(std::uint64_t count, const source& from);

  std::size_t least_;
  std::unique_ptr<char[]> bytes_;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;    ///< of what is in it
  std::size_t end_ = 0;      ///< of what is in it
  std::uint64_t unread_ = 0; ///< of the block, that are still at the source
  std::uint64_t taken_ = 0;
  page_reader reader_{{}};
};

/// Bytes of a piece of a file, from `offset` within the piece on. Error io where the file is shorter.
page_buffer::source bytes_of(file_piece piece, std::uint64_t offset = 0);

} // namespace troupe
