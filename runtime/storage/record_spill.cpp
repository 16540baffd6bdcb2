#include <troupe/runtime/storage/record_spill.hpp>

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include <troupe/runtime/storage/file_io.hpp>

namespace troupe {

record_spill::record_spill(const options& opts)
  : directories_(opts.directories), name_(opts.name + ".spill"), page_content_(opts.page_content),
    sealer_(opts.compression) {
  add_piece({});
  page_sealer::begin(page_);
}

/// A file in the next directory that takes the page. The others are tried where one does not.
void record_spill::add_piece(std::string_view first_page) {
  const auto made = directories_->make_file(name_, [&](const std::string& path) -> result<void> {
    descriptor file{::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)};
    if (!file) return make_error(ec::io, "cannot create spill file " + path + ": " + describe_errno(errno));
    ::unlink(path.c_str());
    if (const int code = write_all(file.get(), first_page); code != 0)
      return make_error(ec::io, "cannot write spill file " + path + ": " + describe_errno(code));
    pieces_.push_back({path, std::make_shared<descriptor>(std::move(file)), first_page.size()});
    return {};
  });
  if (!made) throw std::runtime_error(made.error().message);
}

void record_spill::close_page() {
  sealer_.seal(page_);
  auto& last = pieces_.back();
  if (write_all(last.file->get(), page_) == 0)
    last.bytes += page_.size();
  else // what the file has got of the page is behind its end
    add_piece(page_);
  largest_page_ = std::max<std::uint64_t>(largest_page_, page_.size());
  if (page_.capacity() > 4 * page_content_) page_ = {}; // a large record has made it large
  page_sealer::begin(page_);
}

void record_spill::finish() {
  if (page_sealer::content_size(page_) > 0) close_page();
  page_ = {};
}

std::uint64_t record_spill::bytes() const noexcept {
  std::uint64_t all = 0;
  for (const auto& p : pieces_) all += p.bytes;
  return all;
}

record_spill::cursor::cursor(const record_spill& from)
  : from_(&from), buffer_(static_cast<std::size_t>(from.largest_page())) {}

std::string_view record_spill::cursor::next() {
  while (buffer_.at_end()) {
    if (piece_ == from_->pieces_.size()) return {};
    const auto& next = from_->pieces_[piece_++];
    source_ = bytes_of(file_piece{next.file, 0, next.bytes});
    buffer_.begin(next.bytes);
  }
  const auto content = buffer_.next(source_);
  if (!content)
    throw std::runtime_error("cannot read spill file " + from_->pieces_[piece_ - 1].path +
                             " again: " + content.error().message);
  return *content;
}

} // namespace troupe
