#include <troupe/launcher/security.hpp>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <sys/stat.h>
#include <unistd.h>

#include <troupe/launcher/session_registry.hpp>

namespace troupe {
namespace {

namespace fs = std::filesystem;

result<void> make_private_directories(const fs::path& path) {
  if (path.empty()) return {};
  struct stat s {};
  if (stat(path.c_str(), &s) == 0) return {};
  if (auto above = make_private_directories(path.parent_path()); !above) return above;
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return make_error(ec::io, "cannot make directory " + path.string() + ": " + std::strerror(errno) +
                                  " (troupe.security.secret-file)");
  return {};
}

} // namespace

result<session_secret> load_or_make_secret(const std::string& path) {
  struct stat s {};
  if (lstat(path.c_str(), &s) == 0) return session_secret::load(path);
  if (auto made = make_private_directories(fs::path{path}.parent_path()); !made) return made.error();
  auto secret = session_secret::generate();
  if (auto saved = secret.save(path); !saved) return saved.error();
  return secret;
}

std::string secret_of_local_driver(const std::string& base, const endpoint& where) {
  for (const auto& session : running_sessions(base))
    if (listens_at(session, to_string(where))) return session.secret_file;
  return {};
}

result<void> check_reachable_openly(const std::string& host, const settings& s) {
  if (is_loopback(host) || s.get(keys::security_insecure)) return {};
  return make_error(ec::invalid_configuration,
                    "the driver's address " + host +
                        " is not a loopback address, and the traffic is not encrypted: set troupe.security.insecure = "
                        "true if everybody on that network may be trusted");
}

std::string insecurity_of(const settings& s) {
  std::string out;
  for (const auto& which : {keys::driver_bind_address, keys::executor_bind_address})
    if (!is_loopback(s.get(which))) out += (out.empty() ? "" : ", ") + std::string{which.name} + " = " + s.get(which);
  if (out.empty()) return out;
  return out + ": the traffic is not encrypted, and whoever reaches the port can disturb or read it "
               "(troupe.security.insecure = true)";
}

std::string this_process() {
  char host[256] = "unknown";
  static_cast<void>(gethostname(host, sizeof host - 1));
  return std::string{host} + ":" + std::to_string(getpid());
}

} // namespace troupe
