#include <troupe/runtime/storage/bucket_writer.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include <troupe/runtime/storage/file_io.hpp>

namespace troupe {

namespace {

/// Content of a page: enough to compress well and to make its header and its calls cheap, and less than what the
/// allocator asks the system for each time.
constexpr std::size_t largest_target = (128 << 10) - 256;
constexpr std::size_t smallest_target = 4 << 10;

error spill_error(const char* what, const std::string& path, int code) {
  return make_error(ec::io, std::string{what} + " spill file " + path + ": " + describe_errno(code));
}

} // namespace

result<spill_file> spill_file::write(block_directories& directories, const std::string& name,
                                     const std::vector<std::vector<std::string>>& pages) {
  spill_file made;
  auto written = directories.make_file(name + ".spill", [&](const std::string& path) -> result<void> {
    spill_file file;
    file.path_ = path;
    file.file_ = descriptor{::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)};
    if (!file.file_) return spill_error("cannot create", path, errno);
    ::unlink(path.c_str());
    if (auto first = file.append(pages); !first) return first;
    made = std::move(file);
    return {};
  });
  if (!written) return written.error();
  return made;
}

result<void> spill_file::append(const std::vector<std::vector<std::string>>& pages) {
  const auto begin = ends_.empty() ? 0 : ends_.back().back();
  auto size = begin;
  std::vector<std::uint64_t> ends;
  ends.reserve(pages.size());
  piece_writer pieces; // pages of many buckets are small ones
  for (const auto& bucket : pages) {
    for (const auto& page : bucket) {
      size += page.size();
      if (const int code = pieces.append(fd(), page); code != 0) return spill_error("cannot write", path_, code);
    }
    ends.push_back(size);
  }
  if (const int code = pieces.flush(fd()); code != 0) return spill_error("cannot write", path_, code);
  begins_.push_back(begin);
  ends_.push_back(std::move(ends));
  return {};
}

std::uint64_t block_content::size(std::uint32_t bucket) const noexcept {
  std::uint64_t total = 0;
  for (const auto& spill : spills)
    for (std::size_t segment = 0; segment < spill.segments(); ++segment) total += spill.size(segment, bucket);
  for (const auto& page : pages[bucket]) total += page.size();
  return total;
}

std::uint64_t block_content::size() const noexcept {
  std::uint64_t total = 0;
  for (std::uint32_t b = 0; b < pages.size(); ++b) total += size(b);
  return total;
}

std::vector<std::uint64_t> block_content::sizes() const {
  std::vector<std::uint64_t> all(pages.size());
  for (std::uint32_t b = 0; b < all.size(); ++b) all[b] = size(b);
  return all;
}

block_content block_content::of(std::string value, page_compression how) {
  value.insert(0, page_header_size, '\0');
  page_sealer{how}.seal(value);
  block_content content;
  content.pages.emplace_back().push_back(std::move(value));
  return content;
}

bucket_writer::bucket_writer(options opts)
  : opts_(std::move(opts)), sealer_(opts_.compression), buckets_(opts_.buckets) {
  // What belongs to each bucket before anything is in it counts, too.
  memory_ = opts_.memory - std::min(opts_.memory / 2, opts_.buckets * (sizeof(bucket_pages) + 2 * page_header_size));
  // The pages at hand alone should take no more than a quarter of the memory.
  page_target_ = std::clamp<std::uint64_t>(memory_ / 4 / std::max(1u, opts_.buckets), smallest_target, largest_target);
  for (auto& b : buckets_) page_sealer::begin(b.open);
}

void bucket_writer::close_page(bucket_pages& b) {
  used_ -= b.counted;
  sealer_.seal(b.open);
  if (b.open.capacity() > b.open.size() + b.open.size() / 4) b.open.shrink_to_fit();
  used_ += b.open.capacity();
  b.sealed.push_back(std::move(b.open));
  b.open = {};
  // One page was full: the next one probably will be, too.
  if (b.sealed.back().size() >= page_target_ / 2) b.open.reserve(page_target_ + page_target_ / 8);
  page_sealer::begin(b.open);
  b.counted = 0;
}

void bucket_writer::close_pages() {
  for (auto& b : buckets_)
    if (page_sealer::content_size(b.open) > 0) close_page(b);
}

std::vector<std::vector<std::string>> bucket_writer::take_pages() {
  std::vector<std::vector<std::string>> pages;
  pages.reserve(buckets_.size());
  for (auto& b : buckets_) pages.push_back(std::exchange(b.sealed, {}));
  used_ = 0;
  return pages;
}

void bucket_writer::spill() {
  if (!opts_.directories) return;
  close_pages();
  const auto pages = take_pages();
  if (!spills_.empty() && spills_.back().append(pages)) return;
  // Its directory may be full: another one takes the next file.
  auto file = spill_file::write(*opts_.directories, opts_.name, pages);
  if (!file) throw std::runtime_error(file.error().message);
  spills_.push_back(std::move(*file));
}

void bucket_writer::check() const {
  if (failed_)
    throw std::runtime_error(
        "a part of what the task wrote is lost: writing it has failed before, and the exception was "
        "caught instead of ending the task");
}

void bucket_writer::make_room(bucket_pages& b) {
  check();
  failed_ = true;
  if (b.counted >= page_target_) close_page(b);
  if (used_ > memory_) spill();
  failed_ = false;
}

std::size_t bucket_writer::spills() const noexcept {
  std::size_t all = 0;
  for (const auto& file : spills_) all += file.segments();
  return all;
}

void bucket_writer::write_whole(std::uint32_t bucket, std::string_view bytes) {
  if (bytes.empty()) return;
  auto& b = buckets_[bucket];
  b.open.reserve(page_header_size + bytes.size());
  b.open.append(bytes);
  used_ += page_sealer::content_size(b.open) - b.counted;
  b.counted = page_sealer::content_size(b.open);
  check();
  failed_ = true;
  close_page(b);
  if (used_ > memory_) spill();
  failed_ = false;
}

block_content bucket_writer::finish() {
  check();
  close_pages();
  return {take_pages(), std::move(spills_)};
}

} // namespace troupe
