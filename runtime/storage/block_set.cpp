#include <troupe/runtime/storage/block_set.hpp>

#include <utility>

namespace troupe {

namespace {

/// Pages below this size on average are put into one string: thousands of small ones would take more for what belongs
/// to each than for what they hold.
constexpr std::uint64_t small_page = 4 << 10;

} // namespace

block_set::block_set(block_content content, memory_budget::share memory)
  : size_(content.size()), memory_(std::move(memory)) {
  std::size_t pages = 0;
  for (const auto& bucket : content.pages) pages += bucket.size();
  ends_.reserve(content.pages.size());
  if (pages > 1 && size_ / pages < small_page) {
    auto& all = pages_.emplace_back();
    all.reserve(size_);
    for (auto& bucket : content.pages) {
      const auto begin = all.size();
      for (const auto& page : bucket) all.append(page);
      if (all.size() > begin) parts_.emplace_back(all.data() + begin, all.size() - begin);
      ends_.push_back(parts_.size());
    }
    return;
  }
  pages_.reserve(pages);
  parts_.reserve(pages);
  for (auto& bucket : content.pages) {
    for (auto& page : bucket) parts_.emplace_back(pages_.emplace_back(std::move(page)));
    ends_.push_back(parts_.size());
  }
}

result<std::shared_ptr<const block_set>> block_set::write(block_directories& directories, const std::string& name,
                                                          const block_content& content) {
  std::shared_ptr<const block_set> set;
  auto made = directories.make_file(name, [&](const std::string& path) -> result<void> {
    auto writer = block_file_writer::create(path);
    if (!writer) return writer.error();
    for (std::uint32_t b = 0; b < content.pages.size(); ++b) {
      for (const auto& spill : content.spills)
        if (auto moved = writer->append(spill.fd(), spill.begin_of(b), spill.size(b)); !moved) return moved;
      for (const auto& page : content.pages[b])
        if (auto moved = writer->append(page); !moved) return moved;
      writer->end_bucket();
    }
    auto file = writer->finish();
    if (!file) return file.error();
    set = std::shared_ptr<const block_set>{new block_set{std::move(*file)}};
    return {};
  });
  if (!made) return made.error();
  return set;
}

result<std::shared_ptr<const block_set>> block_set::copy_to_file(block_directories& directories,
                                                                 const std::string& name) const {
  std::shared_ptr<const block_set> set;
  auto made = directories.make_file(name, [&](const std::string& path) -> result<void> {
    auto writer = block_file_writer::create(path);
    if (!writer) return writer.error();
    for (std::uint32_t b = 0; b < buckets(); ++b) {
      for (const auto part : parts_of(b))
        if (auto moved = writer->append(part); !moved) return moved;
      writer->end_bucket();
    }
    auto file = writer->finish();
    if (!file) return file.error();
    set = std::shared_ptr<const block_set>{new block_set{std::move(*file)}};
    return {};
  });
  if (!made) return made.error();
  return set;
}

std::span<const std::string_view> block_set::parts_of(std::uint32_t bucket) const noexcept {
  const auto begin = bucket == 0 ? 0 : ends_[bucket - 1];
  return std::span{parts_}.subspan(begin, ends_[bucket] - begin);
}

std::vector<std::uint64_t> block_set::sizes() const {
  std::vector<std::uint64_t> all(buckets());
  for (std::uint32_t b = 0; b < all.size(); ++b) {
    if (file_)
      all[b] = file_->size(b);
    else
      for (const auto part : parts_of(b)) all[b] += part.size();
  }
  return all;
}

result<block_view> block_set::view(std::uint32_t bucket, const std::shared_ptr<const block_set>& self) const {
  if (!file_) return block_view{self, {}, parts_of(bucket)};
  auto mapped = file_->map(bucket);
  if (!mapped) return mapped.error();
  return block_view{std::move(mapped->owner), mapped->bytes, {}};
}

} // namespace troupe
