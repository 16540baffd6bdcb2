#include <troupe/runtime/discovery/run_program.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern "C" { // glibc 2.36 forgot this inside the header
#include <sys/pidfd.h>
}

#include <troupe/runtime/resources/quote.hpp>
#include <troupe/runtime/storage/descriptor.hpp>

extern char** environ;

namespace troupe {
namespace {

constexpr std::size_t max_error_output = 4096;

std::string text_of(int code) { return std::generic_category().message(code); }

struct pipe_ends {
  descriptor read;
  descriptor write;
};

result<pipe_ends> make_pipe() {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) return make_error(ec::io, "cannot make a pipe: " + text_of(errno));
  pipe_ends ends{descriptor{fds[0]}, descriptor{fds[1]}};
  // Only our end: the program's end is shared with whatever it starts and must block as programs expect.
  ::fcntl(fds[0], F_SETFL, O_NONBLOCK);
  return ends;
}

/// File actions and attributes of the child.
class spawn_settings {
public:
  spawn_settings(int out, int err) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions_, out, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions_, err, STDERR_FILENO);
    ::posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1);

    sigset_t none;
    sigset_t all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~spawn_settings() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  spawn_settings(const spawn_settings&) = delete;
  spawn_settings& operator=(const spawn_settings&) = delete;

  const posix_spawn_file_actions_t* actions() const noexcept { return &actions_; }
  const posix_spawnattr_t* attributes() const noexcept { return &attributes_; }

private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

/// A running program. Whatever happens, its group is killed and it is reaped exactly once.
class child {
public:
  /// `ended` is a pidfd of `pid`.
  child(pid_t pid, descriptor ended) noexcept : pid_(pid), ended_(std::move(ended)) {}
  child(const child&) = delete;
  child& operator=(const child&) = delete;
  ~child() { end(); }

  /// Readable once the program has ended.
  int ended() const noexcept { return ended_.get(); }

  /// Kills what is left of the group and reaps the program: exit code, or nothing when somebody else reaped it or a
  /// driver keeps it from dying (then it is left behind rather than waited for). The group goes first: as long as the
  /// program is not reaped, its number cannot belong to anybody else.
  std::optional<int> end() noexcept {
    if (pid_ <= 0) return std::nullopt;
    ::kill(-pid_, SIGKILL);
    pollfd dead{ended_.get(), POLLIN, 0};
    if (ended_ && ::poll(&dead, 1, death_milliseconds) == 0) {
      pid_ = 0;
      return std::nullopt;
    }
    int status = 0;
    pid_t reaped = 0;
    do reaped = ::waitpid(pid_, &status, 0);
    while (reaped < 0 && errno == EINTR);
    pid_ = 0;
    if (reaped < 0) return std::nullopt;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

private:
  static constexpr int death_milliseconds = 5000;

  pid_t pid_;
  descriptor ended_;
};

/// Reads what is there now. Keeps at most `limit` bytes; false when there were more. Closes `from` at its end.
bool read_available(descriptor& from, std::string& into, std::size_t limit) {
  std::array<char, 16'384> buffer;
  while (from) {
    const auto size = ::read(from.get(), buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return true;
    if (size <= 0) {
      from = {};
      return true;
    }
    const auto room = limit - into.size();
    into.append(buffer.data(), std::min(room, static_cast<std::size_t>(size)));
    if (static_cast<std::size_t>(size) > room) return false;
  }
  return true;
}

error spawn_error(const std::string& program, int code) {
  const auto name = detail::quote(program);
  if (::access(program.c_str(), F_OK) != 0) return make_error(ec::not_found, name + " doesn't exist");
  if (code == EACCES)
    return make_error(ec::invalid_configuration, name + " cannot be executed; is it executable (chmod +x)?");
  if (code == ENOEXEC)
    return make_error(ec::invalid_configuration, name + " is no program; does its first line name one (#!/bin/sh)?");
  return make_error(code == ENOENT ? ec::invalid_configuration : ec::io, name + " cannot be started: " + text_of(code));
}

} // namespace

result<program_output> run_program(const program_call& call) {
  const auto& program = call.words.front();
  const auto deadline = std::chrono::steady_clock::now() + call.time_out;
  auto out = make_pipe();
  if (!out) return out.error();
  auto err = make_pipe();
  if (!err) return err.error();

  std::vector<char*> words;
  for (const auto& word : call.words) words.push_back(const_cast<char*>(word.c_str())); // the interface predates const
  words.push_back(nullptr);
  pid_t pid = 0;
  const spawn_settings settings{out->write.get(), err->write.get()};
  if (const int code =
          ::posix_spawn(&pid, program.c_str(), settings.actions(), settings.attributes(), words.data(), environ))
    return spawn_error(program, code);
  descriptor ended{::pidfd_open(pid, 0)};
  const int watch_code = ended ? 0 : errno;
  child running{pid, std::move(ended)};
  if (watch_code != 0) return make_error(ec::io, "cannot watch " + detail::quote(program) + ": " + text_of(watch_code));
  out->write = {};
  err->write = {};

  program_output ran;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) {
      const auto given = std::chrono::ceil<std::chrono::milliseconds>(call.time_out).count();
      return make_error(ec::cancelled,
                        detail::quote(program) + " had not ended after " + std::to_string(given) + " ms");
    }
    std::array<pollfd, 3> ready{
        {{out->read.get(), POLLIN, 0}, {err->read.get(), POLLIN, 0}, {running.ended(), POLLIN, 0}}};
    if (::poll(ready.data(), ready.size(), static_cast<int>(std::min<std::int64_t>(left.count(), 60'000))) < 0 &&
        errno != EINTR)
      return make_error(ec::io, "cannot wait for " + detail::quote(program) + ": " + text_of(errno));
    const bool has_ended = ready[2].revents != 0;
    std::optional<int> exit_code;
    if (has_ended) exit_code = running.end();
    if (!read_available(out->read, ran.output, call.max_output))
      return make_error(ec::overloaded,
                        detail::quote(program) + " prints more than " + std::to_string(call.max_output) + " bytes");
    // More on standard error than anybody reads is let go; a full pipe must not stop the program.
    std::string beyond;
    if (!read_available(err->read, ran.error_output, max_error_output)) read_available(err->read, beyond, 1 << 20);
    if (!has_ended) continue;
    if (!exit_code)
      return make_error(ec::internal, "somebody else has taken the exit code of " + detail::quote(program));
    ran.exit_code = *exit_code;
    return ran;
  }
}

} // namespace troupe
