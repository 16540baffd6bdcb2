#include <troupe/runtime/storage/block_file.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include <troupe/runtime/little_endian.hpp>
#include <troupe/runtime/storage/file_io.hpp>

namespace troupe {

namespace {

constexpr std::uint32_t version = 2;
constexpr std::string_view magic = "TRPF";
constexpr std::size_t trailer_size = 24;
constexpr std::size_t entry_size = 16; ///< of the index

error io_error(const char* what, const std::string& path, int code) {
  return make_error(ec::io, std::string{what} + " block file " + path + ": " + describe_errno(code));
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

/// What an entry of the index is told by: pages of another bucket, or a piece of them, are whole pages, too.
std::uint64_t checksum_of(std::uint64_t bucket, std::uint64_t begin, std::uint64_t end) {
  std::string entry;
  for (const auto number : {bucket, begin, end}) little_endian::append(entry, number);
  return XXH3_64bits(entry.data(), entry.size());
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
  const auto count = little_endian::read<std::uint64_t>(trailer);
  if (std::string_view{trailer}.substr(20) != magic || little_endian::read<std::uint32_t>(trailer, 16) != version)
    return broken("it ends in something else than an index");
  if (count > std::min<std::uint64_t>((size - trailer_size) / entry_size, std::numeric_limits<std::uint32_t>::max()))
    return broken("its index is larger than the file");
  std::string index(count * entry_size, '\0');
  const auto pages = size - trailer_size - index.size();
  if (!read_at(file.get(), pages, index)) return broken("its index cannot be read");
  if (XXH3_64bits(index.data(), index.size()) != little_endian::read<std::uint64_t>(trailer, 8))
    return broken("its index is damaged");
  std::uint64_t before = 0;
  for (std::size_t at = 0; at < index.size(); at += entry_size) {
    const auto end = little_endian::read<std::uint64_t>(index, at);
    if (end < before) return broken("its index runs backwards");
    before = end;
  }
  if (before != pages) return broken("its index is of another file");
  std::unique_ptr<block_file> made{new block_file{{}, static_cast<std::uint32_t>(count), pages}};
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
  auto file = descriptor_of_all();
  if (!file) return file.error();
  std::string entries(bucket == 0 ? entry_size : 2 * entry_size, '\0'); // where a bucket begins the one before says
  if (!read_at((*file)->get(), size_ + entry_size * (std::uint64_t{bucket} + 1) - entries.size(), entries))
    return make_error(ec::io, "the index of block file " + path_ + " cannot be read");
  const auto own = entries.size() - entry_size;
  const auto begin = bucket == 0 ? 0 : little_endian::read<std::uint64_t>(entries);
  const auto end = little_endian::read<std::uint64_t>(entries, own);
  if (begin > end || end > size_ ||
      little_endian::read<std::uint64_t>(entries, own + 8) != checksum_of(bucket, begin, end))
    return make_error(ec::io, "the index of block file " + path_ + " is damaged");
  if (begin == end) return file_piece{};
  return file_piece{std::move(*file), begin, end - begin};
}

result<file_piece> block_file::open_whole() const {
  auto file = descriptor_of_all();
  if (!file) return file.error();
  return file_piece{std::move(*file), 0, size_ + entry_size * std::uint64_t{buckets_} + trailer_size};
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
  if (file_ && owned_) ::unlink(path_.c_str());
}

error block_file_writer::failed(int code) const { return io_error("cannot write", path_, code); }

result<void> block_file_writer::append(std::string_view pages) {
  written_ += pages.size();
  if (const int code = pieces_.append(file_.get(), pages); code != 0) return failed(code);
  return {};
}

result<void> block_file_writer::append(int fd, std::uint64_t offset, std::uint64_t size) {
  if (size == 0) return {};
  if (const int code = pieces_.flush(file_.get()); code != 0) return failed(code);
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

result<void> block_file_writer::write_index() {
  std::string index;
  index.reserve(ends_.size() * entry_size + trailer_size);
  std::uint64_t begin = 0;
  for (std::size_t bucket = 0; bucket < ends_.size(); ++bucket) {
    little_endian::append(index, ends_[bucket]);
    little_endian::append(index, checksum_of(bucket, begin, ends_[bucket]));
    begin = ends_[bucket];
  }
  const auto checksum = XXH3_64bits(index.data(), index.size());
  little_endian::append(index, std::uint64_t{ends_.size()});
  little_endian::append(index, std::uint64_t{checksum});
  little_endian::append(index, version);
  index.append(magic);
  for (const int code : {pieces_.append(file_.get(), index), pieces_.flush(file_.get())})
    if (code != 0) return failed(code);
  return {};
}

result<void> block_file_writer::publish() {
  if (auto written = write_index(); !written) return written;
  if (!file_.close()) {
    const auto why = failed(errno);
    ::unlink(path_.c_str());
    return why;
  }
  owned_ = false;
  return {};
}

result<std::unique_ptr<block_file>> block_file_writer::finish() {
  if (auto written = write_index(); !written) return written.error();
  if (in_memory_) {
    // From here on nobody can change it, whoever has a descriptor; what is handed out cannot even try.
    if (::fcntl(file_.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
      return failed(errno);
    descriptor read_only{::open(("/proc/self/fd/" + std::to_string(file_.get())).c_str(), O_RDONLY | O_CLOEXEC)};
    if (!read_only) return failed(errno);
    std::unique_ptr<block_file> made{new block_file{{}, static_cast<std::uint32_t>(ends_.size()), written_}};
    made->in_memory_ = true;
    made->held_ = std::make_shared<const descriptor>(std::move(read_only));
    return made;
  }
  std::unique_ptr<block_file> made{new block_file{path_, static_cast<std::uint32_t>(ends_.size()), written_}};
  owned_ = false; // from here on the file goes with `made`
  // Where the system could not keep what it took, some say so only now.
  if (!file_.close()) return failed(errno);
  return made;
}

} // namespace troupe
