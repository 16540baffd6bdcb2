#include <troupe/runtime/transfer/broadcast_file.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <troupe/runtime/storage/block_pages.hpp>
#include <troupe/runtime/storage/file_io.hpp>

namespace troupe {

namespace {

constexpr std::size_t content_of_page = 1 << 20;
constexpr duration first_wait = std::chrono::milliseconds{1};
constexpr duration longest_wait = std::chrono::milliseconds{50};

std::string lock_path(const std::string& path) { return path + ".lock"; }

/// Changes as long as somebody writes the file.
std::pair<ino_t, off_t> progress_of(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? std::pair{status.st_ino, status.st_size} : std::pair<ino_t, off_t>{};
}

/// Held as long as the descriptor is open.
result<descriptor> lock(const std::string& path, duration patience, const std::function<bool()>& stop) {
  descriptor file{::open(lock_path(path).c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600)};
  if (!file) return make_error(ec::io, "cannot open " + lock_path(path) + ": " + describe_errno(errno));
  auto end = std::chrono::steady_clock::now() + patience;
  auto seen = progress_of(path);
  for (auto pause = first_wait; ::flock(file.get(), LOCK_EX | LOCK_NB) != 0;
       pause = std::min(2 * pause, longest_wait)) {
    if (errno != EWOULDBLOCK && errno != EINTR)
      return make_error(ec::io, "cannot lock " + lock_path(path) + ": " + describe_errno(errno));
    if (stop()) return make_error(ec::cancelled, "interrupted");
    const auto now = std::chrono::steady_clock::now();
    if (const auto progress = progress_of(path); progress != seen) {
      seen = progress;
      end = now + patience;
    }
    if (now >= end)
      return make_error(ec::unreachable, "another process has held " + lock_path(path) +
                                             " for too long and has made no progress with what it fetches");
    std::this_thread::sleep_for(pause);
  }
  return file;
}

/// @returns null where there is none, or a part of one, as somebody left it who was killed. Error io where there may be
/// one that this process cannot open: others can
result<std::shared_ptr<const block_file>> open_file(const std::string& path) {
  descriptor file{::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC)};
  if (!file && errno != ENOENT) return make_error(ec::io, "cannot open " + path + ": " + describe_errno(errno));
  if (!file) return std::shared_ptr<const block_file>{};
  auto adopted = block_file::adopt(std::move(file));
  if (!adopted || (*adopted)->buckets() != 1) return std::shared_ptr<const block_file>{};
  return std::shared_ptr<const block_file>{std::move(*adopted)};
}

class page_writer {
public:
  page_writer(block_file_writer& to, page_compression how) : to_(to), sealer_(how) {}
  result<void> write(std::string_view content) {
    page_sealer::begin(page_);
    page_.append(content);
    sealer_.seal(page_);
    return to_.append(page_);
  }

private:
  block_file_writer& to_;
  page_sealer sealer_;
  std::string page_;
};

struct cannot_write {};

result<void> fetch_file(const std::string& path, const broadcast_fetch& fetch) {
  ::unlink(path.c_str()); // what is no whole file
  auto writer = block_file_writer::create(path);
  if (!writer) return writer.error();
  page_writer pages{*writer, {}};
  result<void> written;
  try {
    auto fetched = fetch([&](std::string_view content) {
      written = pages.write(content);
      if (!written) throw cannot_write{}; // the rest would come for nothing
    });
    if (!fetched) return fetched;
  } catch (const cannot_write&) {
    return written;
  }
  writer->end_bucket();
  return writer->publish();
}

result<std::string> content_of(const std::shared_ptr<const block_file>& file) {
  auto piece = file->open(0);
  if (!piece) return piece.error();
  std::string content;
  content.reserve(file->size());
  page_buffer buffer;
  const block_view view{file, {}, *piece, piece->size};
  auto read = read_pages(view, buffer, [&](std::string_view part) { content.append(part); });
  if (!read) return read.error();
  return content;
}

} // namespace

std::string broadcast_path(const std::string& directory, broadcast_id id) {
  static constexpr char digits[] = "0123456789abcdef";
  auto path = directory + "/broadcast.";
  for (int shift = 60; shift >= 0; shift -= 4) path.push_back(digits[id.program >> shift & 15]);
  return path + "." + std::to_string(id.number);
}

result<std::unique_ptr<block_file>> write_broadcast(const std::string& path, std::string_view encoded,
                                                    page_compression how) {
  auto writer = block_file_writer::create(path);
  if (!writer) return writer.error();
  page_writer pages{*writer, how};
  for (; !encoded.empty(); encoded.remove_prefix(std::min(encoded.size(), content_of_page)))
    if (auto written = pages.write(encoded.substr(0, content_of_page)); !written) return written.error();
  writer->end_bucket();
  return writer->finish();
}

result<std::string> read_broadcast(const std::string& path, const broadcast_fetch& fetch, duration patience,
                                   const std::function<bool()>& stop) {
  for (bool again = false;; again = true) {
    std::shared_ptr<const block_file> file;
    {
      const auto held = lock(path, patience, stop);
      if (!held) return held.error();
      auto opened = open_file(path);
      if (opened && !*opened) {
        if (auto fetched = fetch_file(path, fetch); !fetched) return fetched.error();
        opened = open_file(path);
        if (opened && !*opened) return make_error(ec::io, "cannot read " + path + ", which was just written");
      }
      if (!opened) return opened.error();
      file = std::move(*opened);
    }
    auto content = content_of(file);
    // What this process lacks, memory or descriptors, is no fault of the file, which may be the program's own.
    if (content || again || content.error().code != ec::malformed) return content;
    ::unlink(path.c_str()); // damaged since it was written
  }
}

void remove_broadcast(const std::string& path) noexcept {
  ::unlink(path.c_str());
  ::unlink(lock_path(path).c_str());
}

} // namespace troupe
