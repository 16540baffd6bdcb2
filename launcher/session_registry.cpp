#include <troupe/launcher/session_registry.hpp>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <tuple>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include <troupe/runtime/execution/kernel_file.hpp>
#include <troupe/runtime/transfer/local_address.hpp>

namespace troupe {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* file_name = "/session";
constexpr std::size_t largest_record = 64 << 10;

std::string describe(const session_record& record) {
  return "  " + record.name + " at " + record.address + ", session " + record.session_id;
}

} // namespace

result<void> write_session(const session_record& record) {
  const json document = {{"name", record.name},
                         {"address", record.address},
                         {"cluster", record.cluster_id},
                         {"session", record.session_id},
                         {"secret-file", record.secret_file},
                         {"config-file", record.config_file},
                         {"pid", record.pid},
                         {"started", record.started},
                         {"warnings", record.warnings}};
  const auto text = document.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
  const auto path = record.directory + file_name;
  const auto unfinished = path + ".new";
  const int fd = open(unfinished.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  const bool written =
      fd >= 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && close(fd) == 0;
  if (!written || rename(unfinished.c_str(), path.c_str()) != 0)
    return make_error(ec::io, "cannot write " + path + ": " + std::strerror(errno));
  return {};
}

result<session_record> read_session(const std::string& directory) {
  const auto path = directory + file_name;
  std::ifstream file{path, std::ios::binary};
  if (!file) return make_error(ec::not_found, "there is no " + path);
  std::string text(largest_record, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  const auto document = json::parse(text, nullptr, false);
  session_record out;
  try {
    document.at("name").get_to(out.name);
    document.at("address").get_to(out.address);
    document.at("cluster").get_to(out.cluster_id);
    document.at("session").get_to(out.session_id);
    document.at("secret-file").get_to(out.secret_file);
    document.at("config-file").get_to(out.config_file);
    document.at("pid").get_to(out.pid);
    document.at("started").get_to(out.started);
    out.warnings = document.value("warnings", out.warnings); // records of an earlier version have none
  } catch (const json::exception& e) {
    return make_error(ec::malformed, path + " is damaged: " + e.what());
  }
  if (out.pid <= 1) return make_error(ec::malformed, path + " is damaged: its pid is " + std::to_string(out.pid));
  out.directory = directory;
  return out;
}

std::uint64_t process_start(pid_t pid) {
  const auto text = read_kernel_file("/proc/" + std::to_string(pid) + "/stat");
  // The name may hold blanks and brackets; the 22nd field is the 20th after its closing bracket.
  const auto end = text.rfind(')');
  if (end == text.npos) return 0;
  std::istringstream rest{text.substr(end + 1)};
  std::string state;
  std::string field;
  rest >> state;
  for (int i = 1; i < 20; ++i) rest >> field;
  if (state == "Z" || state == "X") return 0; // it has ended and nobody has asked for its exit code yet
  return rest && field.find_first_not_of("0123456789") == field.npos ? std::stoull(field) : 0;
}

bool is_alive(const session_record& record) {
  return record.started != 0 && process_start(record.pid) == record.started && kill(record.pid, 0) == 0;
}

endpoint reached_from_here(endpoint where) {
  if (auto host = address_to_reach(where.host, "127.0.0.1", where.port)) where.host = std::move(*host);
  return where;
}

bool listens_at(const session_record& record, std::string_view address) {
  const auto own = parse_endpoint(record.address);
  const auto other = parse_endpoint(address);
  return own && other && reached_from_here(*own) == reached_from_here(*other);
}

std::vector<session_record> running_sessions(const std::string& base) {
  std::vector<session_record> out;
  std::error_code ec;
  struct stat s {};
  // In a folder of somebody else's everything may be exchanged while it is read.
  if (lstat(base.c_str(), &s) != 0 || !S_ISDIR(s.st_mode) || s.st_uid != geteuid()) return out;
  for (const auto& entry : fs::directory_iterator{base, ec}) {
    // Only this user's own directories are believed.
    if (lstat(entry.path().c_str(), &s) != 0 || !S_ISDIR(s.st_mode) || s.st_uid != geteuid()) continue;
    if (auto record = read_session(entry.path().string()); record && is_alive(*record))
      out.push_back(std::move(*record));
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) {
    return std::tie(a.name, a.session_id) < std::tie(b.name, b.session_id);
  });
  return out;
}

result<session_record> choose_session(const std::vector<session_record>& sessions, std::string_view which) {
  if (sessions.empty())
    return make_error(ec::unreachable, "no cluster of yours is running on this machine: start one with `troupe cluster "
                                       "up --config-file=FILE`, or name a driver by --master=HOST:PORT");
  std::vector<const session_record*> matching;
  for (const auto& s : sessions) {
    const bool by_id = which.size() >= 4 && (s.session_id.starts_with(which) || s.cluster_id.starts_with(which));
    if (which.empty() || s.name == which || listens_at(s, which) || by_id) matching.push_back(&s);
  }
  if (matching.size() == 1) return *matching.front();
  std::string list;
  for (const auto& s : sessions) list += "\n" + describe(s);
  if (matching.empty())
    return make_error(ec::unreachable, "no cluster is called '" + std::string{which} + "'; running:" + list);
  return make_error(ec::invalid_configuration,
                    "several clusters " + (which.empty() ? "are running" : "match '" + std::string{which} + "'") +
                        ": say which one by --cluster=NAME, its name, address or the beginning of its session:" + list);
}

} // namespace troupe
