#include <troupe/launcher/background.hpp>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <troupe/launcher/executor_entry.hpp>
#include <troupe/runtime/execution/signals.hpp>

namespace troupe {
namespace {

error failed_to(const std::string& what) { return make_error(ec::io, "cannot " + what + ": " + std::strerror(errno)); }

/// Signals that interrupt a wait, as something to read. The caller's thread keeps its own mask in the end.
class held_signals {
public:
  held_signals() {
    const auto set = unless_ignored({SIGINT, SIGTERM, SIGHUP});
    pthread_sigmask(SIG_BLOCK, &set, &before_);
    fd_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  }
  ~held_signals() {
    signalfd_siginfo pending;
    while (fd_ >= 0 && read(fd_, &pending, sizeof pending) > 0) {} // they were meant for the wait
    if (fd_ >= 0) close(fd_);
    release();
  }
  held_signals(const held_signals&) = delete;
  held_signals& operator=(const held_signals&) = delete;

  int fd() const noexcept { return fd_; }
  void release() const { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

private:
  sigset_t before_{};
  int fd_ = -1;
};

struct answer {
  std::string text; ///< all up to the other side's end
  bool interrupted = false;
};

answer read_all(int fd, const held_signals& signals, duration grace) {
  using clock = std::chrono::steady_clock;
  answer out;
  auto deadline = clock::time_point::max();
  for (;;) {
    pollfd fds[2] = {{fd, POLLIN, 0}, {out.interrupted ? -1 : signals.fd(), POLLIN, 0}};
    int wait = -1;
    if (out.interrupted)
      wait = static_cast<int>(
          std::max<std::int64_t>(0, std::chrono::ceil<std::chrono::milliseconds>(deadline - clock::now()).count()));
    const int n = poll(fds, 2, wait);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return out;
    if (fds[0].revents != 0) {
      char buffer[4096];
      const auto got = read(fd, buffer, sizeof buffer);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return out;
      out.text.append(buffer, static_cast<std::size_t>(got));
    } else {
      out.interrupted = true;
      deadline = clock::now() + grace;
      shutdown(fd, SHUT_WR);
    }
  }
}

[[noreturn]] void live_on(int fd, const std::function<int(readiness&)>& body) {
  setsid();
  // Forked once more: a session's leader could be given a terminal by opening one.
  const auto child = fork();
  if (child != 0) _exit(child < 0 ? 1 : 0);
  if (chdir("/") != 0) _exit(1);
  let_go_of_start_folder();
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
    const auto n = ::send(fd_, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break; // whoever started it has gone
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
  close(fd_);
  fd_ = -1;
}

void readiness::ready(const std::string& text) { send('+', 0, text); }
bool readiness::abandoned() const {
  pollfd other{fd_, POLLRDHUP, 0};
  return fd_ >= 0 && poll(&other, 1, 0) > 0;
}

void readiness::failed(const error& why) { send('-', static_cast<std::uint16_t>(why.code), why.message); }

result<std::string> run_in_background(const std::function<int(readiness&)>& body, duration grace) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return failed_to("make a pair of sockets");
  const held_signals signals;
  if (signals.fd() < 0) {
    const auto why = failed_to("wait for signals");
    close(ends[0]);
    close(ends[1]);
    return why;
  }
  const auto child = fork();
  if (child < 0) {
    const auto why = failed_to("start a process");
    close(ends[0]);
    close(ends[1]);
    return why;
  }
  if (child == 0) {
    close(ends[0]);
    close(signals.fd());
    signals.release();
    live_on(ends[1], body);
  }
  close(ends[1]);
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {}
  const auto [message, interrupted] = read_all(ends[0], signals, grace);
  close(ends[0]);
  if (message.size() >= 3 && message[0] == '+') return message.substr(3);
  if (interrupted) return make_error(ec::cancelled, "interrupted");
  if (message.size() >= 3) {
    const auto code = static_cast<unsigned char>(message[1]) | static_cast<unsigned char>(message[2]) << 8;
    return make_error(static_cast<ec>(code), message.substr(3));
  }
  return make_error(ec::internal, "the process in the background ended before it was ready");
}

} // namespace troupe
