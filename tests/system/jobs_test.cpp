// Jobs that succeed, and jobs that fail as they should, on every shape of cluster.

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <tuple>

#include <unistd.h>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/runtime/api/job_error.hpp>
#include <troupe/runtime/api/resource_profile_builder.hpp>
#include <troupe/tests/system/background.hpp>
#include <troupe/tests/system/rendezvous.hpp>
#include <troupe/tests/system/shapes.hpp>

namespace troupe::system_tests {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using count = std::pair<std::string, long>;

class jobs_on_clusters : public ::testing::TestWithParam<cluster_shape> {};

INSTANTIATE_TEST_SUITE_P(shapes, jobs_on_clusters, ::testing::ValuesIn(all_shapes()),
                         [](const auto& shape) { return shape.param.name; });

// -- datasets

TEST_P(jobs_on_clusters, range_map_and_reduce) {
  test_cluster cluster{GetParam().options()};
  auto session = cluster.make_session();
  const auto squares = session.range(1, 1001, 7).map([](std::int64_t n) { return n * n; });
  EXPECT_EQ(squares.count(), 1000u);
  EXPECT_EQ(squares.reduce(std::plus<>{}), 333'833'500);
  const auto all = squares.filter([](const std::int64_t& n) { return n % 2 == 0; }).collect();
  ASSERT_EQ(all.size(), 500u);
  EXPECT_EQ(all.front(), 4);
  EXPECT_EQ(all.back(), 1'000'000);
  cluster.await_idle();
  cluster.check_clean();
}

/// Words of `lines` lines that depend on the seed alone.
std::string random_text(std::uint64_t seed, int lines) {
  std::mt19937_64 random{seed};
  std::string text;
  for (int line = 0; line < lines; ++line) {
    for (auto words = random() % 12; words > 0; --words) {
      text += "w" + std::to_string(random() % 200);
      text += random() % 9 == 0 ? ", " : " ";
    }
    text += '\n';
  }
  return text;
}

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> out(1);
  for (const char c : line) {
    if (std::isalnum(static_cast<unsigned char>(c)))
      out.back() += c;
    else if (!out.back().empty())
      out.emplace_back();
  }
  if (out.back().empty()) out.pop_back();
  return out;
}

