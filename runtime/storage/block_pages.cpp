#include <troupe/runtime/storage/block_pages.hpp>

namespace troupe {

result<void> read_pages(const block_view& view, page_buffer& buffer,
                        const std::function<void(std::string_view)>& each) {
  if (view.in_file()) {
    const auto source = bytes_of(view.piece);
    for (buffer.begin(view.size); !buffer.at_end();) {
      const auto content = buffer.next(source);
      if (!content) return content.error();
      each(*content);
    }
    return {};
  }
  page_reader reader{{}};
  for (const auto part : view.parts)
    for (reader.restart(part); !reader.at_end();) {
      const auto content = reader.next();
      if (!content) return content.error();
      each(*content);
    }
  return {};
}

} // namespace troupe
