#include <troupe/tests/system/program_process.hpp>

#include <csignal>
#include <cstring>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace troupe::system_tests {
namespace {

std::string content_of(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream{file}.rdbuf();
  return text.str();
}

} // namespace

program_process::program_process(std::vector<std::string> words, bool own_group) {
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const auto out = directory_.path() + "/out";
  const auto err = directory_.path() + "/err";
  constexpr int flags = O_WRONLY | O_CREAT | O_APPEND;
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, out.c_str(), flags, 0600);
  posix_spawn_file_actions_addopen(&files, 2, err.c_str(), flags, 0600);
  // Whatever this test was started with, as below nohup.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t all;
  sigfillset(&all);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes,
                           own_group ? POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP : POSIX_SPAWN_SETSIGDEF);
  const int failure = posix_spawnp(&pid_, argv[0], &files, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (failure != 0) throw test_cluster_error("cannot start " + words[0] + ": " + std::strerror(failure));
}

program_process::~program_process() {
  if (code_) return;
  ::kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

std::string program_process::printed() const { return content_of(directory_.path() + "/out"); }

std::string program_process::output() const { return printed() + content_of(directory_.path() + "/err"); }

std::optional<int> program_process::wait(duration deadline) {
  testing::wait_until(
      [&] {
        int status = 0;
        if (!code_ && waitpid(pid_, &status, WNOHANG) == pid_)
          code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        return code_.has_value();
      },
      deadline);
  return code_;
}

void program_process::kill(int signal) const {
  if (!code_) ::kill(pid_, signal);
}

} // namespace troupe::system_tests
