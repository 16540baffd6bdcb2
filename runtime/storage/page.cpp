#include <troupe/runtime/storage/page.hpp>

#include <limits>
#include <utility>

#include <lz4.h>
#include <xxhash.h>
#include <zstd.h>

#include <troupe/runtime/little_endian.hpp>

namespace troupe {

namespace {

constexpr unsigned codec_shift = 56;
constexpr std::uint64_t size_mask = (std::uint64_t{1} << codec_shift) - 1;

std::uint64_t checksum_of(const char* header, std::string_view stored) noexcept {
  return XXH3_64bits_withSeed(stored.data(), stored.size(), XXH3_64bits(header, 16));
}

error damaged(const char* what) { return make_error(ec::malformed, std::string{"the block is damaged: "} + what); }

/// Into `to`, from `at` on, where it fits. @returns the size, 0 where it does not fit
std::size_t compress(page_compression how, ZSTD_CCtx_s* zstd, std::string_view content, std::string& to,
                     std::size_t at) {
  const auto room = to.size() - at;
  if (how.codec == page_codec::zstd) {
    const auto n = ZSTD_compressCCtx(zstd, to.data() + at, room, content.data(), content.size(), how.level);
    return ZSTD_isError(n) ? 0 : n;
  }
  constexpr std::size_t most = std::numeric_limits<int>::max();
  if (content.size() > LZ4_MAX_INPUT_SIZE || room > most) return 0;
  const int n =
      LZ4_compress_default(content.data(), to.data() + at, static_cast<int>(content.size()), static_cast<int>(room));
  return n > 0 ? static_cast<std::size_t>(n) : 0;
}

/// Whether so much content can come of what is stored: nobody is made to take memory for what is not there.
bool may_be_of(page_codec codec, std::string_view stored, std::uint64_t content) {
  constexpr std::uint64_t most_of_lz4 = 255;
  if (codec == page_codec::lz4) return content / most_of_lz4 <= stored.size();
  return ZSTD_getFrameContentSize(stored.data(), stored.size()) == content;
}

bool decompress(page_codec codec, ZSTD_DCtx_s* zstd, std::string_view stored, std::string& content) {
  if (codec == page_codec::zstd)
    return ZSTD_decompressDCtx(zstd, content.data(), content.size(), stored.data(), stored.size()) == content.size();
  constexpr std::size_t most = std::numeric_limits<int>::max();
  if (stored.size() > most || content.size() > most) return false;
  return LZ4_decompress_safe(stored.data(), content.data(), static_cast<int>(stored.size()),
                             static_cast<int>(content.size())) == static_cast<int>(content.size());
}

} // namespace

std::string_view to_string(page_codec codec) noexcept {
  switch (codec) {
  case page_codec::none: return "none";
  case page_codec::lz4: return "lz4";
  case page_codec::zstd: return "zstd";
  }
  return "unknown";
}

void page_sealer::end_zstd::operator()(ZSTD_CCtx_s* context) const noexcept { ZSTD_freeCCtx(context); }
void page_reader::end_zstd::operator()(ZSTD_DCtx_s* context) const noexcept { ZSTD_freeDCtx(context); }

void page_sealer::seal(std::string& page) {
  const auto raw = content_size(page);
  auto codec = page_codec::none;
  if (how_.codec != page_codec::none && raw >= 64) {
    scratch_.resize(page_header_size + raw - raw / 8);
    if (how_.codec == page_codec::zstd && !zstd_) zstd_.reset(ZSTD_createCCtx());
    const auto n =
        compress(how_, zstd_.get(), std::string_view{page}.substr(page_header_size), scratch_, page_header_size);
    if (n > 0) {
      codec = how_.codec;
      page = std::string{scratch_, 0, page_header_size + n}; // of no more memory than it needs
    }
  }
  little_endian::write(page.data(), raw | std::uint64_t{static_cast<std::uint8_t>(codec)} << codec_shift);
  little_endian::write(page.data() + 8, std::uint64_t{content_size(page)});
  little_endian::write(page.data() + 16, checksum_of(page.data(), std::string_view{page}.substr(page_header_size)));
}

namespace {

/// What the header of a page says, and what follows it.
struct opened_page {
  std::uint64_t raw = 0;
  page_codec codec = page_codec::none;
  std::string_view stored;
};

/// Takes the first page off `pages`.
result<opened_page> open_page(std::string_view& pages) {
  if (pages.size() < page_header_size) return damaged("a page ends within its header");
  const auto* const header = pages.data();
  const auto size = little_endian::read<std::uint64_t>(pages, 8);
  if (size > pages.size() - page_header_size) return damaged("a page is cut short");
  const auto stored = pages.substr(page_header_size, size);
  if (checksum_of(header, stored) != little_endian::read<std::uint64_t>(pages, 16))
    return damaged("a page does not match its checksum");
  pages.remove_prefix(page_header_size + size);
  const auto first = little_endian::read<std::uint64_t>({header, 8});
  return opened_page{first & size_mask, static_cast<page_codec>(first >> codec_shift), stored};
}

} // namespace

result<std::string_view> page_reader::next() {
  const auto page = open_page(rest_);
  if (!page) return page.error();
  // From here on it is what somebody has written on purpose.
  if (page->codec == page_codec::none) {
    if (page->raw != page->stored.size()) return damaged("a page has another size than it says");
    return page->stored;
  }
  if (page->codec != page_codec::lz4 && page->codec != page_codec::zstd)
    return damaged("a page is compressed in an unknown way");
  if (!may_be_of(page->codec, page->stored, page->raw)) return damaged("a page has another size than it says");
  scratch_.resize(page->raw);
  if (page->codec == page_codec::zstd && !zstd_) zstd_.reset(ZSTD_createDCtx());
  if (!decompress(page->codec, zstd_.get(), page->stored, scratch_)) return damaged("a page cannot be decompressed");
  return std::string_view{scratch_};
}

std::optional<std::uint64_t> page_size(std::string_view header) noexcept {
  const auto stored = little_endian::read<std::uint64_t>(header, 8);
  if (stored > std::numeric_limits<std::uint64_t>::max() - page_header_size) return std::nullopt;
  return page_header_size + stored;
}

} // namespace troupe
