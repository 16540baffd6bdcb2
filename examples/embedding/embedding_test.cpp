// The application's own test: what it gets from the library, and what the library leaves alone.
#include <csignal>
#include <cstring>
#include <filesystem>
#include <future>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <caf/scoped_actor.hpp>
#include <gtest/gtest.h>
#include <troupe/actors/client.hpp>
#include <troupe/actors/submission.hpp>
#include <troupe/runtime/api/job.hpp>
#include <troupe/runtime/api/resource_profile_builder.hpp>
#include <troupe/tests/support/patience.hpp>

#include "desk.hpp"

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using troupe::testing::patience;

/// Tasks of the test wait here until the test has seen what it wants to see.
std::promise<void>& gate() {
  static std::promise<void> opened;
  return opened;
}
std::shared_future<void>& opened() {
  static std::shared_future<void> future = gate().get_future().share();
  return future;
}

std::int64_t wait_at_gate(std::int64_t number) {
  opened().wait_for(2 * patience()); // longer than the test waits
  return number * number;
}
constexpr auto gate_task = troupe::task<"wait-at-gate", wait_at_gate>;

std::string long_text() { return std::string(3 << 20, 'x'); }
constexpr auto long_text_task = troupe::task<"long-text", long_text>;

std::string fail() { throw std::runtime_error{"the reason why"}; }
constexpr auto failing_task = troupe::task<"fail", fail>;

std::size_t entries_of(const char* folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator{folder}, fs::directory_iterator{}));
}

