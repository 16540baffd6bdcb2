// Barrier stages on real executors: in this process, and as processes of their own.

#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <csignal>
#include <unistd.h>

#include <troupe/runtime/api/job_error.hpp>
#include <troupe/runtime/api/resource_profile_builder.hpp>
#include <troupe/tests/system/background.hpp>
#include <troupe/tests/system/rendezvous.hpp>

namespace troupe::system_tests {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using numbers = std::vector<std::int64_t>;
using texts = std::vector<std::string>;

constexpr std::uint32_t size = 3;

/// What each task hears of all, in the order of partitions.
texts greetings(const std::string& prefix) {
  auto& self = task_context::current();
  self.barrier();
  const auto all = self.all_gather(prefix + std::to_string(self.partition));
  texts heard;
  for (std::uint32_t p = 0; p < all.size(); ++p)
    heard.push_back(std::to_string(self.attempt) + ": " + all[p] +
                    (self.gang_addresses()[p].empty() ? " nowhere" : ""));
  return heard;
}

class gangs : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(masters, gangs, ::testing::Values("local[3]", "local-cluster[3,1,1g]"),
                         [](const auto& at) { return std::string{at.index == 0 ? "in_process" : "processes"}; });

TEST_P(gangs, meet_and_hear_of_each_other) {
  test_cluster cluster{{.master = GetParam()}};
  const auto heard = cluster.make_session()
                         .range(0, size, size)
                         .map_partitions([](const numbers&) { return greetings("from "); })
                         .barrier()
                         .collect();
  ASSERT_EQ(heard.size(), size * size);
  for (std::uint32_t i = 0; i < heard.size(); ++i) EXPECT_EQ(heard[i], "0: from " + std::to_string(i % size));
  const auto job = cluster.jobs().status()->jobs.at(0);
  EXPECT_EQ(job.stages.at(0).executors, size) << "one core each";
  cluster.await_idle();
  cluster.check_clean();
}

TEST_P(gangs, one_that_fails_takes_those_along_that_wait_for_it) {
  test_cluster cluster{{.master = GetParam()}};
  const auto heard = cluster.make_session()
                         .range(0, size, size)
                         .map_partitions([](const numbers& part) {
                           const auto attempt = task_context::current().attempt;
                           if (part.at(0) == 1 && attempt == 0) throw std::runtime_error("no luck");
                           return greetings("");
                         })
                         .barrier()
                         .collect();
  EXPECT_THAT(heard, ElementsAre("1: 0", "1: 1", "1: 2", "1: 0", "1: 1", "1: 2", "1: 0", "1: 1", "1: 2"));
  EXPECT_EQ(cluster.jobs().status()->jobs.at(0).stages.at(0).attempt, 1u);
  cluster.await_idle();
  cluster.check_clean();
}

TEST_P(gangs, that_are_cancelled_wait_no_longer) {
  const rendezvous meeting;
  // Nobody has to be killed: who waits is woken.
  test_cluster cluster{{.master = GetParam(), .conf = {"troupe.task.kill-grace=1h"}}};
  auto session = cluster.make_session();
  background<numbers> job{cluster, [&] {
                            return session.range(0, size, size)
                                .map_partitions(with(meeting.directory()),
                                                [](const std::string& where, const numbers& part) {
                                                  if (part.at(0) == 0) {
                                                    arrive(where, "late");
                                                  }
                                                  task_context::current().barrier();
                                                  return part;
                                                })
                                .barrier()
                                .collect();
                          }};
  meeting.await("late");
  cluster.jobs().cancel_all("by request");
  EXPECT_THROW(job.get(), job_error);
  cluster.await_idle();
  cluster.check_clean();
}

TEST_P(gangs, one_that_returns_early_fails_those_that_wait) {
  test_cluster cluster{{.master = GetParam(), .conf = {"troupe.task.max-failures=1"}}};
  try {
    cluster.make_session()
        .range(0, size, size)
        .map_partitions([](const numbers& part) {
          if (part.at(0) != 1) task_context::current().barrier();
          return part;
        })
        .barrier()
        .collect();
    FAIL() << "it waits for one that does not come";
  } catch (const job_error& e) {
    EXPECT_THAT(e.what(), AllOf(HasSubstr("the task of partition 1 has ended"),
                                HasSubstr("the whole barrier stage failed with it")));
  }
  cluster.await_idle();
  cluster.check_clean();
}

TEST_P(gangs, that_wait_too_long_say_for_whom) {
  const rendezvous meeting;
  test_cluster cluster{
      {.master = GetParam(), .conf = {"troupe.task.max-failures=1", "troupe.barrier.sync-timeout=500ms"}}};
  auto session = cluster.make_session();
  const auto message = [&]() -> std::string {
    background<numbers> job{cluster, [&] {
                              return session.range(0, size, size)
                                  .map_partitions(with(meeting.directory()),
                                                  [](const std::string& where, const numbers& part) {
                                                    if (part.at(0) == 2) arrive(where, "late");
                                                    task_context::current().barrier();
                                                    return part;
                                                  })
                                  .barrier()
                                  .collect();
                            }};
    try {
      job.get();
      return "nobody has waited too long";
    } catch (const job_error& e) {
      return e.what();
    }
  };
  const std::string begin = "within 500ms (troupe.barrier.sync-timeout): ";
  // The first two may not come within that time of each other. One of them waits alone then, and the job is tried
  // again.
  std::string text;
  EXPECT_TRUE(testing::wait_until([&] {
    text = message();
    return text.find(begin + "1 of 3 tasks wait, ") == std::string::npos;
  }));
  EXPECT_THAT(text, HasSubstr(begin + "2 of 3 tasks wait, partition 2 does"));
  cluster.await_idle();
  cluster.check_clean();
}

TEST_P(gangs, of_two_thirds_of_the_cluster_each_both_end) {
  const rendezvous meeting;
  test_cluster cluster{{.master = GetParam()}};
  auto session = cluster.make_session();
  background<numbers> busy{cluster, [&] {
                             return session.range(0, size, size)
                                 .map_partitions(with(meeting.directory()),
                                                 [](const std::string& where, const numbers& part) {
                                                   arrive(where, "busy " + std::to_string(part.at(0)));
                                                   return part;
                                                 })
                                 .collect();
                           }};
  for (std::uint32_t i = 0; i < size; ++i) meeting.await("busy " + std::to_string(i));
  const auto pair = [&] {
    return session.range(0, 2, 2).map_partitions([](const numbers&) { return greetings(""); }).barrier().collect();
  };
  background<texts> one{cluster, pair};
  background<texts> two{cluster, pair};
  EXPECT_TRUE(testing::wait_until([&] { return cluster.jobs().status()->jobs.size() == 3; }));
  // The slots come back one by one: each of the two could take one, and wait for ever.
  for (std::uint32_t i = 0; i < size; ++i) meeting.open("busy " + std::to_string(i));
  EXPECT_THAT(one.get(), ElementsAre("0: 0", "0: 1", "0: 0", "0: 1"));
  EXPECT_THAT(two.get(), ElementsAre("0: 0", "0: 1", "0: 0", "0: 1"));
  EXPECT_EQ(busy.get().size(), size);
  cluster.await_idle();
  cluster.check_clean();
}

TEST(gangs_of_processes, whose_executor_is_killed_run_again_as_a_whole) {
  const rendezvous meeting;
  test_cluster cluster{{.master = "local-cluster[3,1,1g]"}};
  auto session = cluster.make_session();
  background<texts> job{cluster, [&] {
                          return session.range(0, size, size)
                              .map_partitions(with(meeting.directory()),
                                              [](const std::string& where, const numbers& part) {
                                                if (part.at(0) == 0) arrive(where, "first");
                                                return greetings("");
                                              })
                              .barrier()
                              .collect();
                        }};
  const auto victim = meeting.await("first").front();
  ::kill(victim, SIGKILL);
  meeting.open("first");
  const auto heard = job.get();
  EXPECT_EQ(heard.size(), size * size);
  EXPECT_THAT(heard, Each(HasSubstr("1: ")));
  EXPECT_EQ(cluster.jobs().status()->jobs.at(0).stages.at(0).attempt, 1u);
  cluster.await_idle();
  cluster.check_clean();
}

TEST(gangs_of_processes, get_executors_of_their_profile_when_others_are_idle) {
  test_cluster cluster{{.master = "local-cluster[2,2,2g]", .fake_gpus = 2}};
  auto session = cluster.make_session();
  EXPECT_EQ(session.range(0, 4, 4).count(), 4u) << "of the default profile, on all cores";
  const auto gpu = resource_profile_builder{}
                       .require(executor_resource_requests{}.cores(2).memory("1g").resource("gpu", 1))
                       .require(task_resource_requests{}.cpus(1).resource("gpu", 1))
                       .build();
  const auto heard =
      session.range(0, 2, 2)
          .map_partitions([](const numbers&) {
            return texts{task_context::current().all_gather(task_context::current().addresses("gpu").at(0).address)};
          })
          .with_resources(gpu)
          .barrier()
          .collect();
  EXPECT_THAT(heard, ::testing::UnorderedElementsAre("fake-0", "fake-1", "fake-0", "fake-1"));
  cluster.await_idle();
  cluster.check_clean();
}

} // namespace
} // namespace troupe::system_tests
