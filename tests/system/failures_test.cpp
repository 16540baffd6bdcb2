// Executors that die, freeze and come back while jobs run.

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <troupe/runtime/api/job_error.hpp>
#include <troupe/runtime/api/session.hpp>
#include <troupe/tests/system/background.hpp>
#include <troupe/tests/system/rendezvous.hpp>
#include <troupe/tests/system/shapes.hpp>
#include <troupe/tests/system/stages.hpp>

namespace troupe::system_tests {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using sums = std::map<std::int64_t, std::int64_t>;

/// Two executors of one slot each, so that four tasks of a stage cannot all run at once.
test_cluster::options two_executors(std::vector<std::string> conf = {}) {
  return {.master = "local-cluster[2,1,1g]", .conf = std::move(conf)};
}

/// Silence is noticed soon, and yet an executor that stands still for some seconds is not given up. What is frozen when
/// it is told to end is killed soon.
std::vector<std::string> short_silence() {
  return {"troupe.executor.heartbeat-interval=100ms", "troupe.executor.heartbeat-timeout=6s",
          "troupe.task.kill-grace=500ms"};
}

test_cluster::executor executor_of(const test_cluster& cluster, pid_t pid) {
  for (const auto& e : cluster.executors())
    if (e.pid == pid) return e;
  throw test_cluster_error("no executor has pid " + std::to_string(pid));
}

// -- kill -9

std::vector<cluster_shape> shapes_of_processes() {
  auto shapes = all_shapes();
  std::erase_if(shapes, [](const auto& shape) { return !shape.processes; });
  return shapes;
}

class killed_executors : public ::testing::TestWithParam<std::tuple<cluster_shape, const char*>> {};
INSTANTIATE_TEST_SUITE_P(stages, killed_executors,
                         ::testing::Combine(::testing::ValuesIn(shapes_of_processes()),
                                            ::testing::ValuesIn(three_points)),
                         [](const auto& param) {
                           return std::get<0>(param.param).name + "_" + std::get<1>(param.param);
                         });

TEST_P(killed_executors, cost_nothing_but_time) {
  const auto& [shape, at] = GetParam();
  const rendezvous meeting;
  test_cluster cluster{shape.options()};
  auto session = cluster.make_session();
  background<sums> job{cluster, [&] { return run_three_stages(session, meeting.directory()); }};
  for (const auto* point : three_points) {
    if (point == std::string_view{at}) break;
    meeting.open(point);
  }
  // All executors are busy, so in the later stages all hold map outputs of the earlier ones.
  const auto busy = meeting.await(at, shape.hosts);
  const auto victim = executor_of(cluster, busy.front());
  cluster.kill(victim);
  for (const auto* point : three_points) meeting.open(point);
  EXPECT_EQ(job.get(), expected_of_three_stages());
  EXPECT_FALSE(testing::is_alive(victim.pid));
  for (const auto& e : cluster.executors()) EXPECT_NE(e.id, victim.id);
  const auto& run_directory = cluster.app().directory();
  for (const auto& path : {run_directory + "/blocks-" + victim.name, run_directory + "/" + victim.name + ".start"})
    EXPECT_TRUE(testing::wait_until([&] { return !std::filesystem::exists(path); })) << path << " is left";
  EXPECT_TRUE(std::filesystem::exists(run_directory + "/" + victim.name + ".log")) << "for those who ask why";
  cluster.await_idle();
  cluster.check_clean();
}

TEST(lost_map_outputs, are_made_again) {
  const rendezvous meeting;
  test_cluster cluster{two_executors()};
  auto session = cluster.make_session();
  background<sums> job{cluster, [&] { return run_three_stages(session, meeting.directory()); }};
  meeting.await("map", 2);
  meeting.open("map");
  // The first two reduce tasks have read their inputs; the other two still need the outputs of both executors.
  const auto busy = meeting.await("reduce", 2);
  for (const auto pid : busy) {
    const auto all = cluster.executors();
    const auto victim = std::find_if(all.begin(), all.end(), [&](const auto& e) { return e.pid == pid; });
    ASSERT_NE(victim, all.end());
    cluster.kill(*victim);
  }
  meeting.open("reduce");
  meeting.open("result");
  EXPECT_EQ(job.get(), expected_of_three_stages());
  EXPECT_GT(meeting.arrivals("map").size(), 4u) << "no map task ran again";
  cluster.await_idle();
  cluster.check_clean();
}

TEST(lost_map_outputs, of_one_executor_alone_are_made_again) {
  const rendezvous meeting;
  test_cluster cluster{two_executors()};
  auto session = cluster.make_session();
  background<std::uint64_t> job{cluster, [&] {
                                  return session.range(0, 8, 8)
                                      .map(with(meeting.directory()),
                                           [](const std::string& where, std::int64_t n) {
                                             const auto name = std::to_string(n) + ".by." + std::to_string(::getpid());
                                             std::ofstream{where + "/" + name, std::ios::app} << 'x';
                                             arrive(where, "map");
                                             return std::pair{n, n};
                                           })
                                      .group_by_key(8)
                                      .filter(with(meeting.directory()),
                                              [](const std::string& where, const auto&) {
                                                arrive(where, "reduce");
                                                return true;
                                              })
                                      .count();
                                }};
  meeting.await("map", 2); // so that both make some
  meeting.open("map");
  const auto victim = executor_of(cluster, meeting.await("reduce", 2).front());
  cluster.kill(victim);
  meeting.open("reduce");
  EXPECT_EQ(job.get(), 8u);
  std::map<std::string, std::vector<pid_t>> makers;
  std::uintmax_t runs = 0;
  for (const auto& entry : std::filesystem::directory_iterator{meeting.directory()})
    if (const auto name = entry.path().filename().string(); name.find(".by.") != name.npos) {
      makers[name.substr(0, 1)].push_back(std::stoi(name.substr(5)));
      runs += entry.file_size();
    }
  ASSERT_THAT(makers, SizeIs(8));
  std::size_t lost = 0;
  for (const auto& [partition, pids] : makers) {
    const bool by_victim = std::find(pids.begin(), pids.end(), victim.pid) != pids.end();
    lost += by_victim;
    EXPECT_EQ(pids.size(), by_victim ? 2u : 1u) << "partition " << partition;
  }
  EXPECT_GT(lost, 0u);
  EXPECT_EQ(runs, 8 + lost);
  cluster.check_clean();
}

// -- whatever happens meanwhile

using float_sums = std::vector<std::pair<std::int64_t, double>>;

float_sums add_up(session& session, const std::string& where) {
  return session.range(0, 100'000, 8)
      .map([](std::int64_t n) {
        return std::pair{n % 5, 1.0 / static_cast<double>(n + 1)};
      })
      .reduce_by_key(std::plus<>{}, 3)
      .map(with(where),
           [](const std::string& directory, const std::pair<std::int64_t, double>& sum) {
             arrive(directory, "sum");
             return sum;
           })
      .collect();
}

TEST(sums_of_floats, are_the_same_bit_for_bit_wherever_they_are_made_and_whatever_is_lost) {
  const rendezvous open;
  open.open("sum");
  float_sums expected;
  {
    test_cluster one{{.master = "local[1]"}};
    auto session = one.make_session();
    expected = add_up(session, open.directory());
  }
  ASSERT_THAT(expected, SizeIs(5));
  {
    test_cluster many{{.master = "local-cluster[2,2,1g]"}};
    auto session = many.make_session();
    for (int round = 0; round < 5; ++round) EXPECT_EQ(add_up(session, open.directory()), expected);
  }
  const rendezvous meeting;
  test_cluster cluster{two_executors()};
  auto session = cluster.make_session();
  background<float_sums> job{cluster, [&] { return add_up(session, meeting.directory()); }};
  cluster.kill(executor_of(cluster, meeting.await("sum").front()));
  meeting.open("sum");
  EXPECT_EQ(job.get(), expected);
  cluster.check_clean();
}

// -- a task that takes its process along

std::string crash(task_context& context, std::string_view, std::string_view) {
  if (context.partition == 1) {
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
  }
  return "alive";
}

TEST(crashing_tasks, fail_their_job_after_their_attempts_and_nothing_else) {
  test_cluster cluster{two_executors({"troupe.task.max-failures=2"})};
  auto session = cluster.make_session();
  job j{"crashing"};
  const auto stage = j.stage("bad memory").run(task<"system-crash", crash>, std::string{}).tasks(2);
  background<std::vector<std::string>> running{cluster, [&] { return session.run(j, stage); }};
  try {
    running.get();
    FAIL() << "the job succeeded";
  } catch (const job_error& e) {
    EXPECT_EQ(e.code(), ec::task_failed);
    EXPECT_THAT(e.what(),
                AllOf(HasSubstr("bad memory"), HasSubstr("partition 1"), HasSubstr("executor "), HasSubstr("lost")));
  }
  EXPECT_EQ(session.range(0, 100, 4).count(), 100u) << "the cluster lives on";
  cluster.await_idle();
  cluster.check_clean();
}

/// Partition 1 ends its process twice, the first time when all three are there.
std::string crash_twice(task_context& context, std::string_view directory, std::string_view) {
  arrive(std::string{directory}, context.attempt == 0 ? "together" : "again");
  if (context.partition == 1 && context.attempt < 2) {
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
  }
  if (context.attempt == 0) arrive(std::string{directory}, "never"); // there when it dies
  return "alive";
}

TEST(crashing_tasks, that_ran_beside_others_run_alone_until_the_guilty_one_is_found) {
  const rendezvous meeting;
  // Were the first crash everybody's failure, the second one would be too much.
  test_cluster cluster{
      {.master = "local-cluster[1,3,3g]", .conf = {"troupe.executor.cores=3", "troupe.task.max-failures=2"}}};
  auto session = cluster.make_session();
  job j{"crashing"};
  const auto stage = j.stage("bad memory").run(task<"system-crash-twice", crash_twice>, meeting.directory()).tasks(3);
  background<std::vector<std::string>> running{cluster, [&] { return session.run(j, stage); }};
  meeting.await("together", 3);
  meeting.open("together");
  meeting.await("again");
  EXPECT_THAT(meeting.arrivals("again"), SizeIs(1)) << "alone, although there is room for three";
  meeting.open("again");
  EXPECT_THAT(running.get(), SizeIs(3));
  cluster.await_idle();
  cluster.check_clean();
}

/// Its executors would run this program's tests.
std::string start_a_cluster(task_context&, std::string_view, std::string_view) {
  try {
    const test_cluster inner{{.master = "local[1]"}};
    return "it runs";
  } catch (const std::exception& e) {
    return e.what();
  }
}

TEST(tasks_of_executors, start_no_cluster_of_their_own) {
  test_cluster cluster{{.master = "local-cluster[1,1,1g]"}};
  auto session = cluster.make_session();
  job j{"nested"};
  const auto stage = j.stage("start").run(task<"system-start-a-cluster", start_a_cluster>, std::string{}).tasks(1);
  const std::vector<std::string> said = session.run(j, stage);
  EXPECT_THAT(said.at(0), HasSubstr("a task in an executor cannot start a cluster of its own"));
  cluster.check_clean();
}

// -- frozen executors

TEST(frozen_executors, are_given_up_and_the_job_ends_without_them) {
  const rendezvous meeting;
  test_cluster cluster{two_executors(short_silence())};
  auto session = cluster.make_session();
  background<sums> job{cluster, [&] { return run_three_stages(session, meeting.directory()); }};
  const auto frozen = executor_of(cluster, meeting.await("map", 2).front());
  cluster.stop(frozen);
  for (const auto* point : three_points) meeting.open(point);
  EXPECT_EQ(job.get(), expected_of_three_stages());
  for (const auto& e : cluster.executors()) EXPECT_NE(e.id, frozen.id) << "still counted as a member";
  cluster.await_idle();
  cluster.check_clean(); // a stopped process does not outlive its session
}

TEST(frozen_executors, that_come_back_are_strangers_and_end) {
  const rendezvous meeting;
  test_cluster cluster{two_executors(short_silence())};
  auto session = cluster.make_session();
  background<sums> job{cluster, [&] { return run_three_stages(session, meeting.directory()); }};
  const auto frozen = executor_of(cluster, meeting.await("map", 2).front());
  cluster.stop(frozen);
  ASSERT_TRUE(testing::wait_until([&] {
    const auto all = cluster.executors();
    return std::none_of(all.begin(), all.end(), [&](const auto& e) { return e.id == frozen.id; });
  })) << "never declared lost";
  // What it was doing is done by others before it wakes up, and its own late results must not count.
  for (const auto* point : three_points) meeting.open(point);
  if (testing::is_alive(frozen.pid)) {
    try {
      cluster.resume(frozen);
    } catch (const test_cluster_error&) {
      EXPECT_FALSE(testing::is_alive(frozen.pid));
    }
  }
  EXPECT_EQ(job.get(), expected_of_three_stages());
  EXPECT_TRUE(testing::wait_until([&] { return !testing::is_alive(frozen.pid); }))
      << "still there: " << testing::look_at(frozen.pid).text();
  for (const auto& e : cluster.executors()) EXPECT_NE(e.id, frozen.id);
  cluster.await_idle();
  cluster.check_clean();
}

// -- the driver's memory

std::string nothing(task_context&, std::string_view, std::string_view) { return {}; }

TEST(a_million_waiting_tasks, cost_the_driver_little_while_an_executor_is_frozen) {
  constexpr std::uint32_t tasks = 1'000'000;
  constexpr std::uint64_t limit = 50u << 20;
  test_cluster cluster{{.master = "local-cluster[1,1,1g]", .conf = short_silence()}};
  auto session = cluster.make_session();
  session.range(0, 10, 1).count(); // the executor is there and warm
  const auto executor = cluster.await_executors(1).front();
  job j{"waiting"};
  const auto stage = j.stage("wait").run(task<"system-nothing", nothing>, std::string{}).tasks(tasks);
  background<int> running{cluster, [&] {
                            try {
                              session.run(j, stage);
                            } catch (const job_error&) {}
                            return 0;
                          }};
  const auto done = [&]() -> std::uint32_t {
    const auto status = cluster.jobs().status();
    if (!status) return 0;
    for (const auto& known : status->jobs)
      if (known.name == "waiting") return known.stages.at(0).done;
    return 0;
  };
  ASSERT_TRUE(testing::wait_until([&] { return done() > 0; }));
  cluster.stop(executor);
  const auto before = testing::resident_memory(getpid());
  ASSERT_LT(done(), tasks / 2) << "hardly any task is waiting";
  std::uint64_t most = before;
  const auto look = [&] { most = std::max(most, testing::resident_memory(getpid())); };
  ASSERT_TRUE(testing::wait_until([&] {
    look();
    const auto all = cluster.executors();
    return std::none_of(all.begin(), all.end(), [&](const auto& e) { return e.id == executor.id; });
  })) << "never declared lost";
  EXPECT_LT(most - before, limit) << "until it was declared lost";
  // And then: the rest of the tasks runs elsewhere.
  const auto at = done();
  EXPECT_TRUE(testing::wait_until([&] {
    look();
    return running.is_over() || done() > at;
  })) << "no other executor took over";
  EXPECT_LT(most - before, limit) << "after it was declared lost";
  cluster.jobs().cancel_all("seen enough");
  running.get();
  cluster.await_idle();
  cluster.check_clean();
}

} // namespace
} // namespace troupe::system_tests
