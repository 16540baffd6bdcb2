#include <troupe/runtime/execution/child_process.hpp>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <deque>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include <troupe/runtime/execution/pidfd.hpp>
#include <troupe/runtime/execution/process_limits.hpp>
#include <troupe/runtime/execution/process_memory.hpp>

namespace troupe {

namespace {

/// A running child's memory is looked at each time when its age has grown by a fifth, within these bounds: what it used
/// in the last sixth of its life may be missed.
constexpr int looks_per_age = 5;
constexpr duration shortest_look = std::chrono::microseconds{250};
constexpr duration longest_look = std::chrono::seconds{1};
/// Bytes by which two readings of the same memory may differ: the kernel counts per thread and adds up now and then.
constexpr std::uint64_t counting_error = 1 << 20;

class scoped_fd {
public:
  explicit scoped_fd(int fd = -1) : fd_(fd) {}
  scoped_fd(const scoped_fd&) = delete;
  scoped_fd& operator=(const scoped_fd&) = delete;
  ~scoped_fd() { reset(); }
  void reset() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  int get() const noexcept { return fd_; }

private:
  int fd_;
};

/// All that the child needs between its start and the new program, prepared beforehand.
struct launch {
  const char* program;
  char* const* arguments;
  char* const* environment;
  const char* directory;
  int in, out, err;
  int report; ///< write end of a pipe that the new program does not see: errno of what failed
  pid_t parent;
  const std::vector<int>* groups; ///< open member files of control groups
  std::uint64_t data_limit;
  std::uint64_t file_limit;
};

/// The child's own code: system calls only, since it shares the memory of this multi-threaded process, which is
/// stopped in vfork meanwhile.
[[noreturn]] void become(const launch& l) {
  struct sigaction by_default {};
  by_default.sa_handler = SIG_DFL;
  for (int s = 1; s < NSIG; ++s) ::sigaction(s, &by_default, nullptr);
  // Killed with this process, however that ends; if it has ended already, nobody will send the signal.
  bool good = ::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && ::getppid() == l.parent;
  for (const int group : *l.groups) good = good && ::write(group, "0", 1) == 1;
  if (l.data_limit > 0) {
    rlimit data{};
    good = good && ::getrlimit(RLIMIT_DATA, &data) == 0;
    data.rlim_cur = data.rlim_max < l.data_limit ? data.rlim_max : l.data_limit; // without a limit it is the largest
    good = good && ::setrlimit(RLIMIT_DATA, &data) == 0;
  }
  if (l.file_limit > 0) {
    rlimit files{};
    good = good && ::getrlimit(RLIMIT_NOFILE, &files) == 0;
    files.rlim_cur = files.rlim_max < l.file_limit ? files.rlim_max : l.file_limit;
    good = good && ::setrlimit(RLIMIT_NOFILE, &files) == 0;
  }
  good = good && ::setsid() >= 0 && ::chdir(l.directory) == 0;
  good = good && ::dup2(l.in, 0) >= 0 && ::dup2(l.out, 1) >= 0 && ::dup2(l.err, 2) >= 0;
  // Whatever descriptors this process has open without close-on-exec.
  good = good && ::close_range(3, ~0u, CLOSE_RANGE_CLOEXEC) == 0;
  if (good) {
    sigset_t none;
    sigemptyset(&none);
    ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
    ::execve(l.program, l.arguments, l.environment);
  }
  const int code = good ? errno : -errno; // not above 0: of a step before the program
  [[maybe_unused]] const auto n = ::write(l.report, &code, sizeof code);
  ::_exit(127);
}

/// vfork instead of fork: nothing of a large process is copied.
[[gnu::noinline]] pid_t launch_child(const launch& l) {
  const pid_t pid = ::vfork();
  if (pid == 0) become(l);
  return pid;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> list;
  list.reserve(texts.size() + 1);
  for (const auto& text : texts) list.push_back(const_cast<char*>(text.c_str()));
  list.push_back(nullptr);
  return list;
}

/// At most 256 bytes; "" where it cannot be read.
std::string first_line_of(const std::string& path) {
  std::string text(256, '\0');
  const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return {};
  const auto got = ::read(fd, text.data(), text.size());
  ::close(fd);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text.substr(0, text.find('\n'));
}

/// The interpreter that a script's first line names: where that is missing, the system says that the script is. ""
/// where it names none.
std::string missing_interpreter(const std::string& program) {
  const auto line = first_line_of(program);
  if (!line.starts_with("#!")) return {};
  const auto begin = line.find_first_not_of(" \t", 2);
  if (begin == line.npos) return {};
  auto name = line.substr(begin, line.find_first_of(" \t", begin) - begin);
  const bool is_of_windows = line.ends_with('\r');
  while (name.ends_with('\r')) name.pop_back();
  return "the interpreter of its first line, " + name +
         (is_of_windows ? ", is followed by a carriage return: convert its lines, as dos2unix does" : ", is not there");
}

/// ec::not_found or ec::invalid_argument where the program would not start another time either.
error start_error(const std::string& program, int code) {
  if (code == E2BIG)
    return make_error(ec::invalid_argument,
                      "cannot run " + program +
                          ": its arguments and environment are longer than the system allows; name its "
                          "inputs by {inputs-file}, or give it fewer of them");
  constexpr int lasting[] = {EACCES, EISDIR, ELOOP, ENAMETOOLONG, ENOEXEC, ENOTDIR, EPERM};
  if (code == ENOENT)
    if (const auto interpreter = missing_interpreter(program); !interpreter.empty())
      return make_error(ec::not_found, "cannot run " + program + ": " + interpreter);
  const bool lasts = std::find(std::begin(lasting), std::end(lasting), code) != std::end(lasting);
  return make_error(code == ENOENT ? ec::not_found
                    : lasts        ? ec::invalid_argument
                                   : ec::io,
                    "cannot run " + program + ": " + std::strerror(code));
}

error not_prepared(const std::string& program, int code) {
  return make_error(ec::io, "cannot start a process for " + program + ": " + std::strerror(code));
}

error unknown_end() {
  return make_error(ec::io,
                    "how the command ended is not known: somebody else took its end. A process that runs commands "
                    "must neither ignore SIGCHLD nor wait for children that it has not started itself");
}

int open_output(const std::string& path) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
}

} // namespace

