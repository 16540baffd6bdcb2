#include <troupe/runtime/storage/page_buffer.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include <unistd.h>

namespace troupe {

void page_buffer::begin(std::uint64_t size) noexcept {
  begin_ = end_ = 0;
  unread_ = size;
  taken_ = 0;
}

result<void> page_buffer::make_available(std::uint64_t count, const source& from) {
  while (end_ - begin_ < count) {
    const auto held = end_ - begin_;
    if (count - held > unread_) return make_error(ec::malformed, "the block is damaged: a page is cut short");
    if (begin_ + count > capacity_) {
      // What is announced may be a lie: memory grows with what has come.
      const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(count, std::max(least_, 2 * held)));
      if (wanted > capacity_) {
        const auto grown = std::max(least_, wanted);
        std::unique_ptr<char[]> bytes{new (std::nothrow) char[grown]};
        if (!bytes) return make_error(ec::overloaded, "no memory for a page of " + std::to_string(count) + " bytes");
        std::copy_n(bytes_.get() + begin_, held, bytes.get());
        bytes_ = std::move(bytes);
        capacity_ = grown;
      } else {
        std::memmove(bytes_.get(), bytes_.get() + begin_, held);
      }
      begin_ = 0;
      end_ = held;
    }
    const auto got =
        from(bytes_.get() + end_, static_cast<std::size_t>(std::min<std::uint64_t>(unread_, capacity_ - end_)));
    if (!got) return got.error();
    end_ += *got;
    unread_ -= *got;
  }
  return {};
}

result<std::string_view> page_buffer::next(const source& from) {
  if (begin_ == end_) begin_ = end_ = 0;
  if (auto there = make_available(page_header_size, from); !there) return there.error();
  const auto size = page_size({bytes_.get() + begin_, page_header_size});
  if (!size) return make_error(ec::malformed, "the block is damaged: a page of an impossible size");
  if (auto there = make_available(*size, from); !there) return there.error();
  reader_.restart({bytes_.get() + begin_, static_cast<std::size_t>(*size)});
  auto content = reader_.next();
  if (!content) return content;
  begin_ += static_cast<std::size_t>(*size);
  taken_ += *size;
  return content;
}

page_buffer::source bytes_of(file_piece piece, std::uint64_t offset) {
  return [piece = std::move(piece), offset](char* to, std::size_t room) mutable -> result<std::size_t> {
    for (;;) {
      const auto left = piece.size - std::min(piece.size, offset);
      const auto n = ::pread(piece.file->get(), to, static_cast<std::size_t>(std::min<std::uint64_t>(room, left)),
                             static_cast<off_t>(piece.offset + offset));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return make_error(ec::io, std::string{"cannot read a block file: "} + std::strerror(errno));
      if (n == 0) return make_error(ec::io, "a block file is shorter than it was");
      offset += static_cast<std::uint64_t>(n);
      return static_cast<std::size_t>(n);
    }
  };
}

} // namespace troupe
