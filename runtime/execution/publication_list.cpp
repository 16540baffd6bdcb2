#include <troupe/runtime/execution/publication_list.hpp>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include <troupe/runtime/execution/remove_tree.hpp>
#include <troupe/runtime/scheduling/command_arguments.hpp>
#include <troupe/runtime/storage/file_io.hpp>
#include <troupe/runtime/storage/file_lock.hpp>

namespace troupe {
namespace {

/// The first entry. The place follows, then each name and its size.
constexpr std::string_view what_it_is = "outputs of a Troupe task with their sizes, to be put in place";
/// Of an older Troupe: names without sizes follow.
constexpr std::string_view what_it_was = "outputs of a Troupe task, to be put in place";
/// Ends each entry. A path never holds it.
constexpr char end_of_name = '\0';

struct file_content {
  std::string text; ///< "" where there is no regular file of this user
  int error = 0;    ///< that kept it from being read
};

file_content content_of_own(const std::string& path) {
  const descriptor file{::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)};
  if (!file) {
    const bool is_none = errno == ENOENT || errno == ENOTDIR || errno == ELOOP;
    return {"", is_none ? 0 : errno};
  }
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return {"", errno};
  if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid()) return {};
  file_content content;
  std::array<char, 16384> part{};
  while (true) {
    const auto got = ::read(file.get(), part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return {"", errno};
    if (got == 0) return content;
    content.text.append(part.data(), static_cast<std::size_t>(got));
  }
}

std::optional<publication_list> parse(const std::string& content) {
  std::vector<std::string> entries;
  for (std::size_t at = 0; at < content.size();) {
    const auto end = content.find(end_of_name, at);
    if (end == content.npos) return {};
    entries.push_back(content.substr(at, end - at));
    at = end + 1;
  }
  if (entries.size() < 3) return {};
  if (entries[0] == what_it_was)
    for (std::size_t i = 2; i < entries.size(); i += 2)
      entries.insert(entries.begin() + static_cast<std::ptrdiff_t>(i) + 1, "-1");
  else if (entries[0] != what_it_is)
    return {};
  if (entries.size() % 2 != 0) return {};
  if (!is_output_name(entries[1]) || entries[1].find('/') != entries[1].npos) return {};
  publication_list list{std::move(entries[1]), {}, {}};
  for (std::size_t i = 2; i < entries.size(); i += 2) {
    if (!is_output_name(entries[i])) return {};
    const auto& digits = entries[i + 1];
    std::int64_t size = 0;
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
    if (code != std::errc{} || end != digits.data() + digits.size()) return {};
    list.names.push_back(std::move(entries[i]));
    list.sizes.push_back(size);
  }
  return list;
}

/// -1 where there is no regular file.
std::int64_t size_of(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) ? status.st_size : -1;
}

/// How long another process is waited for that completes the same.
constexpr std::chrono::seconds patience_with_others{1};

} // namespace

std::string list_of(const staging_place& place) {
  return place.root + "/" + place.name.substr(0, place.name.find('.')) + std::string{list_ending};
}

std::string aside_of(const staging_place& place) {
  return place.root + "/" + std::string{aside_beginning} + place.name;
}

int write_publication_list(const staging_place& place, const std::vector<std::string>& names) {
  const auto list = list_of(place);
  const publication_lock alone{place}; // else what is being copied for an earlier attempt comes after this one
  if (!alone.is_held()) return EBUSY;
  const auto earlier = read_publication_list(list);
  std::string content;
  (content += what_it_is) += end_of_name;
  (content += place.name) += end_of_name;
  for (const auto& name : names) {
    (content += name) += end_of_name;
    (content += std::to_string(size_of(place.file_of(name, names.size())))) += end_of_name;
  }
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
  return parse(content_of_own(path).text);
}

bool is_cut_short(const staging_place& place, const publication_list& list) {
  for (std::size_t i = 0; i < list.names.size(); ++i)
    if (const auto now = size_of(place.file_of(list.names[i], list.names.size())); now >= 0 && now < list.sizes[i])
      return true;
  return false;
}

list_state state_of_list(const staging_place& place) {
  const auto content = content_of_own(list_of(place));
  if (content.error != 0) return list_state::unknown;
  const auto list = parse(content.text);
  return list && list->place == place.name ? list_state::own : list_state::none;
}

publication_lock::publication_lock(const staging_place& place) {
  const auto list = list_of(place);
  constexpr int how = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  file_ = descriptor{::open(list.c_str(), O_RDWR | how)}; // file servers want leave to write
  if (!file_) file_ = descriptor{::open(list.c_str(), O_RDONLY | how)};
  held_ = !file_ || lock_within(file_.get(), patience_with_others);
}

void remove_publication_list(const staging_place& place) {
  if (state_of_list(place) == list_state::own) ::unlink(list_of(place).c_str());
}

} // namespace troupe