result<child_process> child_process::start(const child_spec& spec) {
  const scoped_fd in{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
  const scoped_fd out{open_output(spec.stdout_file)};
  if (out.get() < 0) return make_error(ec::io, "cannot make " + spec.stdout_file + ": " + std::strerror(errno));
  const scoped_fd err{open_output(spec.stderr_file)};
  if (err.get() < 0) return make_error(ec::io, "cannot make " + spec.stderr_file + ": " + std::strerror(errno));
  int ends[2];
  if (in.get() < 0 || ::pipe2(ends, O_CLOEXEC) != 0) return not_prepared(spec.program, errno);
  const scoped_fd read_end{ends[0]};
  scoped_fd write_end{ends[1]};
  std::vector<int> groups;
  std::deque<scoped_fd> open_groups;
  for (const auto& file : spec.member_files) {
    groups.push_back(open_groups.emplace_back(::open(file.c_str(), O_WRONLY | O_CLOEXEC)).get());
    if (groups.back() < 0)
      return make_error(ec::io, "cannot open " + file + " to limit the command: " + std::strerror(errno));
  }
  const auto arguments = pointers(spec.arguments);
  const auto environment = pointers(spec.environment);
  const launch l{spec.program.c_str(),
                 arguments.data(),
                 environment.data(),
                 spec.directory.c_str(),
                 in.get(),
                 out.get(),
                 err.get(),
                 write_end.get(),
                 ::getpid(),
                 &groups,
                 spec.data_limit,
                 former_file_limit()};
  // No handler of this process may run in the child while they share memory.
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = launch_child(l);
  const int fork_code = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return not_prepared(spec.program, fork_code);
  write_end.reset();
  int code = 0;
  ssize_t n = 0;
  do n = ::read(read_end.get(), &code, sizeof code);
  while (n < 0 && errno == EINTR);
  if (n > 0) {
    ::waitpid(pid, nullptr, 0);
    return code <= 0 ? not_prepared(spec.program, -code) : start_error(spec.program, code);
  }
  // What the kernel has put down for the child by now, since it was born with our memory.
  const auto own_peak = peak_memory_of(l.parent);
  const int pidfd = open_pidfd(pid);
  if (pidfd < 0) {
    const int open_code = errno;
    ::kill(-pid, SIGKILL);
    const bool taken = ::waitpid(pid, nullptr, 0) < 0 && errno == ECHILD;
    return taken ? unknown_end() : not_prepared(spec.program, open_code);
  }
  child_process child{pid, pidfd, own_peak};
  child.seen_peak_ = peak_memory_of(pid); // of the new program: one that ends at once is not looked at again
  return child;
}

child_process::child_process(child_process&& other) noexcept
  : pid_(std::exchange(other.pid_, -1)), pidfd_(std::exchange(other.pidfd_, -1)), own_peak_(other.own_peak_),
    seen_peak_(other.seen_peak_) {}

child_process::~child_process() {
  if (pidfd_ >= 0) ::close(pidfd_);
}

bool child_process::wait(int wake_fd, duration timeout) {
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    const auto age = std::chrono::steady_clock::now() - begin;
    const auto rest = timeout - age;
    const auto look = std::clamp<duration>(age / looks_per_age, shortest_look, longest_look);
    const auto part = std::clamp(rest, duration::zero(), look);
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(part);
    const timespec pause{seconds.count(), (part - seconds).count()};
    pollfd fds[2] = {{pidfd_, POLLIN, 0}, {wake_fd, POLLIN, 0}};
    const int n = ::ppoll(fds, 2, &pause, nullptr);
    if (n > 0 && fds[0].revents != 0) return true;
    if (n > 0 && fds[1].revents != 0) return false;
    seen_peak_ = std::max(seen_peak_, peak_memory_of(pid_));
    if (rest <= duration::zero()) return false;
  }
}

void child_process::signal_group(int signal) const noexcept { ::kill(-pid_, signal); }

bool child_process::has_ended_well() const noexcept {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid_ &&
         info.si_code == CLD_EXITED && info.si_status == 0;
}

result<child_end> child_process::reap() {
  child_end end;
  int status = 0;
  rusage used{};
  pid_t taken = 0;
  do taken = ::wait4(pid_, &status, 0, &used);
  while (taken < 0 && errno == EINTR);
  if (taken < 0) return unknown_end();
  if (WIFSIGNALED(status))
    end.signal = WTERMSIG(status);
  else
    end.exit_code = WEXITSTATUS(status);
  const auto nanoseconds = [](const timeval& t) {
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_usec) * 1000;
  };
  end.cpu_nanoseconds = nanoseconds(used.ru_utime) + nanoseconds(used.ru_stime);
  const auto counted = static_cast<std::uint64_t>(used.ru_maxrss) * 1024;
  end.peak_memory = counted > own_peak_ + counting_error ? counted : seen_peak_;
  return end;
}

} // namespace troupe
