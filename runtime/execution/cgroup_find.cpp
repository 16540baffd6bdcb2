#include <troupe/runtime/execution/cgroup_find.hpp>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <sstream>

#include <troupe/runtime/execution/kernel_file.hpp>

namespace troupe {

namespace {

/// The group that holds the members of an own group that is split.
constexpr const char* members_name = "members";
/// For what is ending anyway.
constexpr duration session_patience = std::chrono::milliseconds{500};

/// One mounted hierarchy and where this process is in it.
struct hierarchy {
  int version = 1;
  std::string mount;
  std::string own; ///< directory of this process's group, at or below `mount`
};

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> out;
  for (;;) {
    const auto end = text.find(at);
    out.emplace_back(text.substr(0, end));
    if (end == text.npos) return out;
    text.remove_prefix(end + 1);
  }
}

bool contains(const std::vector<std::string>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

/// Words of a line or file that are apart by blanks.
std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in{text};
  std::vector<std::string> out;
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

/// As mountinfo writes it: blanks and the like as \ooo.
std::string unescape(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

/// Path of this process's group in the hierarchy of the controller ("": v2), as /proc/self/cgroup has it.
std::optional<std::string> own_path(const std::string& listed, std::string_view controller) {
  for (const auto& line : split(listed, '\n')) {
    const auto first = line.find(':');
    const auto second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) continue;
    const auto names = line.substr(first + 1, second - first - 1);
    if (controller.empty() ? line.starts_with("0::") : contains(split(names, ','), controller))
      return line.substr(second + 1);
  }
  return {};
}

/// The mounted hierarchy of the controller ("": v2). Nothing where there is none, or this process's group lies outside
/// of what is mounted.
std::optional<hierarchy> find_hierarchy(const std::string& mounts, const std::string& listed,
                                        std::string_view controller) {
  const auto path = own_path(listed, controller);
  if (!path) return {};
  for (const auto& line : split(mounts, '\n')) {
    const auto fields = split(line, ' ');
    const auto dash = std::find(fields.begin(), fields.end(), "-");
    if (fields.size() < 6 || fields.end() - dash < 4) continue;
    const auto& type = *(dash + 1);
    if (type != (controller.empty() ? "cgroup2" : "cgroup")) continue;
    if (!controller.empty() && !contains(split(*(dash + 3), ','), controller)) continue;
    const auto root = unescape(fields[3]);
    const auto mount = unescape(fields[4]);
    const auto inside = root == "/" ? *path : *path == root ? "/" : path->substr(std::min(path->size(), root.size()));
    if ((root != "/" && !path->starts_with(root)) || !inside.starts_with('/') || inside.find("/..") != inside.npos)
      continue;
    return hierarchy{controller.empty() ? 2 : 1, mount, inside == "/" ? mount : mount + inside};
  }
  return {};
}

bool writable(const std::string& path) { return ::access(path.c_str(), W_OK) == 0; }

/// True where all members of the group run this process's program, and it is one of them.
bool holds_only_us(const std::string& group) {
  namespace fs = std::filesystem;
  std::error_code failed;
  const auto own = fs::read_symlink("/proc/self/exe", failed);
  const auto members = words_of(read_kernel_file(group + "/cgroup.procs"));
  return !failed && contains(members, std::to_string(::getpid())) &&
         std::all_of(members.begin(), members.end(), [&](const std::string& pid) {
           const auto program = fs::read_symlink("/proc/" + pid + "/exe", failed);
           return !failed && program == own;
         });
}

void move_members(const std::string& from, const std::string& to) {
  for (const auto& pid : words_of(read_kernel_file(from + "/cgroup.procs")))
    static_cast<void>(write_cgroup_file(to + "/cgroup.procs", pid)); // one that has just ended cannot be moved
}

/// The one group of v2 below which groups with these controllers can be made: a process is in one group there.
cgroup_part find_in_v2(const std::optional<hierarchy>& unified, const std::vector<cgroup_controller>& wanted,
                       found_cgroups& found) {
  cgroup_part part{2, {}, {}};
  std::vector<cgroup_controller> there;
  for (const auto controller : wanted) {
    const std::string name{to_string(controller)};
    if (!unified)
      found.missing[controller] = "no cgroup hierarchy with the controller " + name + " is mounted";
    else if (!contains(words_of(read_kernel_file(unified->own + "/cgroup.controllers")), name))
      found.missing[controller] = "the controller " + name + " is not given to " + unified->own;
    else
      there.push_back(controller);
  }
  if (there.empty()) return part;
  const auto& own = unified->own;
  // A process moves between two groups only where it may write to what is above both.
  part.directory = own;
  const auto gives = [&](cgroup_controller controller) {
    return writable(part.directory) && writable(part.directory + "/cgroup.procs") &&
           contains(words_of(read_kernel_file(part.directory + "/cgroup.subtree_control")), to_string(controller));
  };
  while (!gives(there.front()) && part.directory.size() > unified->mount.size())
    part.directory.erase(part.directory.rfind('/'));
  if (!gives(there.front())) {
    part.directory = own;
    if (writable(own) && writable(own + "/cgroup.subtree_control") && holds_only_us(own)) {
      found.own_v2_group = own;
      part.controllers = std::move(there);
      return part;
    }
  }
  for (const auto controller : there) {
    if (gives(controller))
      part.controllers.push_back(controller);
    else if (part.controllers.empty())
      found.missing[controller] = own + (writable(own) ? " holds other programs, too" : " is not writable") +
                                  "; a group of its own is had by: systemd-run --user --scope -p Delegate=yes";
    else
      found.missing[controller] = part.directory + " does not give the controller to groups below";
  }
  return part;
}

} // namespace

found_cgroups find_cgroups(const std::vector<cgroup_controller>& wanted, const cgroup_places& places) {
  const auto mounts = read_kernel_file(places.mounts);
  const auto listed = read_kernel_file(places.own_groups);
  found_cgroups found;
  std::vector<cgroup_part> parts;
  std::vector<cgroup_controller> of_v2;
  for (const auto controller : wanted) {
    const auto v1 = find_hierarchy(mounts, listed, to_string(controller));
    if (!v1) {
      of_v2.push_back(controller);
    } else if (!writable(v1->own)) {
      found.missing[controller] = v1->own + " is not writable";
    } else {
      const auto same = [&](const cgroup_part& part) { return part.directory == v1->own; };
      const auto known = std::find_if(parts.begin(), parts.end(), same);
      if (known != parts.end())
        known->controllers.push_back(controller);
      else
        parts.push_back({1, v1->own, {controller}});
    }
  }
  if (!of_v2.empty()) {
    auto part = find_in_v2(find_hierarchy(mounts, listed, ""), of_v2, found);
    if (!part.controllers.empty()) parts.push_back(std::move(part));
  }
  found.base = cgroup{std::move(parts), places.files};
  return found;
}

result<cgroup> make_session_group(const found_cgroups& found, const std::string& name) {
  const auto session = found.base.child(name);
  const auto& own = found.own_v2_group;
  if (own.empty()) {
    if (auto made = session.make(); !made) return made.error();
    return session;
  }
  // A group with members gives no controller to those below, so they move there first.
  const cgroup split{{{2, own, {}}}, found.base.files()};
  const auto top = split.child(name);
  const auto members = top.child(members_name);
  const auto directory = members.parts().front().directory;
  if (found.base.files().make(top.parts().front().directory.c_str(), 0755) != 0 ||
      found.base.files().make(directory.c_str(), 0755) != 0) {
    top.remove(false, {});
    return make_error(ec::io, "cannot make the group " + directory);
  }
  move_members(own, directory);
  if (auto made = session.make(); !made) {
    move_members(directory, own);
    session.remove(false, session_patience);
    return made.error();
  }
  return session;
}

void remove_session_group(const found_cgroups& found, const cgroup& session) {
  for (const auto& part : session.parts()) {
    const auto base = part.directory.substr(0, part.directory.rfind('/'));
    if (part.version != 2 || base != found.own_v2_group) continue;
    std::string none;
    for (const auto controller : part.controllers)
      none += (none.empty() ? "-" : " -") + std::string{to_string(controller)};
    static_cast<void>(write_cgroup_file(part.directory + "/cgroup.subtree_control", none));
    static_cast<void>(write_cgroup_file(base + "/cgroup.subtree_control", none));
    move_members(part.directory + "/" + members_name, base);
  }
  session.remove(true, session_patience);
}

} // namespace troupe