TEST_P(jobs_on_clusters, words_are_counted_as_an_independent_count_has_them) {
  const testing::temporary_directory files;
  std::map<std::string, long> expected;
  for (int i = 0; i < 5; ++i) {
    const auto text = random_text(static_cast<std::uint64_t>(i) + 1, 300);
    std::ofstream{files.path() + "/" + std::to_string(i) + ".txt"} << text;
    for (std::size_t at = 0; (at = text.find('w', at)) != std::string::npos;) {
      const auto end = text.find_first_not_of("0123456789", at + 1);
      ++expected[text.substr(at, end - at)];
      at = end;
    }
  }
  test_cluster cluster{GetParam().options()};
  auto session = cluster.make_session();
  const auto counts = session.text_files(files.path() + "/*.txt")
                          .flat_map(fn<words_of>)
                          .map([](const std::string& word) {
                            return count{word, 1};
                          })
                          .reduce_by_key(std::plus<>{}, 3);
  std::map<std::string, long> got;
  for (const auto& [word, n] : counts.collect()) EXPECT_TRUE(got.emplace(word, n).second) << word << " came twice";
  EXPECT_EQ(got, expected);
  const auto top = counts.top(3);
  ASSERT_EQ(top.size(), 3u);
  const auto most = std::max_element(expected.begin(), expected.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  EXPECT_EQ(top.front().second, most->second);
  cluster.await_idle();
  cluster.check_clean();
}

TEST_P(jobs_on_clusters, results_larger_than_a_message_come_from_the_executors_blocks) {
  test_cluster cluster{GetParam().options({"troupe.task.max-inline-result=1k"})};
  auto session = cluster.make_session();
  const auto big =
      session.range(0, 4, 4).map([](std::int64_t n) { return std::string(300'000, static_cast<char>('a' + n)); });
  const auto all = big.collect();
  ASSERT_EQ(all.size(), 4u);
  for (std::size_t i = 0; i < all.size(); ++i)
    EXPECT_EQ(all[i], std::string(300'000, static_cast<char>('a' + i))) << "result " << i;
  cluster.await_idle(); // the blocks are released
  cluster.check_clean();
}

// -- named tasks that fail now and then

/// Whether an attempt fails: a pure function, so that the test knows how often.
bool fails(std::uint64_t seed, std::uint64_t partition, std::uint64_t attempt) {
  std::mt19937_64 random{seed ^ (partition << 20) ^ (attempt << 50)};
  random.discard(3);
  return attempt < 3 && random() % 4 == 0;
}

std::string unreliable(task_context& context, std::string_view captures, std::string_view argument) {
  if (fails(std::stoull(std::string{captures}), context.partition, context.attempt))
    throw std::runtime_error("bad luck in attempt " + std::to_string(context.attempt));
  return std::string{argument} + "!";
}

TEST_P(jobs_on_clusters, a_thousand_named_tasks_survive_random_failures) {
  constexpr std::uint64_t seed = 20'261'121;
  constexpr std::uint32_t tasks = 1000;
  std::vector<std::string> arguments;
  std::uint32_t expected_failures = 0;
  for (std::uint32_t i = 0; i < tasks; ++i) {
    arguments.push_back("task " + std::to_string(i));
    for (std::uint32_t attempt = 0; fails(seed, i, attempt); ++attempt) ++expected_failures;
  }
  ASSERT_GT(expected_failures, 200u);
  test_cluster cluster{GetParam().options({"troupe.task.max-failures=4"})};
  auto session = cluster.make_session();
  job j{"unreliable"};
  const auto stage =
      j.stage("try").run(task<"system-unreliable", unreliable>, std::to_string(seed)).arguments(arguments);
  const auto results = session.run(j, stage);
  ASSERT_EQ(results.size(), tasks);
  for (std::uint32_t i = 0; i < tasks; ++i) ASSERT_EQ(results[i], arguments[i] + "!");
  EXPECT_EQ(session.last_job().stages.at(0).failures, expected_failures);
  EXPECT_EQ(session.last_job().stages.at(0).done, tasks);
  cluster.await_idle();
  cluster.check_clean();
}

std::string hopeless(task_context& context, std::string_view, std::string_view) {
  if (context.partition != 2) return "fine";
  std::cerr << "last words of attempt " << context.attempt << std::endl;
  throw std::runtime_error("the reactor is too hot");
}

TEST_P(jobs_on_clusters, the_error_of_a_task_says_where_it_was_and_what_it_said) {
  test_cluster cluster{GetParam().options({"troupe.task.max-failures=3"})};
  auto session = cluster.make_session();
  job j{"hopeless"};
  const auto stage = j.stage("heat").run(task<"system-hopeless", hopeless>, std::string{}).tasks(4);
  try {
    session.run(j, stage);
    FAIL() << "the job succeeded";
  } catch (const job_error& e) {
    EXPECT_EQ(e.code(), ec::task_failed);
    EXPECT_THAT(e.what(), AllOf(HasSubstr("heat"), HasSubstr("partition 2"), HasSubstr("attempt 2"),
                                HasSubstr("executor "), HasSubstr("the reactor is too hot")));
    if (GetParam().processes) {
      EXPECT_THAT(e.what(), HasSubstr("last words of attempt"));
    }
    EXPECT_EQ(e.progress().state, job_state::failed);
  }
  EXPECT_EQ(session.range(0, 10, 2).count(), 10u) << "the cluster lives on";
  cluster.await_idle();
  cluster.check_clean();
}

// -- profiles

/// Address, ordinal's sign, when it began and ended (ns), pid, the executor's device variable.
using gpu_run = std::tuple<std::string, std::int64_t, std::int64_t, std::int64_t, std::string>;

std::int64_t monotonic_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

gpu_run use_gpu(const std::string& directory, std::int64_t) {
  const auto begin = monotonic_ns();
  arrive(directory, "gpu");
  const auto& mine = task_context::current().addresses("gpu");
  if (mine.size() != 1) throw std::runtime_error("has " + std::to_string(mine.size()) + " addresses");
  if (to_string(mine[0].amount) != "0.5") throw std::runtime_error("has " + to_string(mine[0].amount) + " of it");
  const char* devices = std::getenv("CUDA_VISIBLE_DEVICES");
  return {mine[0].address, begin, monotonic_ns(), getpid(), devices ? devices : "not set"};
}

TEST_P(jobs_on_clusters, two_profiles_and_halves_of_gpus) {
  const auto& shape = GetParam();
  // As many executors as there are hosts; each has one GPU and two slots of half a GPU.
  const auto gpu =
      resource_profile_builder{}
          .require(executor_resource_requests{}.cores(shape.cores_of_host).memory("256m").resource("gpu", 1))
          .require(task_resource_requests{}
                       .cpus(shape.cores_of_host == 1 ? std::string_view{"0.5"} : std::string_view{"1"})
                       .resource("gpu", "0.5"))
          .build();
  const auto slots = std::size_t{2} * shape.hosts;
  const rendezvous meeting;
  test_cluster cluster{shape.options({"troupe.dynamic-allocation.executor-idle-timeout=100ms"})};
  auto session = cluster.make_session();
  background<std::vector<gpu_run>> job{
      cluster, [&] {
        return session.range(0, 24, 4)
            .map([](std::int64_t n) {
              return std::pair{n, n};
            })
            .group_by_key(24)
            .map(with(meeting.directory()),
                 [](const std::string& directory, std::pair<std::int64_t, std::vector<std::int64_t>> pair) {
                   return use_gpu(directory, pair.first);
                 })
            .with_resources(gpu)
            .collect();
      }};
  meeting.await("gpu", slots);
  EXPECT_EQ(meeting.arrivals("gpu").size(), slots) << "more tasks than slots run at once";
  meeting.open("gpu");
  const auto runs = job.get();
  ASSERT_EQ(runs.size(), 24u);

  std::map<std::string, std::vector<std::pair<std::int64_t, int>>> changes; // by address
  std::map<std::int64_t, std::set<std::string>> addresses_of_process;
  for (const auto& [address, begin, end, pid, devices] : runs) {
    changes[address].emplace_back(begin, 1);
    changes[address].emplace_back(end, -1);
    addresses_of_process[pid].insert(address);
    if (shape.processes) {
      EXPECT_EQ(devices, "") << "a made-up address is no device of CUDA";
    }
  }
  EXPECT_EQ(changes.size(), shape.hosts) << "addresses in use";
  for (auto& [address, moments] : changes) {
    std::sort(moments.begin(), moments.end());
    int sharing = 0;
    for (const auto& [when, change] : moments) EXPECT_LE(sharing += change, 2) << "tasks share " << address;
  }
  if (shape.processes) {
    for (const auto& [pid, addresses] : addresses_of_process)
      EXPECT_EQ(addresses.size(), 1u) << "process " << pid << " used the address of another";
  }
  std::uint32_t placed = 0;
  for (const auto& placement : session.last_placements()) {
    const auto held = placement.holding.resources.find("gpu");
    if (held == placement.holding.resources.end()) continue;
    placed += placement.count;
    EXPECT_TRUE(changes.contains(held->second.at(0).address));
  }
  EXPECT_EQ(placed, 24u);
  cluster.await_idle();
  cluster.check_clean();
}

/// What a task sees of its devices: address and ordinal of each, then the variable of its process.
std::string devices_seen(std::int64_t) {
  std::string seen;
  for (const auto& a : task_context::current().addresses("gpu"))
    seen += a.address + "=" + std::to_string(a.ordinal) + " ";
  const char* devices = std::getenv("CUDA_VISIBLE_DEVICES");
  return seen + "of " + (devices ? devices : "all");
}

class devices : public ::testing::Test {
protected:
  void SetUp() override { setenv("CUDA_VISIBLE_DEVICES", "3,1", 1); } // as a cluster manager sets it
  void TearDown() override { unsetenv("CUDA_VISIBLE_DEVICES"); }
  /// What one task sees that holds as many GPUs as it says, on an executor that has both.
  static std::string seen_on(const std::string& master, std::string_view gpus) {
    test_cluster cluster{{.master = master, .conf = {"troupe.executor.resource.gpu.addresses=1,3"}}};
    const auto profile = resource_profile_builder{}
                             .require(executor_resource_requests{}.cores(1).memory("256m").resource("gpu", 2))
                             .require(task_resource_requests{}.cpus(1).resource("gpu", gpus))
                             .build();
    auto session = cluster.make_session();
    return session.range(0, 1, 1).map(troupe::fn<devices_seen>).with_resources(profile).collect().at(0);
  }
};

TEST_F(devices, of_an_executor_process_are_its_own_part_of_the_mask) {
  EXPECT_EQ(seen_on("local-cluster[1,1,1g]", "2"), "1=0 3=1 of 1,3");
}

TEST_F(devices, of_a_thread_are_counted_in_the_mask_of_its_process) {
  EXPECT_EQ(seen_on("local[1]", "2"), "1=1 3=0 of 3,1");
}

// Spec EX-1, MP-8: as which shape an executor was asked for goes with it, through its process, to its registration.
TEST_P(jobs_on_clusters, executors_register_as_the_shape_that_they_were_started_for) {
  const auto small = resource_profile_builder{}
                         .require(executor_resource_requests{}.cores(1).memory("128m"))
                         .require(task_resource_requests{}.cpus(1))
                         .build();
  test_cluster cluster{GetParam().options({"troupe.scheduler.profile-matching=exact"})};
  auto session = cluster.make_session();
  EXPECT_EQ(session.range(0, 4, 1).count(), 4u);
  for (const auto& e : cluster.executors()) EXPECT_EQ(e.status.info.shape, shape_id{1}) << "the default profile's";
  EXPECT_EQ(session.range(0, 4, 1).with_resources(small).count(), 4u);
  std::size_t found = 0;
  for (const auto& e : cluster.executors()) {
    if (e.status.info.shape == shape_id{1}) continue;
    ++found;
    EXPECT_EQ(e.status.info.shape, shape_id{2});
    EXPECT_EQ(e.status.info.profile.executor_amount("memory"), 128 << 20);
  }
  EXPECT_EQ(found, 1u);
  cluster.check_clean();
}

TEST_P(jobs_on_clusters, what_fits_no_empty_host_fails_at_once) {
  const auto greedy = resource_profile_builder{}
                          .require(executor_resource_requests{}.cores(64).memory("1m"))
                          .require(task_resource_requests{}.cpus(1))
                          .build();
  test_cluster cluster{GetParam().options({"troupe.scheduler.infeasible-timeout=1d"})};
  auto session = cluster.make_session();
  background<std::uint64_t> job{cluster, [&] { return session.range(0, 4, 2).with_resources(greedy).count(); }};
  try {
    job.get(); // long before the day is over
    FAIL() << "the job succeeded";
  } catch (const job_error& e) {
    EXPECT_EQ(e.code(), ec::infeasible) << e.what();
    EXPECT_THAT(e.what(), AllOf(HasSubstr("64"), HasSubstr("cores"), HasSubstr(GetParam().master)));
  }
  cluster.check_clean();
}

} // namespace
} // namespace troupe::system_tests
