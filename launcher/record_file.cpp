#include <troupe/launcher/record_file.hpp>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <troupe/runtime/execution/staged_outputs.hpp>
#include <troupe/runtime/storage/file_io.hpp>
#include <troupe/runtime/storage/file_lock.hpp>

namespace troupe {
namespace {

constexpr std::size_t longest_line = 4 << 20;
/// Executors may be removing the folder, where it is empty, just when it is to be held.
constexpr int most_rounds = 20;
/// Others hold it for as long as they write it.
constexpr std::chrono::seconds patience_with_others{10};

/// True while the folder still is where it was opened.
bool is_in(int parent, int folder) {
  struct stat by_name {
  }, held{};
  return ::fstatat(parent, own_folder, &by_name, AT_SYMLINK_NOFOLLOW) == 0 && ::fstat(folder, &held) == 0 &&
         by_name.st_dev == held.st_dev && by_name.st_ino == held.st_ino;
}

/// Those of processes that were killed.
void remove_unfinished(int folder, const std::string& beginning) {
  const int again = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> entries{again < 0 ? nullptr : ::fdopendir(again), &::closedir};
  if (!entries) return;
  while (const auto* const entry = ::readdir(entries.get()))
    if (std::string_view{entry->d_name}.starts_with(beginning)) ::unlinkat(folder, entry->d_name, 0);
}

} // namespace

record_file::record_file(const std::string& directory, const std::string& name, descriptor folder)
  : path_(directory + "/" + own_folder), name_(name + ".jsonl"), folder_(std::move(folder)) {}

std::optional<record_file> record_file::open(const std::string& directory, const std::string& name) {
  const descriptor parent{::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  for (int round = 0; parent && round < most_rounds; ++round) {
    if (::mkdirat(parent.get(), own_folder, 0777) != 0 && errno != EEXIST) return {};
    descriptor folder{::openat(parent.get(), own_folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
    if (!folder && errno != ENOENT) return {};
    if (!folder) continue;
    if (!lock_within(folder.get(), patience_with_others)) return {};
    if (is_in(parent.get(), folder.get())) return record_file{directory, name, std::move(folder)};
  }
  return {};
}

std::optional<record_file> record_file::look_at(const std::string& directory, const std::string& name) {
  descriptor folder{::open((directory + "/" + own_folder).c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
  if (!folder) return {};
  return record_file{directory, name, std::move(folder)};
}

bool record_file::read(const std::function<void(const std::string& line)>& each) const {
  descriptor file{::openat(folder_.get(), name_.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)};
  if (!file) return errno == ENOENT;
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> in{::fdopen(file.get(), "r"), &std::fclose};
  if (!in) return false;
  static_cast<void>(file.release());
  std::string line;
  for (int c = std::getc(in.get()); c != EOF; c = std::getc(in.get())) {
    if (c != '\n') {
      if (line.size() <= longest_line) line += static_cast<char>(c);
      continue;
    }
    if (line.size() <= longest_line) each(line);
    line.clear();
  }
  return std::ferror(in.get()) == 0;
}

bool record_file::begin() {
  if (!new_name_.empty()) return !failed_;
  // Of this process alone, since where no lock is to be had two may be at it.
  new_name_ = name_ + "-" + std::to_string(::getpid());
  remove_unfinished(folder_.get(), name_ + "-");
  out_ = descriptor{
      ::openat(folder_.get(), new_name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666)};
  failed_ = !out_;
  return !failed_;
}

bool record_file::flush() {
  failed_ = failed_ || write_all(out_.get(), buffer_) != 0;
  buffer_.clear();
  return !failed_;
}

void record_file::add(const std::string& line) {
  if (!begin()) return;
  (buffer_ += line) += '\n';
  if (buffer_.size() > longest_line) flush();
}

bool record_file::commit() {
  if (new_name_.empty()) {
    ::unlinkat(folder_.get(), name_.c_str(), 0);
    ::rmdir(path_.c_str()); // where that was all
    return true;
  }
  if (failed_ || !flush() || !out_.close() ||
      ::renameat(folder_.get(), new_name_.c_str(), folder_.get(), name_.c_str()) != 0) {
    ::unlinkat(folder_.get(), new_name_.c_str(), 0);
    return false;
  }
  return true;
}

} // namespace troupe
