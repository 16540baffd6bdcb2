#include <troupe/runtime/execution/publication_list.hpp>

#include <array>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <iterator>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <troupe/runtime/execution/remove_tree.hpp>
#include <troupe/runtime/scheduling/command_arguments.hpp>
#include <troupe/runtime/storage/file_io.hpp>

namespace troupe {
namespace {

/// The first entry: what the file is. The place follows, then the names.
constexpr std::string_view what_it_is = "outputs of a Troupe task, to be put in place";
/// Ends each entry. A path never holds it.
constexpr char end_of_name = '\0';

/// True for this user, and for the owner of the output directory, who may do anything there: a file server may give
/// another owner to what this user makes.
bool may_be_believed(uid_t owner, const std::string& list) {
  const auto output_directory = std::filesystem::path{list}.parent_path().parent_path().parent_path();
  struct stat status {};
  return owner == ::geteuid() || (::lstat(output_directory.c_str(), &status) == 0 && owner == status.st_uid);
}

/// All of a regular file that may be believed; "" for any other.
std::string content_of_own(const std::string& path) {
  const descriptor file{::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)};
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) || !may_be_believed(status.st_uid, path))
    return "";
  std::string content;
  std::array<char, 16384> part{};
  while (true) {
    const auto got = ::read(file.get(), part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return "";
    if (got == 0) return content;
    content.append(part.data(), static_cast<std::size_t>(got));
  }
}

} // namespace

std::string list_of(const staging_place& place) {
  return place.root + "/" + place.name.substr(0, place.name.find('.')) + std::string{list_ending};
}

int write_publication_list(const staging_place& place, const std::vector<std::string>& names) {
  const auto list = list_of(place);
  const auto earlier = read_publication_list(list);
  std::string content;
  (content += what_it_is) += end_of_name;
  (content += place.name) += end_of_name;
  for (const auto& name : names) (content += name) += end_of_name;
  const auto beside = list + "-new";
  descriptor file{::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600)};
  if (!file) return errno;
  int why = write_all(file.get(), content);
  if (why == 0 && (::fdatasync(file.get()) != 0 || !file.close() || ::rename(beside.c_str(), list.c_str()) != 0))
    why = errno;
  if (why != 0) {
    ::unlink(beside.c_str());
    return why;
  }
  const descriptor root{::open(place.root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (root) static_cast<void>(::fsync(root.get())); // a file system that cannot has no name to lose
  // From here on nothing of it can be moved over what this one moves.
  if (earlier && earlier->place != place.name) remove_tree(place.root + "/" + earlier->place);
  return 0;
}

std::optional<publication_list> read_publication_list(const std::string& path) {
  const auto content = content_of_own(path);
  std::vector<std::string> entries;
  for (std::size_t at = 0; at < content.size();) {
    const auto end = content.find(end_of_name, at);
    if (end == content.npos) return {};
    entries.push_back(content.substr(at, end - at));
    at = end + 1;
  }
  if (entries.size() < 3 || entries[0] != what_it_is) return {};
  for (std::size_t i = 1; i < entries.size(); ++i)
    if (!is_output_name(entries[i])) return {};
  if (entries[1].find('/') != entries[1].npos) return {};
  publication_list list{std::move(entries[1]), {}};
  list.names.assign(std::make_move_iterator(entries.begin() + 2), std::make_move_iterator(entries.end()));
  return list;
}

publication_lock::publication_lock(const staging_place& place)
  : file_(::open(list_of(place).c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)) {
  while (file_ && ::flock(file_.get(), LOCK_EX) != 0 && errno == EINTR) {}
}

void remove_publication_list(const staging_place& place) {
  const auto path = list_of(place);
  if (const auto list = read_publication_list(path); list && list->place == place.name) ::unlink(path.c_str());
}

} // namespace troupe