/// The kernel lists a thread for a moment after it was joined, and what a descriptor refers to ends in its own time, so
/// this looks until a deadline.
bool come_down_to(std::size_t known, const char* folder) {
  const auto deadline = std::chrono::steady_clock::now() + patience();
  while (entries_of(folder) > known) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

class embedding : public ::testing::Test {
protected:
  void SetUp() override {
    folder_ = (fs::temp_directory_path() / "embedding-XXXXXX").string();
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    for (int number = 1; number < NSIG; ++number) {
      struct sigaction now {};
      if (sigaction(number, nullptr, &now) == 0) handlers_.emplace_back(number, now.sa_handler);
    }
    descriptors_ = entries_of("/proc/self/fd");
    std::thread{[] {}}.join(); // with the first one a sanitizer starts its own
    for (int looks = 0; looks < 10'000 && entries_of("/proc/self/task") > 1; ++looks) std::this_thread::yield();
    threads_ = entries_of("/proc/self/task");
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    config_.emplace();
    system_.emplace(*config_);
  }

  void TearDown() override {
    // Returns only when every actor has ended: one that were left would run into the test's time-out.
    system_.reset();
    EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
    EXPECT_TRUE(come_down_to(descriptors_, "/proc/self/fd")) << "descriptors are left";
    EXPECT_TRUE(come_down_to(threads_, "/proc/self/task")) << "threads are left";
    for (const auto& [number, handler] : handlers_) {
      struct sigaction now {};
      ASSERT_EQ(sigaction(number, nullptr, &now), 0);
      EXPECT_EQ(now.sa_handler, handler) << "signal " << number;
    }
    for (const auto& entry : fs::directory_iterator{folder_})
      EXPECT_TRUE(fs::is_empty(entry)) << entry.path() << " is not empty";
    fs::remove_all(folder_);
  }

  troupe::embedded_cluster spawn(const std::string& name, troupe::embedded_options options = {}) {
    options.directory = folder_ + "/" + name;
    fs::create_directory(options.directory);
    auto made = troupe::spawn_embedded(*system_, std::move(options));
    EXPECT_TRUE(made) << made.error().message;
    return *made;
  }

  void stop(const troupe::embedded_cluster& cluster) {
    caf::scoped_actor self{*system_};
    troupe::ask(self, cluster.driver, patience(), troupe::box(troupe::stop_session{"the test is over"}))
        .receive([](const troupe::boxed<troupe::acknowledged>&) {},
                 [&](const caf::error& why) { ADD_FAILURE() << troupe::describe(*system_, why); });
    troupe::shut_down(cluster.driver);
  }

  /// Runs a job to its end through a client of its own.
  troupe::job_end run(const troupe::embedded_cluster& cluster, const troupe::job& job) {
    std::promise<troupe::job_end> end;
    troupe::client_config hears;
    hears.on_end = [&](const troupe::boxed<troupe::job_end>& e) { end.set_value(*e); };
    const troupe::client_actor client = troupe::spawn_client(*system_, std::move(hears));
    submit(cluster, job, client);
    auto future = end.get_future();
    EXPECT_EQ(future.wait_for(patience()), std::future_status::ready);
    const auto result = future.get();
    quit(client);
    return result;
  }

  void submit(const troupe::embedded_cluster& cluster, const troupe::job& job, const troupe::client_actor& client) {
    caf::scoped_actor self{*system_};
    const auto spec = std::make_shared<const troupe::job_spec>(job.build({}, 0));
    troupe::ask(self, cluster.driver, patience(), troupe::box(troupe::job_submission{spec, {}}), client)
        .receive([](const troupe::boxed<troupe::job_accepted>&) {},
                 [&](const caf::error& why) { ADD_FAILURE() << troupe::describe(*system_, why); });
  }

  /// Ends an actor of the application.
  template <class Handle>
  void quit(const Handle& actor) {
    caf::scoped_actor self{*system_};
    troupe::watch(self.ptr(), actor);
    troupe::shut_down(actor);
    self->receive([](const caf::down_msg&) {});
  }

  std::int64_t primes_below(std::int64_t limit, const primes::desk_actor& desk, std::uint32_t* executors = nullptr) {
    caf::scoped_actor self{*system_};
    std::int64_t found = -1;
    troupe::ask(self, desk, patience(), primes::count_request{limit, 20})
        .receive(
            [&](const primes::count_reply& reply) {
              found = reply.primes;
              EXPECT_EQ(reply.tasks, 20u);
              if (executors) *executors = reply.executors;
            },
            [&](const caf::error& why) { ADD_FAILURE() << troupe::describe(*system_, why); });
    return found;
  }

  std::string folder_;
  std::vector<std::pair<int, void (*)(int)>> handlers_;
  std::size_t descriptors_ = 0;
  std::size_t threads_ = 0;
  std::optional<primes::config> config_;
  std::optional<caf::actor_system> system_;
};

TEST_F(embedding, answers_the_applications_own_request) {
  const auto cluster = spawn("one");
  const auto desk = primes::spawn_desk(*system_, cluster.driver, {});
  EXPECT_EQ(primes_below(100'000, desk), 9'592);
  quit(desk);
  stop(cluster);
}

TEST_F(embedding, has_room_for_a_second_driver) {
  const auto first = spawn("first");
  const auto second = spawn("second");
  const auto first_desk = primes::spawn_desk(*system_, first.driver, {});
  const auto second_desk = primes::spawn_desk(*system_, second.driver, {});
  EXPECT_EQ(primes_below(10'000, first_desk), 1'229);
  EXPECT_EQ(primes_below(1'000, second_desk), 168);
  stop(first);
  EXPECT_EQ(primes_below(2'000, second_desk), 303) << "the other one goes on";
  stop(second);
  quit(first_desk);
  quit(second_desk);
}

TEST_F(embedding, hears_progress_before_the_end) {
  const auto cluster = spawn("one");
  std::promise<void> two_run;
  bool told = false;
  std::promise<troupe::job_end> end;
  troupe::client_config hears;
  hears.on_progress = [&](const troupe::boxed<troupe::job_progress>& p) {
    // Two executors of one core each: two of the five tasks run.
    if (p->stages.at(0).running < 2 || told) return;
    told = true;
    EXPECT_EQ(p->stages.at(0).done, 0u);
    two_run.set_value();
  };
  hears.on_end = [&](const troupe::boxed<troupe::job_end>& e) { end.set_value(*e); };
  const troupe::client_actor client = troupe::spawn_client(*system_, std::move(hears));
  troupe::job job{"gate"};
  job.stage("wait").run(gate_task).arguments({1, 2, 3, 4, 5});
  submit(cluster, job, client);
  auto running = two_run.get_future();
  EXPECT_EQ(running.wait_for(patience()), std::future_status::ready);
  auto ended = end.get_future();
  EXPECT_EQ(ended.wait_for(0s), std::future_status::timeout);
  opened();
  gate().set_value();
  ASSERT_EQ(ended.wait_for(patience()), std::future_status::ready);
  const auto outcome = ended.get();
  EXPECT_FALSE(outcome.failure) << outcome.failure.message;
  ASSERT_TRUE(outcome.results);
  std::vector<std::int64_t> squares;
  for (std::size_t i = 0; i < outcome.results->values.size(); ++i)
    squares.push_back(troupe::decode_value<std::int64_t>(outcome.results->values[i]));
  EXPECT_EQ(squares, (std::vector<std::int64_t>{1, 4, 9, 16, 25}));
  quit(client);
  stop(cluster);
}

TEST_F(embedding, reads_a_result_that_stayed_on_its_executor) {
  const auto cluster = spawn("one");
  troupe::job job{"long"};
  job.stage("make").run(long_text_task);
  const auto end = run(cluster, job);
  ASSERT_FALSE(end.failure) << end.failure.message;
  ASSERT_TRUE(end.results);
  ASSERT_EQ(end.results->elsewhere.size(), 1u);
  const auto bytes = troupe::fetch_result(cluster, end.results->elsewhere.front());
  ASSERT_TRUE(bytes) << bytes.error().message;
  EXPECT_EQ(troupe::decode_value<std::string>(*bytes), std::string(3 << 20, 'x'));
  stop(cluster);
}

std::string own_gpu() { return troupe::task_context::current().addresses("gpu").at(0).address; }
constexpr auto gpu_task = troupe::task<"own-gpu", own_gpu>;

TEST_F(embedding, tells_tasks_which_devices_are_their_own) {
  troupe::carving_host host;
  host.name = "localhost";
  host.cores = 4;
  host.memory = 8ll << 30;
  host.custom["gpu"] = {2, {"fake-0", "fake-1"}};
  troupe::embedded_options options;
  options.hosts = {host};
  options.executors.clear();
  const auto cluster = spawn("one", std::move(options));
  troupe::job job{"gpus"};
  job.stage("which").run(gpu_task).tasks(4).profile(
      troupe::resource_profile_builder{}
          .require(troupe::executor_resource_requests{}.cores(1).memory("1g").resource("gpu", 1))
          .require(troupe::task_resource_requests{}.cpus(1).resource("gpu", 1))
          .build());
  const auto spec = std::make_shared<const troupe::job_spec>(job.build({}, 0));
  const auto end = troupe::submit(*system_, cluster.driver, spec).get();
  ASSERT_FALSE(end.failure) << end.failure.message;
  for (std::size_t i = 0; i < end.results->values.size(); ++i)
    EXPECT_TRUE(troupe::decode_value<std::string>(end.results->values[i]).starts_with("fake-"));
  std::size_t tasks = 0;
  caf::scoped_actor self{*system_};
  troupe::ask(self, cluster.driver, patience(), troupe::box(troupe::placement_query{end.job}))
      .receive(
          [&](const troupe::boxed<troupe::placement_answer>& answer) {
            for (const auto& placed : answer->placements) {
              tasks += placed.count;
              EXPECT_EQ(placed.host, "localhost");
              EXPECT_TRUE(placed.holding.resources.at("gpu").at(0).address.starts_with("fake-"));
            }
          },
          [](const caf::error& why) { ADD_FAILURE() << caf::to_string(why); });
  EXPECT_EQ(tasks, 4u);
  stop(cluster);
}

TEST_F(embedding, tells_why_a_task_failed) {
  const auto cluster = spawn("one");
  troupe::job job{"failing"};
  job.stage("fail").run(failing_task);
  const auto end = run(cluster, job);
  EXPECT_NE(end.failure.message.find("the reason why"), std::string::npos) << end.failure.message;
  stop(cluster);
}

TEST_F(embedding, refuses_a_folder_that_is_not_there) {
  troupe::embedded_options options;
  options.directory = folder_ + "/nowhere";
  const auto made = troupe::spawn_embedded(*system_, options);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, troupe::ec::invalid_argument);
  EXPECT_NE(made.error().message.find("nowhere"), std::string::npos);
}

} // namespace
