#include <troupe/runtime/api/text_output.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <troupe/runtime/api/job_error.hpp>
#include <troupe/runtime/api/serialize.hpp>
#include <troupe/runtime/config/path_text.hpp>
#include <troupe/runtime/resources/quote.hpp>
#include <troupe/runtime/transfer/local_address.hpp>

namespace troupe::detail {

namespace fs = std::filesystem;

namespace {

constexpr auto place_apart = "_temporary";
/// In it: who writes, and locked as long as he does.
constexpr std::string_view writer_mark = ".troupe-writer";
/// Begins the names of folders in which attempts write.
constexpr std::string_view staging_name = "troupe-";

std::string part_name(std::uint32_t partition) {
  std::array<char, 24> name{};
  std::snprintf(name.data(), name.size(), "part-%05u", partition);
  return name.data();
}

[[noreturn]] void cannot(const char* verb, const std::string& path, const std::error_code& why) {
  throw job_error(make_error(ec::io, std::string{"cannot "} + verb + " '" + path + "': " + why.message()));
}

class text_writer final : public terminal<std::string> {
public:
  text_writer(const task_context& context, std::string_view captures)
    : name_(part_name(context.partition) + ".attempt-" + std::to_string(context.attempt) + "-of-executor-" +
            std::to_string(context.executor.value)),
      path_(decode_value<std::string>(captures) + "/" + name_),
      file_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {
    if (!file_) fail("make");
    buffer_.reserve(buffer_bytes);
  }
  text_writer(const text_writer&) = delete;
  text_writer& operator=(const text_writer&) = delete;
  /// Of an attempt that has not succeeded nothing stays: on a full disk that is the room that the next one needs.
  ~text_writer() override {
    if (!finished_) ::unlink(path_.c_str());
  }
  static std::unique_ptr<terminal_sink> make(task_context& context, std::string_view captures) {
    return std::make_unique<text_writer>(context, captures);
  }

  void push(std::string&& line) override {
    if (buffer_.size() + line.size() >= buffer_bytes) {
      flush(buffer_);
      buffer_.clear();
    }
    if (line.size() >= buffer_bytes)
      flush(line);
    else
      buffer_ += line;
    buffer_ += '\n';
  }
  void finish() override {
    flush(buffer_);
    if (!file_.close()) fail("write");
    finished_ = true;
  }
  std::string take_result() override { return encode_value(name_); }

private:
  static constexpr std::size_t buffer_bytes = std::size_t{256} * 1024;

