#pragma once

/// Pages: the pieces in which the bytes of a block are kept, checked and moved. A page holds whole records, so that a
/// reader needs no more memory than its largest page, and carries its own size and checksum, so that what is damaged is
/// found before anything is made of it. A block is a sequence of pages.
///
/// A page: u64 size of the content and, in the top byte, how it is compressed; u64 size of what follows the header; u64
/// checksum (xxh3) of the rest of the header and of what follows it; all little-endian; then the content.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <troupe/runtime/result.hpp>

struct ZSTD_CCtx_s; // of the library, whose header nobody else needs
struct ZSTD_DCtx_s;

namespace troupe {

/// Numbers are wire format.
enum class page_codec : std::uint8_t { none = 0, lz4 = 1, zstd = 2 };

/// Of the same value: the names that configuration uses (`none`, `lz4`, `zstd`).
std::string_view to_string(page_codec codec) noexcept;

struct page_compression {
  page_codec codec = page_codec::none;
  int level = 1; ///< of zstd

  auto operator<=>(const page_compression&) const = default;
};

inline constexpr std::size_t page_header_size = 24;

/// Makes pages in place: the content is appended to a string that begins with room for the header. Keeps its memory;
/// one thread at a time.
class page_sealer {
public:
  explicit page_sealer(page_compression how = {}) : how_(how) {}

  /// Empties the string, but for the room for a header.
  static void begin(std::string& page) { page.assign(page_header_size, '\0'); }
  static std::size_t content_size(const std::string& page) noexcept { return page.size() - page_header_size; }

  /// Compresses the content, where that saves an eighth of it, and writes the header. @pre begun
  void seal(std::string& page);

private:
  struct end_zstd {
    void operator()(ZSTD_CCtx_s* context) const noexcept;
  };
  page_compression how_;
  std::unique_ptr<ZSTD_CCtx_s, end_zstd> zstd_; ///< costs more to make than a small page to compress
  std::string scratch_;
};

/// Walks through the pages of one block. One thread at a time.
class page_reader {
public:
  /// @param pages whole ones; outlive the reader
  explicit page_reader(std::string_view pages) noexcept : rest_(pages) {}

  bool at_end() const noexcept { return rest_.empty(); }
  /// Goes on with other pages; keeps its memory.
  void restart(std::string_view pages) noexcept { rest_ = pages; }
  /// The content of the next page; valid until the next call and as long as `pages`. Error malformed where the bytes
  /// are not what was written. @pre not at_end
  result<std::string_view> next();

private:
  struct end_zstd {
    void operator()(ZSTD_DCtx_s* context) const noexcept;
  };
  std::string_view rest_;
  std::unique_ptr<ZSTD_DCtx_s, end_zstd> zstd_;
  std::string scratch_;
};

/// Bytes that the page takes, header included, by what its header says; nothing where no page can be so large.
/// @pre header.size() >= page_header_size
std::optional<std::uint64_t> page_size(std::string_view header) noexcept;

} // namespace troupe
