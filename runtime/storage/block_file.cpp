#include <troupe/runtime/storage/block_file.hpp>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include <troupe/runtime/storage/file_io.hpp>

namespace troupe {

namespace {

constexpr std::size_t buffer_size = 256 << 10;
constexpr std::uint32_t version = 1;
constexpr std::string_view magic = "TRPF";

error io_error(const char* what, const std::string& path, int code) {
  return make_error(ec::io, std::string{what} + " block file " + path + ": " + describe_errno(code));
}

template <class Number>
void put(std::string& to, Number number) {
  for (std::size_t i = 0; i < sizeof number; ++i)
    to.push_back(static_cast<char>(static_cast<std::uint64_t>(number) >> (8 * i)));
}

} // namespace

block_file::~block_file() { ::unlink(path_.c_str()); }

result<block_file::mapping> block_file::map(std::uint32_t bucket) const {
  if (size(bucket) == 0) return mapping{};
  const std::lock_guard lock{mutex_};
  auto owner = mapped_.lock();
  if (!owner) {
    const int fd = ::open(path_.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return io_error("cannot open", path_, errno);
    // A file that somebody has cut short would end the process at the first access behind its end.
    struct stat status {};
    const auto whole = size();
    if (::fstat(fd, &status) != 0 || static_cast<std::uint64_t>(status.st_size) < whole) {
      ::close(fd);
      return make_error(ec::io, "block file " + path_ + " is no longer what was written; its task has to run again");
    }
    void* const address = ::mmap(nullptr, whole, PROT_READ, MAP_SHARED, fd, 0);
    const int code = errno;
    ::close(fd);
    if (address == MAP_FAILED) return io_error("cannot map", path_, code);
    owner = std::shared_ptr<const void>{static_cast<const void*>(address),
                                        [whole](const void* at) { ::munmap(const_cast<void*>(at), whole); }};
    mapped_ = owner;
  }
  const auto* const bytes = static_cast<const char*>(owner.get());
  return mapping{std::move(owner), {bytes + begin_of(bucket), size(bucket)}};
}

result<block_file_writer> block_file_writer::create(std::string path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return io_error("cannot create", path, errno);
  return block_file_writer{std::move(path), fd};
}

block_file_writer::block_file_writer(block_file_writer&& other) noexcept
  : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), written_(other.written_),
    ends_(std::move(other.ends_)), buffer_(std::move(other.buffer_)) {}

block_file_writer::~block_file_writer() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(path_.c_str());
}

error block_file_writer::failed(int code) const { return io_error("cannot write", path_, code); }

result<void> block_file_writer::append(std::string_view pages) {
  written_ += pages.size();
  if (buffer_.size() + pages.size() > buffer_size)
    if (auto flushed = flush(); !flushed) return flushed;
  if (pages.size() < buffer_size / 4) {
    buffer_.append(pages);
    return {};
  }
  if (const int code = write_all(fd_, pages); code != 0) return failed(code);
  return {};
}

result<void> block_file_writer::append(int fd, std::uint64_t offset, std::uint64_t size) {
  if (auto flushed = flush(); !flushed) return flushed;
  written_ += size;
  auto at = static_cast<off_t>(offset);
  while (size > 0) {
    // A call moves at most 2 GiB.
    const auto n = ::sendfile(fd_, fd, &at, static_cast<std::size_t>(std::min<std::uint64_t>(size, 1 << 30)));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed(errno);
    if (n == 0) return make_error(ec::io, "what was to go to block file " + path_ + " is shorter than it was");
    size -= static_cast<std::uint64_t>(n);
  }
  return {};
}

result<void> block_file_writer::flush() {
  if (const int code = write_all(fd_, buffer_); code != 0) return failed(code);
  buffer_.clear();
  return {};
}

result<std::unique_ptr<block_file>> block_file_writer::finish() {
  std::string index;
  index.reserve(ends_.size() * 8 + 24);
  for (const auto end : ends_) put(index, end);
  const auto checksum = XXH3_64bits(index.data(), index.size());
  put(index, std::uint64_t{ends_.size()});
  put(index, std::uint64_t{checksum});
  put(index, version);
  index.append(magic);
  if (auto flushed = flush(); !flushed) return flushed.error();
  if (const int code = write_all(fd_, index); code != 0) return failed(code);
  // Where the system could not keep what it took, some say so only now.
  if (::close(std::exchange(fd_, -1)) != 0) {
    const int code = errno;
    ::unlink(path_.c_str());
    return failed(code);
  }
  return std::unique_ptr<block_file>{new block_file{std::move(path_), std::move(ends_)}};
}

} // namespace troupe
