#pragma once

/// A cluster for tests, with any test framework: executors in this process or real processes on this machine, with fake
/// GPUs if wanted; to be killed, stopped and resumed; and a check at the end that nothing of it is left.
///
///     int main(int argc, char** argv) {
///       if (const auto code = troupe::testing::main_hook(argc, argv)) return *code;  // this process is an executor
///       troupe::test_cluster cluster{{.master = "local-cluster[2,1,1g]", .fake_gpus = 2}};
///       auto session = cluster.make_session();
///       auto numbers = session.range(0, 1000, 8).count();
///       cluster.kill(cluster.executors().front());
///       …
///       cluster.check_clean();   // throws when a process, port, descriptor or file is left
///     }
///
/// Executor processes are started from the test program itself, which is why its main calls the hook first. CMake:
/// `target_link_libraries(my_test PRIVATE Troupe::testing)`.

#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include <troupe/launcher/application.hpp>
#include <troupe/runtime/api/session.hpp>
#include <troupe/tests/support/process_probe.hpp>

namespace troupe {

struct job_defaults;

namespace testing {

/// To be called first in a test program's main, before there is any thread. Does not come back where the process was
/// started as an executor. Gives nothing in the test itself; a main that returned what it gives is as good as ever.
std::optional<int> main_hook(int argc, char** argv);

/// A directory of mode 0700 below the system's temporary one, removed with everything in it.
class temporary_directory {
public:
  temporary_directory();
  ~temporary_directory();
  temporary_directory(const temporary_directory&) = delete;
  temporary_directory& operator=(const temporary_directory&) = delete;

  const std::string& path() const noexcept { return path_; }

private:
  std::string path_;
};

} // namespace testing

/// A test cluster did not start, a named executor does not exist, or something was left behind.
class test_cluster_error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// One cluster, with its driver in this process. Several may live at once. Not thread-safe itself; sessions, jobs and
/// `app().jobs()` may be used on any thread.
class test_cluster {
public:
  struct options {
    /// `local[N]`: executors in this process. `local-cluster[N,cores,memory]`: processes of this machine.
    std::string master = "local[2]";
    /// GPU addresses that the machine pretends to have: `fake-0`, `fake-1`, …
    std::uint32_t fake_gpus = 0;
    /// Settings as `key=value`; stronger than what a test cluster sets itself (a longer driver-timeout, no progress
    /// display).
    std::vector<std::string> conf = {};
    /// Text of a cluster file: its hosts, profiles and standing executors stand in place of those of `master`, its
    /// settings are weaker than `conf`.
    std::string cluster_file = {};
    /// Lets other processes connect to the driver also with `local[N]`.
    bool published = false;
    /// What `make_session` passes on as the program's own arguments.
    std::vector<std::string> arguments = {};
    /// How long `check_clean` waits for what is still ending.
    duration patience = testing::patience();
    /// Called by the destructor, once for each thing that is left, when `check_clean` was not called. Unset: the
    /// destructor throws test_cluster_error, unless another exception is on its way.
    std::function<void(const std::string& what)> on_left = {};
    std::function<void(const job_progress&)> on_progress = {}; ///< on a thread of the cluster; must not block
  };

  /// An executor as the driver sees it.
  struct executor {
    executor_id id;
    std::string name; ///< `executor-1`: by its request
    pid_t pid = 0;    ///< of the process that runs tasks; this one for executors in this process
    executor_status status;
  };

  /// Starts it. Throws test_cluster_error. Descriptors that the test opens from here until `check_clean` count as left
  /// behind unless it closes them.
  explicit test_cluster(options opts);
  ~test_cluster() noexcept(false);
  test_cluster(const test_cluster&) = delete;
  test_cluster& operator=(const test_cluster&) = delete;

  /// A session on this cluster, as `troupe::run` would pass it to a program.
  session make_session() const;
  /// Runs the job of a job file with this text to its end, as `troupe run` would with the cluster's settings. The file
  /// lies in a folder of its own, where relative paths begin and which is removed then: name an absolute `output`, and
  /// absolute inputs, to look at what the job makes. Throws test_cluster_error where the text is wrong.
  job_end run_job_file(const std::string& text) const;
  /// The connection that sessions use; what a test needs that has no session.
  cluster_jobs& jobs() const;
  /// The driver's side: address, secret file, run directory.
  application& app() const;

  /// Executors that are admitted, by ascending id. Throws test_cluster_error when the driver does not answer.
  std::vector<executor> executors() const;
  /// The one with this name. Throws test_cluster_error with the names that there are.
  executor find(std::string_view name) const;
  /// Waits until exactly `count` executors are admitted. Throws test_cluster_error with those that there are.
  std::vector<executor> await_executors(std::size_t count, duration deadline = testing::patience()) const;
  /// Waits until nothing of any job is left in the cluster: no unfinished job, no lease, no task, no block, such as a
  /// kept partition. Throws
  /// test_cluster_error with what there is.
  void await_idle(duration deadline = testing::patience()) const;

  /// SIGKILL, SIGSTOP, SIGCONT to an executor's process; `kill` waits until it has ended. Throw test_cluster_error for
  /// one in this process and for one that has ended, such as by an earlier `kill`.
  static void kill(const executor& which);
  static void stop(const executor& which);
  static void resume(const executor& which);
  void kill(std::string_view name) const { kill(find(name)); }
  void stop(std::string_view name) const { stop(find(name)); }
  void resume(std::string_view name) const { resume(find(name)); }

  /// Ends the session, as the destructor would. Sessions and jobs of it fail from then on. May be called twice.
  void close();
  /// Ends the session and says what is left of it within `options::patience`: processes, files, control groups, and
  /// listening ports and descriptors of this process, of which those count that came since the cluster was made; where
  /// another test cluster lived meanwhile, those alone that are certain to be this one's. Executors that are stopped
  /// are resumed, so that they can end.
  std::vector<std::string> left_behind();
  /// The same; throws test_cluster_error when something is left.
  void check_clean();

private:
  std::vector<std::string> look_around() const;

  /// Counts the clusters that live in this process.
  struct presence {
    presence();
    ~presence();
    presence(const presence&) = delete;
    presence& operator=(const presence&) = delete;
  };

  options options_;
  presence presence_;
  bool has_company_ = false; ///< another one lived when this one was made
  std::uint64_t number_ = 0; ///< of this one among all that were made
  std::uint16_t own_port_ = 0;
  testing::temporary_directory base_;
  std::map<int, std::string> descriptors_before_;
  std::map<std::uint64_t, std::uint16_t> ports_before_;
  std::shared_ptr<const job_defaults> job_defaults_; ///< of job files
  std::unique_ptr<application> app_;
  std::string session_id_;
  bool checked_ = false;
};

} // namespace troupe
