#include <troupe/runtime/config/file_place.hpp>

#include <cwctype>
#include <deque>
#include <filesystem>
#include <memory>

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <locale.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

namespace troupe {
namespace {

constexpr int most_links = 40; // as in the kernel

/// Lower case, in any script. Bytes that are no UTF-8 stay as they are.
std::string folded(std::string_view name) {
  static const locale_t unicode = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  const auto lower = [](std::uint32_t c) {
    if (unicode != nullptr) return static_cast<std::uint32_t>(::towlower_l(static_cast<wint_t>(c), unicode));
    return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
  };
  std::string out;
  for (std::size_t i = 0; i < name.size();) {
    const auto first = static_cast<unsigned char>(name[i]);
    const std::size_t length = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 0;
    bool well_formed = length > 0 && i + length <= name.size();
    std::uint32_t c = length == 1 ? first : first & (0x7fu >> length);
    for (std::size_t k = 1; well_formed && k < length; ++k) {
      const auto next = static_cast<unsigned char>(name[i + k]);
      well_formed = next >> 6 == 2;
      c = c << 6 | (next & 0x3fu);
    }
    if (well_formed) {
      out += std::to_string(lower(c)) + ",";
      i += length;
    } else {
      out += std::to_string(first) + "!,";
      ++i;
    }
  }
  return out;
}

std::string with_letters_turned(std::string name) {
  for (char& c : name) {
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) c = static_cast<char>(c ^ 0x20);
  }
  return name;
}

std::string joined(const std::string& folder, std::string_view name) {
  return (folder == "/" ? "" : folder) + "/" + std::string{name};
}

} // namespace

bool folds_case(const std::string& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return false;
  int flags = 0;
  const bool marked = ::ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0 && (flags & FS_CASEFOLD_FL) != 0;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries{::fdopendir(fd), &::closedir};
  if (!entries) {
    ::close(fd);
    return marked;
  }
  if (marked) return true;
  // One entry with letters tells, whatever the file system, unless it may be a second name of the same file.
  for (int looked_at = 0; looked_at < 1000; ++looked_at) {
    const auto* found = ::readdir(entries.get());
    if (found == nullptr) break;
    const auto other = with_letters_turned(found->d_name);
    if (other == found->d_name) continue;
    struct stat one {};
    struct stat turned {};
    if (::fstatat(fd, found->d_name, &one, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (!S_ISDIR(one.st_mode) && one.st_nlink > 1) continue;
    return ::fstatat(fd, other.c_str(), &turned, AT_SYMLINK_NOFOLLOW) == 0 && one.st_ino == turned.st_ino &&
           one.st_dev == turned.st_dev;
  }
  // No name told: by the kind of the file system.
  struct statfs system {};
  if (::fstatfs(fd, &system) != 0) return false;
  switch (static_cast<std::uint32_t>(system.f_type)) {
  case 0x4d44u:     // vfat
  case 0x2011bab0u: // exfat
  case 0xff534d42u: // cifs
  case 0xfe534d42u: // smb2
    return true;
  default: return false;
  }
}

file_places::position file_places::at_existing(const std::string& path) {
  position out{path, path, false, false};
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return out;
  out.key = std::to_string(info.st_dev) + ":" + std::to_string(info.st_ino);
  out.exists = true;
  const auto [known, fresh] = folding_.emplace(path, false);
  if (fresh) known->second = folds_(path);
  out.folds = known->second;
  return out;
}

file_places::position file_places::parent_of(const position& at) {
  const auto parent = std::filesystem::path{at.path}.parent_path().string();
  auto out = at_existing(parent);
  if (!out.exists) out.key = at.key.substr(0, at.key.rfind('/'));
  return out;
}

std::string file_places::entry(const position& at, const std::string& name) const {
  return at.key + "/" + (at.folds ? folded(name) : name);
}

void file_places::walk(route& so_far, std::string_view path) {
  std::deque<std::string> left;
  const auto put_in_front = [&left](std::string_view text) {
    std::vector<std::string> names;
    while (!text.empty()) {
      const auto slash = text.find('/');
      names.emplace_back(text.substr(0, slash));
      text.remove_prefix(slash == std::string_view::npos ? text.size() : slash + 1);
    }
    left.insert(left.begin(), names.begin(), names.end());
  };
  put_in_front(path);
  auto& at = so_far.end;
  int links = 0;
  while (!left.empty()) {
    const auto name = std::move(left.front());
    left.pop_front();
    if (name.empty() || name == ".") continue;
    if (name == "..") {
      at = parent_of(at);
      continue;
    }
    auto here = entry(at, name);
    so_far.passed.push_back(here);
    auto next = joined(at.path, name);
    struct stat info {};
    if (!at.exists || ::lstat(next.c_str(), &info) != 0 || (!S_ISDIR(info.st_mode) && !S_ISLNK(info.st_mode))) {
      at = {std::move(next), std::move(here), false, at.folds};
      continue;
    }
    if (!S_ISLNK(info.st_mode) || ++links > most_links) {
      const bool folds = at.folds;
      at = at_existing(next);
      if (!at.exists) at = {std::move(next), std::move(here), false, folds};
      continue;
    }
    std::error_code ignored;
    const auto target = std::filesystem::read_symlink(next, ignored).string();
    if (target.starts_with('/')) at = at_existing("/");
    put_in_front(target);
  }
}

const file_places::route& file_places::route_to_folder(const std::string& path) {
  const auto folder = path.substr(0, path.rfind('/') + 1);
  const auto [known, fresh] = folders_.try_emplace(folder);
  if (fresh) {
    known->second.end = at_existing("/");
    walk(known->second, folder);
  }
  return known->second;
}

std::string file_places::place(const std::string& path) {
  return entry(route_to_folder(path).end, path.substr(path.rfind('/') + 1));
}

std::vector<std::string> file_places::way(const std::string& path) {
  auto out = way_to_folder(path);
  const auto rest = way_from_folder(path);
  out.insert(out.end(), rest.begin(), rest.end());
  return out;
}

std::vector<std::string> file_places::way_from_folder(const std::string& path) {
  route out{route_to_folder(path).end, {}};
  walk(out, std::string_view{path}.substr(path.rfind('/') + 1));
  return std::move(out.passed);
}

const std::vector<std::string>& file_places::way_to_folder(const std::string& path) {
  return route_to_folder(path).passed;
}

const std::string& file_places::folder(const std::string& path) { return route_to_folder(path).end.key; }

} // namespace troupe
