#include <troupe/launcher/executor_entry.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <troupe/runtime/config/task_variables.hpp>
#include <troupe/runtime/execution/kernel_file.hpp>

extern char** environ;
/// Of LeakSanitizer, where the program has it: it looks at the end of main, which is never reached.
extern "C" [[gnu::weak]] void __lsan_do_leak_check();

namespace troupe {
namespace {

constexpr const char* marker = "TROUPE_EXECUTOR";
constexpr int all_seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
constexpr off_t most_bytes = 16 << 20;

// Set before constructors of static objects run, so they must need none themselves.
constinit std::vector<std::string>* arguments = nullptr;
constinit int claimed_start = -1;
constinit int claimed_liveness = -1;
constinit int start_folder = -1;
constinit bool entry_taken = false;
constinit bool was_marked = false; ///< whoever started this process means it to be an executor
constinit unsigned depth = 0;

bool is_start(int fd) {
  struct stat file {};
  const int seals = ::fcntl(fd, F_GET_SEALS); // the kernel may add some of its own
  return seals >= 0 && (seals & all_seals) == all_seals && ::fstat(fd, &file) == 0 && file.st_size > 0 &&
         file.st_size <= most_bytes;
}

/// Before anything of the user's, but for what shared libraries do when they are loaded.
[[gnu::constructor(101)]] void claim_entry() {
  arguments = new std::vector<std::string>;
  start_folder = ::open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (start_folder >= 0 && start_folder < 3) { // a standard stream is closed, and keeps its number
    const int above = ::fcntl(start_folder, F_DUPFD_CLOEXEC, 3);
    ::close(start_folder);
    start_folder = above;
  }
  auto text = read_kernel_file("/proc/self/cmdline", most_bytes);
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find('\0', begin), text.size());
    arguments->push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  if (const char* const above = std::getenv(depth_variable.data()))
    depth = static_cast<unsigned>(std::min(std::strtoul(above, nullptr, 10), 999'999ul));
  char own[16];
  std::snprintf(own, sizeof(own), "%u", depth + 1);
  ::setenv(depth_variable.data(), own, 1);
  const char* const value = std::getenv(marker);
  if (value == nullptr) return;
  was_marked = true;
  int start = -1;
  int liveness = -1;
  if (std::sscanf(value, "%d,%d:", &start, &liveness) == 2 && start > 2 && liveness > 2 && is_start(start) &&
      ::fcntl(start, F_SETFD, FD_CLOEXEC) == 0 && ::fcntl(liveness, F_SETFD, FD_CLOEXEC) == 0) {
    claimed_start = start;
    claimed_liveness = liveness;
  }
  ::unsetenv(marker);
}

} // namespace

bool was_started_as_executor() { return was_marked; }

unsigned process_depth() { return depth; }

void end_if_no_executor() {
  if (!was_marked || entry_taken) return;
  std::cerr << "troupe: this executor's main has not become one: in a test link Troupe::testing_main in place of "
               "GTest::gtest_main, or begin main with `if (const auto code = troupe::testing::main_hook(argc, argv)) "
               "return *code;`; in a program call troupe::run before anything that starts a session\n";
  end_process(exit_code_of(ec::invalid_configuration));
}

int folder_at_start() { return start_folder; }

void let_go_of_start_folder() {
  if (start_folder >= 0) ::close(start_folder);
  start_folder = -1;
}

std::optional<executor_entry> take_executor_entry() {
  if (!was_marked || entry_taken) return std::nullopt;
  entry_taken = true;
  executor_entry out{{}, claimed_liveness}; // without a start where there was none that can be used
  if (claimed_start < 0) return out;
  struct stat file {};
  if (::fstat(claimed_start, &file) == 0) out.start.resize(static_cast<std::size_t>(file.st_size));
  for (std::size_t filled = 0; filled < out.start.size();) {
    const auto n =
        ::pread(claimed_start, out.start.data() + filled, out.start.size() - filled, static_cast<off_t>(filled));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) out.start.resize(filled); // which is found malformed
    if (n <= 0) break;
    filled += static_cast<std::size_t>(n);
  }
  ::close(claimed_start);
  claimed_start = -1;
  return out;
}

const std::vector<std::string>& program_arguments() { return *arguments; }

result<int> make_sealed_file(std::string_view content) {
  const int fd = ::memfd_create("troupe-executor-start", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  const auto failed = [&](const char* what) {
    const auto why = make_error(ec::io, std::string{what} + ": " + std::strerror(errno));
    if (fd >= 0) ::close(fd);
    return why;
  };
  if (fd < 0) return failed("cannot make a file in memory");
  for (std::size_t written = 0; written < content.size();) {
    const auto n = ::write(fd, content.data() + written, content.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return failed("cannot write a file in memory");
    written += static_cast<std::size_t>(n);
  }
  if (::fcntl(fd, F_ADD_SEALS, all_seals) != 0) return failed("cannot seal a file in memory");
  return fd;
}

std::vector<std::string> executor_environment(int start_fd, int liveness_fd, const std::string& name) {
  const std::string own = std::string{marker} + "=";
  std::vector<std::string> out;
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (std::string_view text{*variable}; !text.starts_with(own)) out.emplace_back(text);
  out.push_back(own + std::to_string(start_fd) + "," + std::to_string(liveness_fd) + ":" + name);
  return out;
}

void end_process(int code) {
  std::cout.flush();
  std::cerr.flush();
  std::fflush(nullptr);
  if (__lsan_do_leak_check != nullptr) __lsan_do_leak_check();
  ::_exit(code);
}

} // namespace troupe
