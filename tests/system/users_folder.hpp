#pragma once

/// A user's folder with a run directory and a disk of its own, and the program as this user starts it.

#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <troupe/tests/system/program_process.hpp>

namespace troupe::system_tests {

class users_folder : public ::testing::Test {
protected:
  users_folder() {
    setenv("XDG_RUNTIME_DIR", folder.path().c_str(), 1);
    for (const auto* threads :
         {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "NUMEXPR_NUM_THREADS"})
      unsetenv(threads); // what this user has not said
  }
  ~users_folder() override {
    unsetenv("XDG_RUNTIME_DIR");
    EXPECT_TRUE(testing::wait_until([&] { return processes().empty(); })) << processes().front().text();
  }

  std::string at(const std::string& name) const { return folder.path() + "/" + name; }
  std::vector<testing::seen_process> processes() const { return testing::processes_of(folder.path()); }
  std::unique_ptr<program_process> started(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), TROUPE_PROGRAM);
    arguments.insert(arguments.end(), {"--conf", "troupe.local.dir=" + at("disk")});
    return std::make_unique<program_process>(std::move(arguments));
  }
  int run(std::vector<std::string> arguments) const {
    const auto process = started(std::move(arguments));
    const auto code = process->wait();
    EXPECT_TRUE(code) << process->output();
    last_output = process->output();
    return code.value_or(-1);
  }
  /// Stopped first, so that none clears up after another one.
  void kill_all() const {
    for (const int signal : {SIGSTOP, SIGKILL})
      for (int round = 0; round < 3; ++round)
        for (const auto& p : processes()) ::kill(p.pid, signal);
    ASSERT_TRUE(testing::wait_until([&] { return processes().empty(); })) << processes().front().text();
  }

  testing::temporary_directory folder;
  mutable std::string last_output;
};

} // namespace troupe::system_tests
