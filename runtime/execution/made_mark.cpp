#include <troupe/runtime/execution/made_mark.hpp>

#include <cerrno>
#include <exception>

#include <sys/stat.h>
#include <sys/xattr.h>

namespace troupe {
namespace {

constexpr const char* attribute = "user.troupe.made";
/// Of a name that are noted, its last ones: file systems bound what they keep.
constexpr std::size_t most_bytes = 200;

/// By which a file is known: its name with that of the output directory, which may be mounted elsewhere next time.
std::string known_name(const std::string& output_directory, std::string_view name) {
  auto known = output_directory.substr(output_directory.rfind('/') + 1) + "/" + std::string{name};
  return known.size() > most_bytes ? known.substr(known.size() - most_bytes) : known;
}

} // namespace

void mark_made(const std::string& file, const staging_place& place, std::string_view name) noexcept {
  try {
    struct stat status {};
    if (::lstat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink > 1) return;
    const auto text =
        place.root.substr(place.root.rfind('/') + 1) + "/" + place.name + " " + known_name(place.to, name);
    const auto set = [&] { return ::lsetxattr(file.c_str(), attribute, text.data(), text.size(), 0); };
    if (set() == 0 || errno != EACCES || (status.st_mode & S_IWUSR) != 0) return;
    if (::chmod(file.c_str(), (status.st_mode & 07777) | S_IWUSR) != 0) return; // an attribute is written like content
    set();
    ::chmod(file.c_str(), status.st_mode & 07777);
  } catch (const std::exception&) { // no memory: it counts as somebody else's
  }
}

made_file made_by(const std::string& output_directory, std::string_view name) {
  const auto path = output_directory + "/" + std::string{name};
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return {};
  if (!S_ISREG(status.st_mode)) return {maker::somebody_else, {}};
  char text[1024];
  const auto size = ::lgetxattr(path.c_str(), attribute, text, sizeof text);
  if (size < 0) return {errno == ENODATA || errno == ERANGE ? maker::somebody_else : maker::unknown, {}};
  const std::string_view mark{text, static_cast<std::size_t>(size)};
  const auto blank = mark.find(' ');
  if (blank == mark.npos || mark.substr(blank + 1) != known_name(output_directory, name))
    return {maker::somebody_else, {}};
  return {maker::task, std::string{mark.substr(0, mark.find('/'))}};
}

} // namespace troupe
