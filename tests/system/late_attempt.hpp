#pragma once

/// A job of one command whose attempts end when the test says so, and what is in place of its output.

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include <troupe/tests/support/process_probe.hpp>
#include <troupe/tests/support/test_cluster.hpp>

namespace troupe::system_tests {

class late_attempt {
public:
  /// The task would rather run on `host`; attempt N says that it has begun, waits for `go`, and leaves "N".
  explicit late_attempt(const std::string& host) {
    std::ofstream{job()} << R"(name: late
profiles:
  any: {executor: {cores: 1, memory: 64m}, task: {cpus: 1}}
stages:
  make:
    profile: any
    tasks: 1
    prefer: [)" << host << R"(]
    run: [sh, -c, 'cd "$1"; touch began-$2; while ! [ -e go-$2 ]; do sleep 0.01; done; echo $2 > "$3"',
          make, ")" << folder_.path()
                         << R"(", "{attempt}", "{output}"]
    outputs: [made]
)";
  }

  std::string job() const { return folder_.path() + "/job.yaml"; }
  bool await(int attempt) const {
    const auto file = folder_.path() + "/began-" + std::to_string(attempt);
    return testing::wait_until([&] { return std::filesystem::exists(file); });
  }
  void go(int attempt) const { std::ofstream{folder_.path() + "/go-" + std::to_string(attempt)}; }
  /// All that the output directory holds, hidden entries too.
  std::set<std::string> in_place() const {
    std::set<std::string> names;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator{folder_.path() + "/out/make", none})
      names.insert(entry.path().filename());
    return names;
  }
  std::string output() const {
    std::ifstream file{folder_.path() + "/out/make/made"};
    std::string word;
    file >> word;
    return word;
  }

private:
  testing::temporary_directory folder_;
};

} // namespace troupe::system_tests
