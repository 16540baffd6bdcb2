#include <troupe/runtime/execution/made_mark.hpp>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <exception>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <xxhash.h>

namespace troupe {
namespace {

constexpr const char* attribute = "user.troupe.made";
/// Seconds by which the time of a file may differ on a file system that it was copied to and that knows no parts of
/// them.
constexpr std::int64_t coarseness = 2;

/// Whether a file was written when its mark says so, as far as its file system tells. @param text SECONDS.NANOSECONDS
bool is_written(std::string_view text, const timespec& then) {
  const auto point = text.find('.');
  const auto number = [](std::string_view digits) {
    std::int64_t value = -1;
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return code == std::errc{} && end == digits.data() + digits.size() ? value : -1;
  };
  const auto seconds = number(text.substr(0, point));
  if (seconds < 0) return false;
  // An earlier version has noted no parts of a second.
  if (point == text.npos || then.tv_nsec == 0)
    return seconds >= then.tv_sec - coarseness && seconds <= then.tv_sec + coarseness;
  const auto rest = number(text.substr(point + 1));
  const auto is_rounded_to = [&](std::int64_t unit) { return then.tv_nsec == rest - rest % unit; };
  return rest >= 0 && seconds == then.tv_sec && (is_rounded_to(1) || is_rounded_to(100) || is_rounded_to(1000));
}

/// Of the file's name with that of its folder, which may be mounted elsewhere next time, and of its size. Short, so
/// that the attribute finds room in the inode.
std::string signature_of(const std::string& output_directory, std::string_view name, std::int64_t bytes) {
  auto text = output_directory.substr(output_directory.rfind('/') + 1) + "/" + std::string{name};
  text += '\0' + std::to_string(bytes);
  char out[17];
  std::snprintf(out, sizeof out, "%016llx", static_cast<unsigned long long>(XXH3_64bits(text.data(), text.size())));
  return out;
}

/// Changes the mode of a file that is no link. @returns whether it could
bool set_mode(const std::string& file, mode_t mode) {
  return ::fchmodat(AT_FDCWD, file.c_str(), mode & 07777, AT_SYMLINK_NOFOLLOW) == 0;
}

} // namespace

void mark_made(const std::string& file, const staging_place& place, std::string_view name) noexcept {
  try {
    struct stat status {};
    if (::lstat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink > 1) return;
    const auto text = place.root.substr(place.root.rfind('/') + 1) + " " +
                      signature_of(place.to, name, status.st_size) + " " + std::to_string(status.st_mtim.tv_sec) + "." +
                      std::to_string(status.st_mtim.tv_nsec);
    const auto set = [&] { return ::lsetxattr(file.c_str(), attribute, text.data(), text.size(), 0); };
    if (set() == 0 || errno != EACCES || (status.st_mode & S_IWUSR) != 0) return;
    if (!set_mode(file, status.st_mode | S_IWUSR)) return; // an attribute is written like content
    set();
    set_mode(file, status.st_mode);
  } catch (const std::exception&) { // no memory: the file stays without a mark
  }
}

made_file made_by(const std::string& output_directory, std::string_view name) {
  const auto path = output_directory + "/" + std::string{name};
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return {};
  if (!S_ISREG(status.st_mode)) return {maker::somebody_else, {}};
  char text[1024];
  const auto size = ::lgetxattr(path.c_str(), attribute, text, sizeof text);
  // One that may not be read was made by somebody else, or was closed since.
  const auto none = [] { return errno == ENODATA || errno == ERANGE || errno == EACCES; };
  if (size < 0) return {none() ? maker::somebody_else : maker::unknown, {}};
  const std::string_view mark{text, static_cast<std::size_t>(size)};
  const auto run = mark.substr(0, mark.find(' '));
  const auto expected = std::string{run} + " " + signature_of(output_directory, name, status.st_size) + " ";
  const bool is_as_made = mark.starts_with(expected) && is_written(mark.substr(expected.size()), status.st_mtim);
  return is_as_made ? made_file{maker::task, std::string{run}} : made_file{maker::somebody_else, {}};
}

} // namespace troupe
