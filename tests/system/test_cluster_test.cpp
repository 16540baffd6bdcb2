// What users test with, put to the test itself.

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/runtime/api/session.hpp>
#include <troupe/tests/support/test_cluster.hpp>

namespace troupe::system_tests {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* one_host = R"(
cluster:
  hosts:
    - {name: left, cores: 2, memory: 512m, resources: {gpu: [a, b]}}
  profiles:
    gpu: {executor: {cores: 1, memory: 128m, resource: {gpu: {amount: 1}}}, task: {cpus: 1, resource: {gpu: {amount: 1}}}}
  executors:
    - {profile: gpu, count: 2}
)";

template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const test_cluster_error& e) {
    return e.what();
  }
  return "nothing was thrown";
}

TEST(test_clusters, start_what_a_cluster_file_describes) {
  test_cluster cluster{{.cluster_file = one_host}};
  const auto executors = cluster.await_executors(2);
  for (const auto& e : executors) {
    EXPECT_EQ(e.status.info.host, "left");
    EXPECT_EQ(e.status.info.capacity.custom.at("gpu").addresses.size(), 1u);
    EXPECT_TRUE(testing::is_alive(e.pid));
    EXPECT_EQ(cluster.find(e.name).pid, e.pid);
  }
  EXPECT_NE(executors[0].status.info.capacity, executors[1].status.info.capacity) << "one address lent twice";
  cluster.check_clean();
  for (const auto& e : executors) EXPECT_FALSE(testing::is_alive(e.pid));
}

TEST(test_clusters, run_job_files_with_their_own_settings) {
  const testing::temporary_directory folder;
  const auto tried_twice = [&](const char* name) {
    return "name: twice\nstages: {a: {run: [sh, -c, 'mkdir " + folder.path() + "/" + name + " && exit 7; exit 0']}}\n";
  };
  test_cluster strict{{.conf = {"troupe.task.max-failures=1"}}};
  EXPECT_EQ(strict.run_job_file(tried_twice("strict")).progress.state, job_state::failed);
  strict.check_clean();
  test_cluster cluster{{}};
  const auto end = cluster.run_job_file(tried_twice("usual"));
  EXPECT_EQ(end.progress.state, job_state::succeeded) << end.failure.message;
  cluster.check_clean();
}

TEST(test_clusters, kill_stop_and_resume_by_name) {
  test_cluster cluster{{.cluster_file = one_host}};
  const auto executors = cluster.await_executors(2);
  const auto state = [&](std::size_t i) { return testing::look_at(executors[i].pid).state; };
  cluster.stop(executors[0].name);
  EXPECT_TRUE(testing::wait_until([&] { return state(0) == 'T'; }));
  cluster.resume(executors[0].name);
  EXPECT_TRUE(testing::wait_until([&] { return state(0) != 'T'; }));
  cluster.kill(executors[1].name);
  EXPECT_FALSE(testing::is_alive(executors[1].pid));
  EXPECT_THAT(error_of([&] { cluster.kill(executors[1]); }), HasSubstr("was it killed before?"));
  EXPECT_THAT(error_of([&] { cluster.kill("executor-99"); }),
              AllOf(HasSubstr("executor-99"), HasSubstr(executors[0].name)));
  cluster.check_clean();
}

TEST(test_clusters, end_though_an_executor_of_theirs_is_stopped) {
  // More than the test may take: nobody waits until it is killed.
  test_cluster cluster{{.conf = {"troupe.shutdown.grace=1h"}, .cluster_file = one_host}};
  const auto executor = cluster.await_executors(2).front();
  cluster.stop(executor);
  EXPECT_TRUE(testing::wait_until([&] { return testing::look_at(executor.pid).state == 'T'; }));
  cluster.check_clean();
}

