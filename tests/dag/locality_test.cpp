// Tasks that would rather run on certain executors or hosts (spec TS-9).

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/tests/support/scheduler_harness.hpp>

namespace troupe::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

dag_scheduler::options waits(duration executor, duration host) {
  dag_scheduler::options o;
  o.executor_wait = executor;
  o.host_wait = host;
  return o;
}
executor_builder on(const std::string& host, std::int64_t cores = 1) {
  return executor_builder{}.cores(cores).host(host);
}
job_builder job_of(std::uint32_t tasks, std::vector<std::string> locations) {
  return job_builder{}.stage("s", tasks).prefers(std::move(locations));
}
std::vector<partition_index> partitions(const std::vector<fake_attempt>& attempts) {
  std::vector<partition_index> all;
  for (const auto& a : attempts) all.push_back(a.partition);
  return all;
}

TEST(locality, tasks_go_to_the_hosts_that_they_name) {
  scheduler_harness h;
  const auto a = h.add(on("a", 2));
  const auto b = h.add(on("b", 2));
  const auto job = h.submit(job_of(4, {"b", "a", "b", "a"}));
  EXPECT_THAT(partitions(h.attempts(a)), UnorderedElementsAre(1, 3));
  EXPECT_THAT(partitions(h.attempts(b)), UnorderedElementsAre(0, 2));
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(locality, a_slot_elsewhere_is_taken_after_a_while) {
  scheduler_harness h;
  const auto a = h.add(on("a"));
  const auto b = h.add(on("b"));
  h.submit(job_of(3, {"a"}));
  EXPECT_THAT(h.attempts(a), SizeIs(1));
  EXPECT_THAT(h.attempts(b), IsEmpty());
  h.tick(2900ms);
  EXPECT_THAT(h.attempts(b), IsEmpty());
  h.tick(200ms);
  EXPECT_THAT(h.attempts(b), SizeIs(1)) << "three seconds: no executor is named, so there is one level less";
  h.drain();
  h.check_idle();
}

TEST(locality, an_executor_that_is_named_comes_before_others_of_its_host) {
  scheduler_harness h{waits(2s, 4s)};
  const auto a = h.add(on("a"));
  const auto a2 = h.add(on("a"));
  const auto b = h.add(on("b"));
  h.submit(job_of(3, {"a/" + std::to_string(a2.value)}));
  EXPECT_THAT(partitions(h.attempts(a2)), ElementsAre(0));
  EXPECT_THAT(h.attempts(a), IsEmpty());
  h.tick(2s);
  EXPECT_THAT(h.attempts(a), SizeIs(1)) << "the host after the wait for the executor";
  EXPECT_THAT(h.attempts(b), IsEmpty());
  h.tick(3900ms);
  EXPECT_THAT(h.attempts(b), IsEmpty());
  h.tick(200ms);
  EXPECT_THAT(h.attempts(b), SizeIs(1)) << "any after both waits";
  h.drain();
  h.check_idle();
}

TEST(locality, the_clock_stands_while_no_slot_is_declined) {
  scheduler_harness h;
  const auto a = h.add(on("a"));
  const auto b = h.add(on("b"));
  const auto busy = h.submit(job_builder{}.stage("other", 1).prefers({"b"}));
  ASSERT_THAT(h.attempts(b), SizeIs(1));
  h.submit(job_of(2, {"a"}));
  h.tick(1h);
  h.succeed(h.attempts(b).at(0), {}, 0s);
  EXPECT_THAT(h.attempts(b), IsEmpty()) << "it has declined nothing so far";
  EXPECT_EQ(h.progress(busy).state, job_state::succeeded);
  h.tick(2900ms);
  EXPECT_THAT(h.attempts(b), IsEmpty());
  h.tick(200ms);
  EXPECT_THAT(h.attempts(b), SizeIs(1));
  (void) a;
  h.drain();
  h.check_idle();
}

TEST(locality, the_clock_starts_anew_when_no_slot_is_left) {
  scheduler_harness h;
  const auto a = h.add(on("a"));
  const auto b = h.add(on("b"));
  h.submit(job_of(5, {"a"}));
  h.tick(3s);
  ASSERT_THAT(h.attempts(b), SizeIs(1));
  h.succeed(h.attempts(b)[0], {}, 0s);
  EXPECT_THAT(h.attempts(b), IsEmpty()) << "near ones first again";
  h.tick(3s);
  EXPECT_THAT(h.attempts(b), SizeIs(1));
  (void) a;
  h.drain();
  h.check_idle();
}

TEST(locality, nothing_waits_for_hosts_that_are_not_there) {
  scheduler_harness h{waits(troupe::never, troupe::never)};
  const auto b = h.add(on("b", 2));
  h.submit(job_of(2, {"a", "c/7"}));
  EXPECT_THAT(h.attempts(b), SizeIs(2));
  h.drain();
  h.check_idle();
}

TEST(locality, slots_that_pass_a_stage_by_start_its_clock) {
  scheduler_harness h;
  h.add(on("a"));
  const auto b = h.add(on("b"));
  const auto first = h.submit(job_builder{}.stage("one", 1).stage("two", 3).prefers({"a"}).after(0));
  const auto later = h.submit(job_builder{}.stage("later", 100));
  h.succeed(h.attempts_of(first, 0).at(0), {}, 0s);
  // The slot of `a` is the first job's now; that of `b` goes on with the later job, and is never free.
  for (int i = 0; i < 3; ++i) {
    for (const auto& each : h.attempts(b)) h.succeed(each, {}, 1s);
  }
  h.tick(0s);
  for (const auto& each : h.attempts(b)) h.succeed(each, {}, 1s);
  EXPECT_THAT(h.attempts_of(first, 1), SizeIs(2)) << "three seconds after the first slot that passed it by";
  h.drain();
  EXPECT_EQ(h.progress(later).state, job_state::succeeded);
  h.check_idle();
}

TEST(locality, that_declines_a_slot_keeps_nobody_from_it_where_pools_share) {
  auto options = waits(troupe::never, troupe::never);
  options.sharing.mode = sharing_mode::fair;
  scheduler_harness h{options};
  h.add(on("a"));
  const auto b = h.add(on("b"));
  h.submit(job_of(3, {"a"}));
  const auto later = h.submit(job_builder{}.stage("later", 1));
  EXPECT_THAT(h.attempts_of(later, 0), SizeIs(1));
  EXPECT_THAT(h.attempts(b), SizeIs(1));
  h.drain();
  h.check_idle();
}

TEST(locality, an_executor_that_is_gone_is_not_waited_for_but_its_host_is) {
  scheduler_harness h{waits(troupe::never, troupe::never)};
  const auto a = h.add(on("a"));
  const auto b = h.add(on("b"));
  h.submit(job_of(2, {"a/99"}));
  EXPECT_THAT(h.attempts(a), SizeIs(1));
  EXPECT_THAT(h.attempts(b), IsEmpty());
  h.drain();
  h.check_idle();
}

TEST(locality, never_is_for_ever) {
  scheduler_harness h{waits(troupe::never, troupe::never)};
  const auto a = h.add(on("a"));
  const auto b = h.add(on("b"));
  const auto job = h.submit(job_of(2, {"a"}));
  h.tick(24h);
  EXPECT_THAT(h.attempts(b), IsEmpty());
  h.lose(a, "gone", false);
  EXPECT_THAT(h.attempts(b), SizeIs(1)) << "until there is nobody to wait for";
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(locality, zero_is_not_at_all) {
  scheduler_harness h{waits(0s, 0s)};
  const auto a = h.add(on("a"));
  const auto b = h.add(on("b"));
  h.submit(job_of(2, {"b"}));
  EXPECT_THAT(h.attempts(a), SizeIs(1));
  EXPECT_THAT(h.attempts(b), SizeIs(1));
  h.drain();
  h.check_idle();
}

TEST(locality, tasks_without_preference_take_what_others_decline) {
  scheduler_harness h;
  h.add(on("a"));
  const auto b = h.add(on("b"));
  h.submit(job_of(4, {"a", "a", "", "a"}));
  EXPECT_THAT(partitions(h.attempts(b)), ElementsAre(2));
  const auto later = h.submit(job_builder{}.stage("later", 1));
  h.succeed(h.attempts(b)[0], {}, 0s);
  EXPECT_THAT(h.attempts_of(later, 0), SizeIs(1)) << "a later job as well";
  h.drain();
  h.check_idle();
}

TEST(locality, a_slot_that_comes_back_takes_the_nearest_first) {
  scheduler_harness h;
  const auto a = h.add(on("a"));
  const auto b = h.add(on("b"));
  h.submit(job_of(6, {"b", "b", "b", "a", "a", "a"}));
  std::vector<partition_index> ran;
  for (int i = 0; i < 3; ++i) {
    ran.push_back(h.attempts(a).at(0).partition);
    h.succeed(h.attempts(a)[0], {}, 0s);
  }
  EXPECT_THAT(ran, ElementsAre(3, 4, 5));
  EXPECT_THAT(partitions(h.attempts(b)), ElementsAre(0));
  h.drain();
  h.check_idle();
}

TEST(locality, what_failed_goes_near_again) {
  scheduler_harness h;
  const auto a = h.add(on("a"));
  h.add(on("b"));
  const auto job = h.submit(job_of(1, {"a"}));
  h.fail(h.attempts(a).at(0), "bad luck");
  ASSERT_THAT(h.attempts(a), SizeIs(1));
  EXPECT_EQ(h.attempts(a)[0].attempt, 1u);
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(locality, is_the_same_under_exact_matching) {
  auto options = waits(3s, 3s);
  options.matching = profile_matching::exact;
  scheduler_harness h{options};
  const auto shape = h.shape_of({});
  const auto a = h.add(on("a").shape(shape));
  const auto b = h.add(on("b").shape(shape));
  h.submit(job_of(2, {"b"}));
  EXPECT_THAT(h.attempts(a), IsEmpty());
  EXPECT_THAT(h.attempts(b), SizeIs(1));
  h.tick(3s);
  EXPECT_THAT(h.attempts(a), SizeIs(1));
  h.drain();
  h.check_idle();
}

TEST(locality, that_keeps_a_job_waiting_is_told) {
  scheduler_harness h{waits(troupe::never, troupe::never)};
  const auto a = h.add(on("a"));
  h.add(on("b"));
  const auto busy = h.submit(job_builder{}.stage("other", 1).prefers({"a"}));
  ASSERT_THAT(h.attempts(a), SizeIs(1));
  const auto job = h.submit(job_of(1, {"a"}));
  EXPECT_THAT(h.progress(job).waiting_for,
              HasSubstr("its tasks would rather run near their data than where there is room "
                        "(troupe.locality.executor-wait, troupe.locality.host-wait)"));
  h.drain();
  EXPECT_EQ(h.progress(busy).state, job_state::succeeded);
  h.check_idle();
}

} // namespace
} // namespace troupe::testing
