#pragma once

/// Blocks for tests: made of plain texts and read back as such.

#include <stdexcept>
#include <string>
#include <vector>

#include <troupe/runtime/storage/block_pages.hpp>
#include <troupe/runtime/storage/block_set.hpp>
#include <troupe/runtime/storage/block_store.hpp>

namespace troupe::testing {

/// A block set with these texts as its buckets, one page each.
inline block_content content_of(const std::vector<std::string>& buckets, page_compression how = {}) {
  bucket_writer::options options;
  options.buckets = static_cast<std::uint32_t>(buckets.size());
  options.compression = how;
  bucket_writer writer{options};
  for (std::uint32_t b = 0; b < buckets.size(); ++b) writer.write_whole(b, buckets[b]);
  return writer.finish();
}

/// What such a set takes of an executor's memory.
inline std::uint64_t memory_of(const std::vector<std::string>& buckets) {
  return block_set::memory_for(content_of(buckets));
}

/// What a bucket's pages hold; throws std::runtime_error where they are damaged.
inline std::string text_of(const block_view& view) {
  std::string text;
  page_buffer buffer;
  if (auto read = read_pages(view, buffer, [&](std::string_view content) { text.append(content); }); !read)
    throw std::runtime_error(read.error().message);
  return text;
}
inline std::string text_of(const result<block_view>& view) {
  if (!view) throw std::runtime_error(view.error().message);
  return text_of(*view);
}
inline std::string text_of(const result<std::string>& fetched) {
  if (!fetched) throw std::runtime_error(fetched.error().message);
  return *fetched;
}

/// Stored size of a text of one page.
inline std::uint64_t stored(std::size_t size) { return size == 0 ? 0 : size + page_header_size; }

} // namespace troupe::testing
