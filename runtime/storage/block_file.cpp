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
constexpr std::size_t trailer_size = 24;

error io_error(const char* what, const std::string& path, int code) {
  return make_error(ec::io, std::string{what} + " block file " + path + ": " + describe_errno(code));
}

template <class Number>
void put(std::string& to, Number number) {
  for (std::size_t i = 0; i < sizeof number; ++i)
    to.push_back(static_cast<char>(static_cast<std::uint64_t>(number) >> (8 * i)));
}

template <class Number>
Number get(std::string_view from, std::size_t at) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i)
    number |= std::uint64_t{static_cast<unsigned char>(from[at + i])} << (8 * i);
  return static_cast<Number>(number);
}

/// Fills `to`; false where the file does not hold so much.
bool read_at(int fd, std::uint64_t offset, std::string& to) {
  for (std::size_t done = 0; done < to.size();) {
    const auto n = ::pread(fd, to.data() + done, to.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

} // namespace

block_file::~block_file() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

result<std::unique_ptr<block_file>> block_file::adopt(descriptor file) {
  const auto broken = [](const char* why) {
    return make_error(ec::malformed, std::string{"this is no block file: "} + why);
  };
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return broken("not a regular file");
  const auto size = static_cast<std::uint64_t>(status.st_size);
  std::string trailer(trailer_size, '\0');
  if (size < trailer_size || !read_at(file.get(), size - trailer_size, trailer)) return broken("it is too short");
  const auto count = get<std::uint64_t>(trailer, 0);
  if (std::string_view{trailer}.substr(20) != magic || get<std::uint32_t>(trailer, 16) != version)
    return broken("it ends in something else than an index");
  if (count > (size - trailer_size) / 8) return broken("its index is larger than the file");
  std::string index(count * 8, '\0');
  const auto pages = size - trailer_size - index.size();
  if (!read_at(file.get(), pages, index)) return broken("its index cannot be read");
  if (XXH3_64bits(index.data(), index.size()) != get<std::uint64_t>(trailer, 8)) return broken("its index is damaged");
  std::vector<std::uint64_t> ends(count);
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    ends[i] = get<std::uint64_t>(index, 8 * i);
    if (ends[i] < before) return broken("its index runs backwards");
    before = ends[i];
  }
  if (before != pages) return broken("its index is of another file");
  std::unique_ptr<block_file> made{new block_file{{}, std::move(ends)}};
  made->held_ = std::make_shared<const descriptor>(std::move(file));
  return made;
}

result<std::shared_ptr<const descriptor>> block_file::descriptor_of_all() const {
  if (held_) return held_;
  const std::lock_guard lock{mutex_};
  if (auto opened = opened_.lock()) return opened;
  descriptor file{::open(path_.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC)};
  if (!file) return io_error("cannot open", path_, errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || static_cast<std::uint64_t>(status.st_size) < size())
    return make_error(ec::io, "block file " + path_ + " is no longer what was written; its task has to run again");
  const auto opened = std::make_shared<const descriptor>(std::move(file));
  opened_ = opened;
  return opened;
}

result<file_piece> block_file::open(std::uint32_t bucket) const {
  if (size(bucket) == 0) return file_piece{};
  auto file = descriptor_of_all();
  if (!file) return file.error();
  return file_piece{std::move(*file), begin_of(bucket), size(bucket)};
}

result<block_file_writer> block_file_writer::create(std::string path) {
  descriptor file{::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)};
  if (!file) return io_error("cannot create", path, errno);
  return block_file_writer{std::move(path), false, std::move(file)};
}

result<block_file_writer> block_file_writer::create_in_memory(const std::string& name) {
  descriptor file{::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  if (!file) return io_error("cannot create in memory", name, errno);
  return block_file_writer{name, true, std::move(file)};
}

block_file_writer::~block_file_writer() {
  if (file_ && !in_memory_) ::unlink(path_.c_str());
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
  if (const int code = write_all(file_.get(), pages); code != 0) return failed(code);
  return {};
}

result<void> block_file_writer::append(int fd, std::uint64_t offset, std::uint64_t size) {
  if (auto flushed = flush(); !flushed) return flushed;
  written_ += size;
  auto at = static_cast<off_t>(offset);
  while (size > 0) {
    // A call moves at most 2 GiB.
    const auto n = ::sendfile(file_.get(), fd, &at, static_cast<std::size_t>(std::min<std::uint64_t>(size, 1 << 30)));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed(errno);
    if (n == 0) return make_error(ec::io, "what was to go to block file " + path_ + " is shorter than it was");
    size -= static_cast<std::uint64_t>(n);
  }
  return {};
}

result<void> block_file_writer::flush() {
  if (const int code = write_all(file_.get(), buffer_); code != 0) return failed(code);
  buffer_.clear();
  return {};
}

result<std::unique_ptr<block_file>> block_file_writer::finish() {
  std::string index;
  index.reserve(ends_.size() * 8 + trailer_size);
  for (const auto end : ends_) put(index, end);
  const auto checksum = XXH3_64bits(index.data(), index.size());
  put(index, std::uint64_t{ends_.size()});
  put(index, std::uint64_t{checksum});
  put(index, version);
  index.append(magic);
  if (auto flushed = flush(); !flushed) return flushed.error();
  if (const int code = write_all(file_.get(), index); code != 0) return failed(code);
  if (in_memory_) {
    // From here on nobody can change it, whoever has a descriptor; what is handed out cannot even try.
    if (::fcntl(file_.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
      return failed(errno);
    descriptor read_only{::open(("/proc/self/fd/" + std::to_string(file_.get())).c_str(), O_RDONLY | O_CLOEXEC)};
    if (!read_only) return failed(errno);
    file_ = {};
    std::unique_ptr<block_file> made{new block_file{{}, std::move(ends_)}};
    made->in_memory_ = true;
    made->held_ = std::make_shared<const descriptor>(std::move(read_only));
    return made;
  }
  // Where the system could not keep what it took, some say so only now.
  if (!file_.close()) {
    const int code = errno;
    ::unlink(path_.c_str());
    return failed(code);
  }
  return std::unique_ptr<block_file>{new block_file{std::move(path_), std::move(ends_)}};
}

} // namespace troupe
