#include <troupe/runtime/storage/block_set.hpp>

#include <utility>

namespace troupe {

namespace {

/// Pages below this size on average are put into one string: thousands of small ones would take more for what belongs
/// to each than for what they hold.
constexpr std::uint64_t small_page = 4 << 10;

/// Appends what belongs to one bucket.
using bucket_source = std::function<result<void>(block_file_writer& to, std::uint32_t bucket)>;

result<std::unique_ptr<block_file>> write_all_of(result<block_file_writer> writer, std::uint32_t buckets,
                                                 const bucket_source& source) {
  if (!writer) return writer.error();
  for (std::uint32_t b = 0; b < buckets; ++b) {
    if (auto moved = source(*writer, b); !moved) return moved.error();
    writer->end_bucket();
  }
  return writer->finish();
}

result<block_set::pointer> write_file(block_directories& directories, const std::string& name, std::uint32_t buckets,
                                      const bucket_source& source) {
  block_set::pointer set;
  auto made = directories.make_file(name, [&](const std::string& path) -> result<void> {
    auto file = write_all_of(block_file_writer::create(path), buckets, source);
    if (!file) return file.error();
    set = std::make_shared<const block_set>(std::move(*file));
    return {};
  });
  if (!made) return made.error();
  return set;
}

bucket_source buckets_of(const block_content& content) {
  return [&content](block_file_writer& to, std::uint32_t bucket) -> result<void> {
    for (const auto& spill : content.spills)
      for (std::size_t segment = 0; segment < spill.segments(); ++segment)
        if (auto moved = to.append(spill.fd(), spill.begin_of(segment, bucket), spill.size(segment, bucket)); !moved)
          return moved;
    for (const auto& page : content.pages[bucket])
      if (auto moved = to.append(page); !moved) return moved;
    return {};
  };
}

} // namespace

std::uint64_t block_set::memory_for(const block_content& content) noexcept {
  std::uint64_t pages = 0;
  for (const auto& bucket : content.pages) pages += bucket.size();
  return content.size() + pages * (sizeof(std::string) + sizeof(std::string_view)) +
         content.pages.size() * sizeof(std::size_t);
}

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

result<block_set::pointer> block_set::make_shared_memory(const block_content& content, const std::string& name,
                                                         memory_budget::share& memory,
                                                         memory_budget::share descriptor) {
  auto file = write_all_of(block_file_writer::create_in_memory(name), static_cast<std::uint32_t>(content.pages.size()),
                           buckets_of(content));
  if (!file) return file.error();
  return std::make_shared<const block_set>(std::move(*file), std::move(memory), std::move(descriptor));
}

result<block_set::pointer> block_set::write(block_directories& directories, const std::string& name,
                                            const block_content& content) {
  return write_file(directories, name, static_cast<std::uint32_t>(content.pages.size()), buckets_of(content));
}

result<block_set::pointer> block_set::copy_to_file(block_directories& directories, const std::string& name) const {
  return write_file(directories, name, buckets(), [this](block_file_writer& to, std::uint32_t bucket) -> result<void> {
    if (file_) {
      const auto piece = file_->open(bucket);
      if (!piece) return piece.error();
      return piece->size == 0 ? result<void>{} : to.append(piece->file->get(), piece->offset, piece->size);
    }
    for (const auto part : parts_of(bucket))
      if (auto moved = to.append(part); !moved) return moved;
    return {};
  });
}

std::span<const std::string_view> block_set::parts_of(std::uint32_t bucket) const noexcept {
  const auto begin = bucket == 0 ? 0 : ends_[bucket - 1];
  return std::span{parts_}.subspan(begin, ends_[bucket] - begin);
}

result<block_view> block_set::view(std::uint32_t bucket, const pointer& self) const {
  if (!file_) {
    block_view view{self, parts_of(bucket), {}};
    for (const auto part : view.parts) view.size += part.size();
    return view;
  }
  auto piece = file_->open(bucket);
  if (!piece) return piece.error();
  const auto size = piece->size;
  // A name may go while somebody reads; what was taken of a budget may not.
  return block_view{file_->in_memory() ? self : nullptr, {}, std::move(*piece), size};
}

} // namespace troupe
