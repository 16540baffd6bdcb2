#include <troupe/launcher/background.hpp>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe {
namespace {

error failed_to(const std::string& what) { return make_error(ec::io, "cannot " + what + ": " + std::strerror(errno)); }

std::string read_all(int fd) {
  std::string out;
  char buffer[4096];
  for (;;) {
    const auto n = read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return out;
    out.append(buffer, static_cast<std::size_t>(n));
  }
}

[[noreturn]] void live_on(int fd, const std::function<int(readiness&)>& body) {
  setsid();
  // Forked once more: a session's leader could be given a terminal by opening one.
  const auto child = fork();
  if (child != 0) _exit(child < 0 ? 1 : 0);
  if (chdir("/") != 0) _exit(1);
  const int null = open("/dev/null", O_RDWR);
  for (int stream = 0; stream <= 2 && null >= 0; ++stream) dup2(null, stream);
  if (null > 2) close(null);
  readiness to{fd};
  const int code = body(to);
  std::exit(code);
}

} // namespace

void readiness::send(char kind, std::uint16_t code, const std::string& text) {
  if (fd_ < 0) return;
  std::string message{kind};
  message += static_cast<char>(code & 0xFF);
  message += static_cast<char>(code >> 8);
  message += text;
  std::string_view rest = message;
  while (!rest.empty()) {
    const auto n = write(fd_, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break; // whoever started it has gone: it lives on
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
  close(fd_);
  fd_ = -1;
}

void readiness::ready(const std::string& text) { send('+', 0, text); }
void readiness::failed(const error& why) { send('-', static_cast<std::uint16_t>(why.code), why.message); }

result<std::string> run_in_background(const std::function<int(readiness&)>& body) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return failed_to("make a pipe");
  const auto child = fork();
  if (child < 0) {
    const auto why = failed_to("start a process");
    close(ends[0]);
    close(ends[1]);
    return why;
  }
  if (child == 0) {
    close(ends[0]);
    live_on(ends[1], body);
  }
  close(ends[1]);
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {}
  const auto message = read_all(ends[0]);
  close(ends[0]);
  if (message.size() >= 3 && message[0] == '+') return message.substr(3);
  if (message.size() >= 3) {
    const auto code = static_cast<unsigned char>(message[1]) | static_cast<unsigned char>(message[2]) << 8;
    return make_error(static_cast<ec>(code), message.substr(3));
  }
  return make_error(ec::internal, "the process in the background ended before it was ready");
}

} // namespace troupe
