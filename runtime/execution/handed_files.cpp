#include <troupe/runtime/execution/handed_files.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <troupe/runtime/storage/descriptor.hpp>

namespace troupe {

namespace {

namespace fs = std::filesystem;

/// One entry of the list: u64 size, i64 time of the last change in nanoseconds, u32 permissions, u32 length of the
/// path, the path; all little-endian.
struct listed_file {
  std::uint64_t size = 0;
  std::int64_t changed = 0;
  std::uint32_t permissions = 0;
  std::string path;
};

listed_file describe(const struct stat& status, const std::string& path) {
  return {static_cast<std::uint64_t>(status.st_size),
          std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec, status.st_mode & 0777u, path};
}

void put(std::string& out, std::uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(number >> (8 * i));
}

void append(std::string& out, const listed_file& file) {
  put(out, file.size, 8);
  put(out, static_cast<std::uint64_t>(file.changed), 8);
  put(out, file.permissions, 4);
  put(out, file.path.size(), 4);
  out += file.path;
}

std::uint64_t take(std::string_view& in, std::size_t bytes) {
  if (in.size() < bytes) throw std::runtime_error("a list of files is cut short");
  std::uint64_t number = 0;
  for (std::size_t i = bytes; i-- > 0;) number = number << 8 | static_cast<unsigned char>(in[i]);
  in.remove_prefix(bytes);
  return number;
}

std::vector<listed_file> read_list(std::string_view in) {
  std::vector<listed_file> files;
  while (!in.empty()) {
    listed_file file;
    file.size = take(in, 8);
    file.changed = static_cast<std::int64_t>(take(in, 8));
    file.permissions = static_cast<std::uint32_t>(take(in, 4)) & 0777u;
    const auto length = take(in, 4);
    if (length > in.size()) throw std::runtime_error("a list of files is cut short");
    file.path = in.substr(0, length);
    in.remove_prefix(length);
    files.push_back(std::move(file));
  }
  return files;
}

[[noreturn]] void fail(const std::string& what, const std::string& path) {
  throw std::runtime_error(what + " " + path + ": " + std::strerror(errno));
}

void leave_when(const stop_event& stop) {
  if (stop.requested()) throw std::runtime_error("it was asked to end");
}

/// Whether it lies here as it was listed.
bool is_here(const listed_file& file) {
  struct stat status {};
  if (::stat(file.path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  const auto found = describe(status, file.path);
  return found.size == file.size && found.changed == file.changed;
}

/// Bytes of a piece that are looked at as one.
constexpr std::size_t hole_bytes = 4096;

bool is_zero(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) { return c == 0; });
}

/// Zeros that a piece begins with and that a file need not hold: a hole reads the same.
std::size_t zeros_at(std::string_view bytes) {
  std::size_t n = 0;
  while (bytes.size() - n >= hole_bytes && is_zero(bytes.substr(n, hole_bytes))) n += hole_bytes;
  return n;
}

/// Bytes that come before such zeros. @pre the piece does not begin with them
std::size_t data_at(std::string_view bytes) {
  std::size_t n = std::min(bytes.size(), hole_bytes);
  while (n < bytes.size() && zeros_at(bytes.substr(n, hole_bytes)) == 0) n = std::min(bytes.size(), n + hole_bytes);
  return n;
}

/// What it was, but for its owner and group: also its holes, so that it takes no more room, and its time.
void copy_from_block(shuffle_source& source, const partition_place& input, std::uint32_t bucket,
                     const listed_file& file, const std::string& path, const stop_event& stop) {
  const descriptor to{
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, file.permissions | S_IRUSR | S_IWUSR)};
  if (!to) fail("cannot write the input", path);
  std::uint64_t written = 0;
  source.read_partition(input, bucket, [&](std::string_view bytes) {
    leave_when(stop);
    while (!bytes.empty()) {
      const auto zeros = zeros_at(bytes);
      const auto n = zeros > 0 ? static_cast<ssize_t>(zeros)
                               : ::pwrite(to.get(), bytes.data(), data_at(bytes), static_cast<off_t>(written));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) fail("cannot write the input", path);
      written += static_cast<std::uint64_t>(n);
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  });
  if (written != file.size)
    throw std::runtime_error("the input " + file.path + " came with " + std::to_string(written) + " bytes of " +
                             std::to_string(file.size));
  const auto changed = std::chrono::nanoseconds{file.changed};
  const auto second = std::chrono::floor<std::chrono::seconds>(changed); // also before 1970
  const std::array<timespec, 2> times{timespec{0, UTIME_OMIT}, timespec{second.count(), (changed - second).count()}};
  if (::ftruncate(to.get(), static_cast<off_t>(written)) != 0) fail("cannot write the input", path);
  // Not every file system can keep them.
  static_cast<void>(!::fchmod(to.get(), file.permissions));
  static_cast<void>(!::futimens(to.get(), times.data()));
}

} // namespace

bool may_differ_between_hosts(const std::string& directory) {
  struct statfs status {};
  if (::statfs(directory.c_str(), &status) != 0) return true;
  // NFS, SMB2, CIFS, Lustre, GPFS, Ceph, BeeGFS, 9p, AFS, GFS2, OCFS2
  constexpr std::array<std::uint32_t, 11> shared{0x6969,     0xfe534d42, 0xff534d42, 0x0bd00bd0, 0x47504653, 0x00c36400,
                                                 0x19830326, 0x01021997, 0x5346414f, 0x01161970, 0x7461636f};
  for (const auto magic : shared)
    if (static_cast<std::uint32_t>(status.f_type) == magic) return false;
  return true;
}

block_content pack_files(const std::vector<packed_file>& files, bucket_writer::options how, const stop_event& stop) {
  how.buckets = static_cast<std::uint32_t>(files.size() + 1);
  bucket_writer writer{std::move(how)};
  std::vector<char> buffer(64 << 10);
  for (std::uint32_t i = 0; i < files.size(); ++i) {
    const auto& path = files[i].read_from;
    const descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    struct stat status {};
    if (!file || ::fstat(file.get(), &status) != 0) fail("cannot read the output", path);
    auto listed = describe(status, files[i].listed_as);
    listed.size = 0;
    for (;;) {
      leave_when(stop);
      const auto n = ::read(file.get(), buffer.data(), buffer.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail("cannot read the output", path);
      if (n == 0) break;
      writer.page(i + 1).append(buffer.data(), static_cast<std::size_t>(n));
      writer.wrote(i + 1);
      listed.size += static_cast<std::uint64_t>(n);
    }
    append(writer.page(0), listed);
    writer.wrote(0);
  }
  return writer.finish();
}

std::map<std::string, std::string> unpack_files(shuffle_source& source, const partition_place& input,
                                                const std::string& directory, const stop_event& stop) {
  std::string list;
  source.read_partition(input, 0, [&](std::string_view bytes) { list += bytes; });
  std::map<std::string, std::string> places;
  std::uint32_t bucket = 0;
  for (const auto& file : read_list(list)) {
    ++bucket;
    if (is_here(file)) {
      places[file.path] = file.path;
      continue;
    }
    // Under a folder of its own, so that the file keeps its name.
    const auto folder = directory + "/" + std::to_string(bucket);
    fs::create_directories(folder);
    const auto place = folder + "/" + fs::path{file.path}.filename().string();
    copy_from_block(source, input, bucket, file, place, stop);
    places[file.path] = place;
  }
  return places;
}

} // namespace troupe
