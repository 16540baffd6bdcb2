#include <troupe/runtime/storage/record_spill.hpp>

#include <cerrno>
#include <stdexcept>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include <troupe/runtime/storage/file_io.hpp>

namespace troupe {

record_spill::record_spill(const options& opts) : page_content_(opts.page_content), sealer_(opts.compression) {
  const auto made = opts.directories->make_file(opts.name + ".spill", [this](const std::string& path) -> result<void> {
    descriptor file{::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)};
    if (!file) return make_error(ec::io, "cannot create spill file " + path + ": " + describe_errno(errno));
    ::unlink(path.c_str());
    path_ = path;
    file_ = std::make_shared<descriptor>(std::move(file));
    return {};
  });
  if (!made) throw std::runtime_error(made.error().message);
  page_sealer::begin(page_);
}

void record_spill::close_page() {
  sealer_.seal(page_);
  if (const int code = write_all(file_->get(), page_); code != 0)
    throw std::runtime_error("cannot write spill file " + path_ + ": " + describe_errno(code));
  written_ += page_.size();
  page_sealer::begin(page_);
}

void record_spill::finish() {
  if (page_sealer::content_size(page_) > 0) close_page();
  page_ = {};
}

record_spill::cursor::cursor(const record_spill& from)
  : from_(&from), source_(bytes_of(file_piece{from.file_, 0, from.written_})) {
  buffer_.begin(from.written_);
}

std::string_view record_spill::cursor::next() {
  if (buffer_.at_end()) return {};
  const auto content = buffer_.next(source_);
  if (!content)
    throw std::runtime_error("cannot read spill file " + from_->path_ + " again: " + content.error().message);
  return *content;
}

} // namespace troupe