  void flush(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto n = ::write(file_.get(), bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail("write");
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  [[noreturn]] void fail(const char* verb) const {
    throw std::runtime_error(std::string{"cannot "} + verb + " '" + path_ + "': " + std::strerror(errno) +
                             "; every executor must see the output directory under the same path");
  }

  const std::string name_;
  const std::string path_;
  descriptor file_;
  std::string buffer_;
  bool finished_ = false;
};

/// Whether nothing else is in a folder.
bool has_only(const std::string& directory, const std::string& name) {
  std::error_code failed;
  for (fs::directory_iterator entry{directory, failed}, end; !failed && entry != end; entry.increment(failed))
    if (entry->path().filename() != name) return false;
  return !failed;
}

/// True on file systems of one machine, where a lock is seen by all who see the file.
bool sees_all_locks(int fd) {
  struct statfs system {};
  // ext2 to ext4, XFS, Btrfs, tmpfs, overlayfs, ZFS, F2FS
  constexpr std::array<std::uint32_t, 7> local{0xef53,     0x58465342, 0x9123683e, 0x01021994,
                                               0x794c7630, 0x2fc12fc1, 0xf2f52010};
  return ::fstatfs(fd, &system) == 0 &&
         std::find(local.begin(), local.end(), static_cast<std::uint32_t>(system.f_type)) != local.end();
}

/// What a mark says: a lock of another machine is not seen.
std::string writer_of_this_machine() {
  std::string id;
  std::getline(std::ifstream{"/etc/machine-id"}, id);
  return "troupe on " + this_host() + " " + id + "\n";
}

bool is_at(int fd, const std::string& path) {
  struct stat open {};
  struct stat there {};
  return ::fstat(fd, &open) == 0 && ::lstat(path.c_str(), &there) == 0 && open.st_dev == there.st_dev &&
         open.st_ino == there.st_ino;
}

/// Whether nothing is in the place apart but what a program of this kind makes.
bool has_only_staging(const std::string& apart) {
  std::error_code failed;
  for (fs::directory_iterator entry{apart, failed}, end; !failed && entry != end; entry.increment(failed)) {
    const auto name = entry->path().filename().string();
    if (name != writer_mark && !(entry->is_directory(failed) && (name == "over" || name.starts_with(staging_name))))
      return false;
  }
  return !failed;
}

/// Removes all but the mark. What is renamed first takes no more files of tasks that have not noticed their end.
void clear(const std::string& apart, std::error_code& code) {
  std::vector<fs::path> all;
  for (fs::directory_iterator entry{apart, code}, end; !code && entry != end; entry.increment(code))
    if (entry->path().filename() != writer_mark) all.push_back(entry->path());
  const auto over = apart + "/over";
  for (const auto& path : all) {
    std::error_code ignored;
    if (path != over) fs::rename(path, over, ignored);
    if (!code) fs::remove_all(ignored ? path : fs::path{over}, code);
  }
}

/// A folder and those above it, the innermost first, up to one that is there.
std::vector<std::string> missing_folders(fs::path path) {
  std::vector<std::string> missing;
  std::error_code ignored;
  while (path.has_relative_path() && fs::symlink_status(path, ignored).type() == fs::file_type::not_found) {
    missing.push_back(path);
    path = path.parent_path();
  }
  return missing;
}

} // namespace

text_directory::text_directory(const std::string& path) {
  if (path.empty()) throw job_error(make_error(ec::invalid_argument, "the output directory has no name"));
  if (has_part_for_a_shell(path))
    throw job_error(
        make_error(ec::invalid_argument, "the output directory '" + path +
                                             "' has ~ or $, which are for a shell to expand; give the path, "
                                             "as with std::getenv"));
  std::error_code code;
  path_ = fs::absolute(path, code); // as it is: what '..' behind a link means is for the system to say
  if (code) cannot("find", path, code);
  apart_ = path_ + "/" + place_apart;
  staging_ = apart_ + "/" + std::string{staging_name} + "XXXXXX";
  constexpr int most_rounds = 5; // another one that fails may be removing a folder above that it has made
  bool is_new = false;
  for (int round = 0; round < most_rounds; ++round) {
    made_ = missing_folders(path_);
    is_new = fs::create_directories(path_, code);
    if (code != std::errc::no_such_file_or_directory) break;
  }
  if (code) {
    roll_back();
    cannot("make the directory", path_, code);
  }
  if (!is_new) made_.clear();
  const bool is_empty = is_new || fs::is_empty(path_, code);
  if (code) cannot("read the directory", path_, code);
  // The directory belongs to who makes the place apart, and after his end to who locks his mark.
  const bool is_own = is_empty ? fs::create_directory(apart_, code) && mark_as_own(code) : take_over();
  if (!code && !is_own)
    throw job_error(make_error(ec::invalid_argument, "the output directory '" + path_ + "' is not empty: " + in_use()));
  if (!code) clear(apart_, code);
  if (!code && !::mkdtemp(staging_.data())) code = {errno, std::generic_category()};
  if (!code)
    fs::permissions(staging_, fs::status(apart_, code).permissions(), code); // executors may be somebody else's
  if (!code) return;
  roll_back();
  cannot("make a directory in", path_, code);
}

/// @returns false where another program has taken it over already, or `code` says why it cannot be done
bool text_directory::mark_as_own(std::error_code& code) {
  const auto mark = apart_ + "/" + std::string{writer_mark};
  const auto text = writer_of_this_machine();
  lock_ = descriptor{::open(mark.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644)};
  if (!lock_) {
    code = {errno, std::generic_category()};
    ::rmdir(apart_.c_str());
    return false;
  }
  if (::write(lock_.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    code = {ENOSPC, std::generic_category()}; // so few bytes are written at once, or not at all
    return false;
  }
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) return errno != EWOULDBLOCK; // without locks nobody takes it over
  return is_at(lock_.get(), mark);
}

/// @returns true where nothing is there but what a program has left that was killed, which is this one's now
bool text_directory::take_over() {
  const auto mark = apart_ + "/" + std::string{writer_mark};
  if (!has_only(path_, place_apart)) return false;
  lock_ = descriptor{::open(mark.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)};
  struct stat status {};
  std::string text(512, '\0');
  if (!lock_ || ::fstat(lock_.get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != ::geteuid())
    return false;
  const auto n = ::read(lock_.get(), text.data(), text.size());
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return text == writer_of_this_machine() && sees_all_locks(lock_.get()) &&
         ::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0 && is_at(lock_.get(), mark) && has_only_staging(apart_);
}

std::string text_directory::in_use() const {
  if (!has_only(path_, place_apart)) return "remove it, or name another one";
  return "another program is just writing there, or one that was killed has left " + apart_ +
         ": remove that where none is";
}

text_directory::~text_directory() {
  if (!committed_) roll_back();
}

void text_directory::roll_back() noexcept {
  std::error_code ignored;
  remove_apart();
  for (std::uint32_t p = 0; p < published_; ++p) fs::remove(path_ + "/" + part_name(p), ignored);
  // Folders alone, where nobody has put anything in: a link or a file of this name is somebody else's by now.
  for (const auto& folder : made_) ::rmdir(folder.c_str());
}

/// Tasks that have not noticed yet that they are to end make no more files in what has gone.
void text_directory::remove_apart() noexcept {
  if (!lock_) return; // it may be another program's
  std::error_code ignored;
  clear(apart_, ignored);
  // The mark last: who is killed before that leaves what the next one knows.
  fs::remove(apart_ + "/" + std::string{writer_mark}, ignored);
  fs::remove(apart_, ignored);
}

void text_directory::publish(std::string_view name) {
  // It came from an executor: it says which attempt made the part, and nothing else.
  if (!name.starts_with(part_name(published_) + ".attempt-") || name.find('/') != std::string_view::npos)
    throw job_error(make_error(ec::malformed, "an executor says that it has written part " +
                                                  std::to_string(published_) + " of '" + path_ + "' as " +
                                                  quote(name)));
  std::error_code code;
  fs::rename(staging_ + "/" + std::string{name}, path_ + "/" + part_name(published_), code);
  if (code == std::errc::no_such_file_or_directory)
    throw job_error(make_error(ec::io, "an executor has written '" + staging_ + "/" + std::string{name} +
                                           "', which is not to be seen here: this program and all executors must see "
                                           "the output directory under the same path"));
  if (code) cannot("publish", staging_ + "/" + std::string{name}, code);
  ++published_;
}

void text_directory::commit() {
  remove_apart();
  const auto mark = path_ + "/_SUCCESS";
  if (!descriptor{::open(mark.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)})
    cannot("write", mark, {errno, std::generic_category()});
  committed_ = true;
}

operation text_terminal(const std::string& staging) { return make_operation<text_writer>(encode_value(staging)); }

} // namespace troupe::detail
