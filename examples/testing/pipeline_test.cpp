// Tests of a job on clusters that each test has to itself: real processes of this machine, with GPUs that do not exist.
#include <chrono>
#include <cstdint>
#include <fstream>
#include <functional>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <troupe/tests/support/test_cluster.hpp>
#include <troupe/troupe.hpp>

namespace {

using namespace std::chrono_literals;

/// Two executor processes of one core.
const std::string two_processes = "local-cluster[2,1,2g]";

troupe::resource_profile with_gpus(int gpus) {
  return troupe::resource_profile_builder{}
      .require(troupe::executor_resource_requests{}.cores(1).memory("1g").resource("gpu", gpus))
      .require(troupe::task_resource_requests{}.cpus(1).resource("gpu", gpus))
      .build();
}

/// Lets a test wait until the first tasks of a job are done, and others are not.
class first_tasks {
public:
  std::function<void(const troupe::job_progress&)> listener() {
    return [this](const troupe::job_progress& p) {
      if (p.stages.front().done > 0) std::call_once(told_, [this] { done_.set_value(); });
    };
  }
  /// False where the job ends before that.
  bool await(const std::future<std::int64_t>& job) {
    const auto done = done_.get_future();
    while (done.wait_for(10ms) != std::future_status::ready)
      if (job.wait_for(0s) == std::future_status::ready) return false;
    return true;
  }

private:
  std::once_flag told_;
  std::promise<void> done_;
};

/// Takes long enough that something can happen meanwhile, and is sure of its result.
std::int64_t slow_square(std::int64_t n) {
  std::this_thread::sleep_for(5ms);
  return n * n;
}
constexpr std::int64_t parts = 200;
constexpr std::int64_t sum_of_squares = (parts - 1) * parts * (2 * parts - 1) / 6;

std::future<std::int64_t> count_squares(troupe::test_cluster& cluster) {
  return std::async(std::launch::async, [session = cluster.make_session()]() mutable {
    const auto squares = session.range(0, parts, parts).map(troupe::fn<slow_square>);
    return squares.reduce([](std::int64_t a, std::int64_t b) { return a + b; }).value_or(0);
  });
}

TEST(pipeline, gives_each_task_a_gpu_of_its_own) {
  troupe::test_cluster cluster{{.master = two_processes, .fake_gpus = 2}};
  auto session = cluster.make_session();
  const auto seen =
      session.range(0, 20, 20)
          .with_resources(with_gpus(1))
          .map([](std::int64_t) { return troupe::task_context::current().addresses("gpu").at(0).address; })
          .collect();
  for (const auto& address : seen) EXPECT_TRUE(address == "fake-0" || address == "fake-1") << address;
  cluster.check_clean();
}

TEST(pipeline, survives_an_executor_that_is_killed) {
  first_tasks first;
  troupe::test_cluster cluster{{.master = two_processes, .on_progress = first.listener()}};
  auto sum = count_squares(cluster);
  if (!first.await(sum)) FAIL() << "it ended too early: " << sum.get();
  cluster.kill(cluster.executors().front());
  EXPECT_EQ(sum.get(), sum_of_squares);
  cluster.check_clean();
}

TEST(pipeline, waits_for_an_executor_that_stands_still) {
  first_tasks first;
  troupe::test_cluster cluster{{.master = two_processes, .on_progress = first.listener()}};
  auto sum = count_squares(cluster);
  if (!first.await(sum)) FAIL() << "it ended too early: " << sum.get();
  const auto paused = cluster.executors().front();
  cluster.stop(paused);
  cluster.resume(paused);
  EXPECT_EQ(sum.get(), sum_of_squares);
  cluster.check_clean();
}

std::int64_t square(std::int64_t n) { return n * n; }
constexpr auto square_task = troupe::task<"square", square>;

std::string address_of_fpga() { return troupe::task_context::current().addresses("fpga").front().address; }
constexpr auto fpga_task = troupe::task<"address-of-fpga", address_of_fpga>;

TEST(pipeline, runs_a_job_of_named_tasks) {
  troupe::test_cluster cluster{{.master = two_processes}};
  auto session = cluster.make_session();
  troupe::job job{"squares"};
  auto squares = job.stage("square").run(square_task).arguments(std::vector<std::int64_t>{1, 2, 3});
  EXPECT_EQ(session.run(job, squares), (std::vector<std::int64_t>{1, 4, 9}));
  cluster.check_clean();
}

TEST(pipeline, runs_a_job_file) {
  const troupe::testing::temporary_directory folder;
  troupe::test_cluster cluster{{.master = two_processes}};
  const troupe::job_end end =
      cluster.run_job_file("name: hello\noutput: " + folder.path() +
                           "\nstages: {say: {run: [sh, -c, 'echo hi >{output}'], outputs: [hi.txt]}}\n");
  EXPECT_FALSE(end.failure) << end.failure.message;
  std::string said;
  std::getline(std::ifstream{folder.path() + "/say/hi.txt"}, said);
  EXPECT_EQ(said, "hi");
  cluster.check_clean();
}

TEST(pipeline, is_placed_where_an_fpga_is) {
  troupe::test_cluster cluster{
      {.cluster_file = "cluster:\n  hosts: [{name: a, cores: 2, memory: 2g, resources: {fpga: [x, y]}}]\n"}};
  auto session = cluster.make_session();
  const auto with_fpga = troupe::resource_profile_builder{}
                             .require(troupe::executor_resource_requests{}.cores(1).memory("1g").resource("fpga", 1))
                             .require(troupe::task_resource_requests{}.cpus(1).resource("fpga", 1))
                             .build();
  troupe::job job{"addresses"};
  auto asked = job.stage("ask").run(fpga_task).tasks(4).profile(with_fpga);
  for (const auto& address : session.run(job, asked)) EXPECT_TRUE(address == "x" || address == "y") << address;
  cluster.check_clean();
}

TEST(pipeline, fails_a_command_that_takes_more_memory_than_its_task_has) {
  troupe::test_cluster cluster{{.master = two_processes, .conf = {"troupe.task.max-failures=1"}}};
  const auto end = cluster.run_job_file(R"(
name: greedy
profiles:
  small:
    executor: {cores: 1, memory: 1g}
    task: {cpus: 1, memory: 64m}
stages:
  take:
    profile: small
    run: [sh, -c, "x=$(head -c 300000000 /dev/zero | tr '\\0' x); sleep 60"]
)");
  EXPECT_NE(end.failure.message.find("it took more memory than its task may"), std::string::npos)
      << end.failure.message;
  cluster.check_clean();
}

TEST(pipeline, is_told_what_no_executor_can_have) {
  troupe::test_cluster cluster{{.master = two_processes, .fake_gpus = 2}};
  auto session = cluster.make_session();
  try {
    session.range(0, 1, 1).with_resources(with_gpus(3)).count();
    FAIL() << "there are two GPUs";
  } catch (const troupe::job_error& e) {
    EXPECT_NE(std::string{e.what()}.find("gpu"), std::string::npos) << e.what();
  }
  cluster.check_clean();
}

} // namespace