TEST(test_clusters, answer_for_what_is_their_own) {
  test_cluster::options options{.master = "local-cluster[1,1,1g]"};
  auto first = std::make_unique<test_cluster>(options);
  test_cluster second{options};
  EXPECT_EQ(first->make_session().range(0, 5, 1).count(), 5u);
  EXPECT_EQ(second.make_session().range(0, 5, 1).count(), 5u); // its connections came after the first one was made
  options.patience = std::chrono::milliseconds{50};
  test_cluster third{options};
  first->check_clean();
  second.check_clean();
  third.make_session().range(0, 5, 1).count();
  const int own = open((third.app().directory() + "/forgotten").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  EXPECT_THAT(error_of([&] { third.check_clean(); }), HasSubstr("/forgotten"));
  close(own);
}

TEST(test_clusters, are_not_idle_as_long_as_a_partition_is_kept) {
  test_cluster cluster{{.master = "local[1]"}};
  {
    auto session = cluster.make_session();
    const auto kept = session.range(0, 5, 1).cache();
    EXPECT_EQ(kept.count(), 5u);
    EXPECT_THAT(error_of([&] { cluster.await_idle(std::chrono::milliseconds{1}); }),
                HasSubstr("0 tasks, 1 outputs or kept partitions"));
  }
  cluster.await_idle();
  cluster.check_clean();
}

TEST(test_clusters, do_not_kill_the_test_itself) {
  test_cluster cluster{{.master = "local[1]"}};
  EXPECT_EQ(cluster.make_session().range(0, 5, 1).count(), 5u);
  const auto executor = cluster.await_executors(1).front();
  EXPECT_EQ(executor.pid, getpid());
  EXPECT_THAT(error_of([&] { cluster.kill(executor); }), HasSubstr("local-cluster"));
  cluster.check_clean();
}

TEST(test_clusters, say_what_is_wrong_with_their_settings) {
  EXPECT_THAT(error_of([] { test_cluster cluster{{.master = "local[x]"}}; }), HasSubstr("local[x]"));
  EXPECT_THAT(error_of([] { test_cluster cluster{{.conf = {"troupe.taks.cpus=1"}}}; }),
              AllOf(HasSubstr("troupe.taks.cpus"), HasSubstr("troupe.task.cpus")));
  EXPECT_THAT(
      error_of([] { test_cluster cluster{{.conf = {"troupe.driver.bind-address=10.1.2.3"}, .published = true}}; }),
      AllOf(HasSubstr("10.1.2.3"), HasSubstr("troupe.security.insecure")));
}

TEST(test_clusters, find_what_is_left_behind) {
  test_cluster::options options{.master = "local[1]"};
  options.patience = std::chrono::milliseconds{50};
  test_cluster cluster{options};
  const auto name = cluster.app().directory();
  const int forgotten = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  const int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(listen(listening, 1), 0);
  const auto child = fork();
  if (child == 0) {
    execl("/bin/sleep", "sleep", "1000", nullptr);
    _exit(1);
  }
  // A process that works in the session's directory: what a task might leave.
  const auto stray = fork();
  if (stray == 0) {
    if (chdir(name.c_str()) != 0) _exit(1);
    execl("/bin/sleep", "sleep", "1000", nullptr);
    _exit(1);
  }
  ASSERT_TRUE(testing::wait_until([&] { return testing::look_at(stray).command_line.starts_with("sleep"); }));
  const auto left = error_of([&] { cluster.check_clean(); });
  EXPECT_THAT(left,
              AllOf(HasSubstr("/dev/zero"), HasSubstr("listening port"), HasSubstr("pid " + std::to_string(stray))));
  EXPECT_THAT(left, ::testing::Not(HasSubstr("pid " + std::to_string(child)))) << "not of this session";
  for (const auto pid : {child, stray}) {
    kill(pid, SIGKILL);
    EXPECT_TRUE(testing::wait_until([&] { return !testing::is_alive(pid); }));
  }
  close(forgotten);
  close(listening);
}

TEST(test_clusters, report_what_is_left_when_nobody_asks) {
  std::vector<std::string> reported;
  const int forgotten = [&] {
    test_cluster::options options{.master = "local[1]"};
    options.patience = std::chrono::milliseconds{50};
    options.on_left = [&](const std::string& what) { reported.push_back(what); };
    const test_cluster cluster{options};
    return open("/dev/zero", O_RDONLY | O_CLOEXEC);
  }();
  EXPECT_THAT(reported, Contains(HasSubstr("/dev/zero"))); // and what has not ended so soon
  close(forgotten);
  reported.clear();
  {
    test_cluster::options options{.master = "local[1]"};
    options.on_left = [&](const std::string& what) { reported.push_back(what); };
    const test_cluster cluster{options};
  }
  EXPECT_THAT(reported, IsEmpty());
}

} // namespace
} // namespace troupe::system_tests
