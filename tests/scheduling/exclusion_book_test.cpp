// Whom failures of tasks exclude, and for how long.

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/runtime/scheduling/exclusion_book.hpp>

namespace troupe {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using changes = exclusion_book::changes;

constexpr profile_id profile{0};
constexpr time_point start{};

exclusion_rules rules(std::uint32_t tasks = 2, std::uint32_t executors = 2, duration timeout = 1h) {
  return {true, tasks, executors, timeout};
}

/// A task of stage 1, unless another is named, fails on an executor of host alpha.
struct scene {
  exclusion_book book;
  std::string host = "alpha";
  bool lost = false;
  stage_id stage{1};
  profile_id of = profile;

  explicit scene(exclusion_rules r = rules()) : book(r) {}
  changes fail(std::uint64_t executor, partition_index task, duration at = 0s) {
    return book.on_failure({of, {executor}, host, stage, task, lost, "exit code 1"}, start + at);
  }
  changes lose(std::uint64_t executor, std::initializer_list<partition_index> tasks) {
    std::vector<exclusion_book::failure> all;
    for (const auto task : tasks) all.push_back({of, {executor}, host, stage, task, true, "exit code 1"});
    return book.on_loss(all, start);
  }
  bool excluded(std::uint64_t executor) const { return book.is_excluded(profile, {executor}, "alpha"); }
};

TEST(exclusion_book, counts_different_tasks_of_one_profile_on_one_executor) {
  scene s;
  EXPECT_THAT(s.fail(1, 0), IsEmpty());
  EXPECT_THAT(s.fail(1, 0), IsEmpty()) << "the same task";
  EXPECT_THAT(s.fail(2, 1), IsEmpty()) << "another executor";
  s.of = {7};
  EXPECT_THAT(s.fail(1, 1), IsEmpty()) << "another profile";
  s.of = profile;
  EXPECT_FALSE(s.excluded(1));
  EXPECT_THAT(s.fail(1, 1), ElementsAre(exclusion_book::change{profile, {1}, "alpha", 2}));
  EXPECT_TRUE(s.excluded(1));
  EXPECT_FALSE(s.excluded(2));
  EXPECT_FALSE(s.book.is_excluded({7}, {1}, "alpha"));
  EXPECT_THAT(s.book.profiles_excluded_from({1}, "alpha"), ElementsAre(profile));
  EXPECT_TRUE(s.book.concerns(profile));
  EXPECT_FALSE(s.book.concerns({7}));
  EXPECT_THAT(s.fail(1, 2), IsEmpty()) << "it is already";
}

TEST(exclusion_book, tells_a_partition_of_one_stage_from_that_of_another) {
  scene s;
  s.fail(1, 0);
  s.stage = {2};
  EXPECT_EQ(s.fail(1, 0).size(), 1u);
}

TEST(exclusion_book, counts_nothing_unless_it_is_enabled) {
  scene s{exclusion_rules{}};
  for (partition_index task = 0; task < 9; ++task) EXPECT_THAT(s.fail(1, task), IsEmpty());
  EXPECT_TRUE(s.book.empty());
}

TEST(exclusion_book, forgets_failures_that_are_older_than_the_time_out) {
  scene s;
  s.fail(1, 0);
  EXPECT_THAT(s.fail(1, 1, 1h), IsEmpty());
  EXPECT_EQ(s.fail(1, 2, 1h + 59min).size(), 1u) << "the second one still counts";
  scene idle;
  idle.fail(1, 0);
  EXPECT_THAT(idle.book.on_time(start + 59min), IsEmpty());
  EXPECT_FALSE(idle.book.empty());
  EXPECT_THAT(idle.book.on_time(start + 1h), IsEmpty());
  EXPECT_TRUE(idle.book.empty());
}

TEST(exclusion_book, an_exclusion_lasts_for_the_time_out_and_then_the_count_begins_anew) {
  scene s;
  s.fail(1, 0);
  s.fail(1, 1, 30min);
  s.stage = {2};
  s.fail(1, 2, 80min);
  EXPECT_THAT(s.book.on_time(start + 89min), IsEmpty());
  EXPECT_TRUE(s.excluded(1)) << "although the first failure is too old";
  EXPECT_THAT(s.book.on_time(start + 90min), ElementsAre(exclusion_book::change{profile, {1}, "alpha", 0}));
  EXPECT_FALSE(s.excluded(1));
  EXPECT_TRUE(s.book.empty());
  EXPECT_THAT(s.fail(1, 3, 91min), IsEmpty());
}

TEST(exclusion_book, a_host_is_excluded_with_its_executors_of_that_profile) {
  scene s{rules(1)};
  s.host = "beta";
  s.fail(9, 0);
  s.host = "alpha";
  s.of = {7};
  s.fail(8, 0);
  s.of = profile;
  EXPECT_EQ(s.fail(1, 0).size(), 1u);
  EXPECT_FALSE(s.book.is_host_excluded(profile, "alpha"));
  EXPECT_THAT(s.fail(2, 0, 10min), ElementsAre(exclusion_book::change{profile, {2}, "alpha", 1},
                                               exclusion_book::change{profile, {}, "alpha", 2}));
  EXPECT_TRUE(s.book.is_host_excluded(profile, "alpha"));
  EXPECT_FALSE(s.book.is_host_excluded(profile, "beta"));
  EXPECT_TRUE(s.excluded(77)) << "whoever comes";
  EXPECT_THAT(s.book.profiles_excluded_from({77}, "alpha"), ElementsAre(profile));
  EXPECT_TRUE(s.book.concerns(profile));
  // The first one's time is over, the host's not yet.
  EXPECT_EQ(s.book.on_time(start + 1h).size(), 3u) << "1, 8 and 9";
  EXPECT_TRUE(s.excluded(1));
  EXPECT_THAT(s.book.on_time(start + 70min), ElementsAre(exclusion_book::change{profile, {2}, "alpha", 0},
                                                         exclusion_book::change{profile, {}, "alpha", 0}));
  EXPECT_FALSE(s.excluded(1));
  EXPECT_TRUE(s.book.empty());
}

TEST(exclusion_book, a_task_that_takes_one_executor_after_the_other_along_does_not_exclude_their_host) {
  scene s;
  EXPECT_EQ(s.lose(1, {0, 1}).size(), 1u);
  EXPECT_EQ(s.lose(2, {2, 5, 0}).size(), 1u) << "task 0 was there both times";
  EXPECT_FALSE(s.book.is_host_excluded(profile, "alpha"));
  EXPECT_EQ(s.lose(3, {3, 4}).size(), 2u) << "but not now";
  EXPECT_TRUE(s.book.is_host_excluded(profile, "alpha"));
}

TEST(exclusion_book, tasks_that_fail_by_themselves_on_two_executors_do_exclude_the_host) {
  scene s;
  s.fail(1, 0);
  s.fail(1, 1);
  s.fail(2, 0);
  EXPECT_EQ(s.fail(2, 1).size(), 2u);
}

TEST(exclusion_book, failures_of_a_stage_that_did_not_succeed_count_no_longer) {
  scene s;
  s.fail(1, 0);
  s.fail(1, 1);
  s.fail(2, 0);
  s.fail(2, 1);
  s.fail(3, 0);
  ASSERT_TRUE(s.book.is_host_excluded(profile, "alpha"));
  EXPECT_THAT(s.book.on_stage_ended({2}), IsEmpty()) << "it has none";
  EXPECT_THAT(s.book.on_stage_ended({1}), ElementsAre(exclusion_book::change{profile, {1}, "alpha", 0},
                                                      exclusion_book::change{profile, {2}, "alpha", 0},
                                                      exclusion_book::change{profile, {}, "alpha", 0}));
  EXPECT_FALSE(s.excluded(1));
  EXPECT_TRUE(s.book.empty());
}

TEST(exclusion_book, whoever_is_excluded_without_that_stage_stays_so) {
  scene s;
  s.fail(1, 0);
  s.fail(1, 1);
  s.stage = {2};
  for (partition_index task = 0; task < 9; ++task) s.fail(1, task);
  s.fail(2, 0);
  s.stage = {1};
  s.fail(2, 0);
  ASSERT_TRUE(s.book.is_host_excluded(profile, "alpha"));
  EXPECT_THAT(s.book.on_stage_ended({1}), ElementsAre(exclusion_book::change{profile, {2}, "alpha", 0},
                                                      exclusion_book::change{profile, {}, "alpha", 0}))
      << "two tasks of the other stage have failed on the first";
  EXPECT_TRUE(s.excluded(1));
  EXPECT_EQ(s.book.on_stage_ended({2}).size(), 1u);
  EXPECT_TRUE(s.book.empty());
}

TEST(exclusion_book, a_host_with_enough_others_stays_excluded) {
  scene s{rules(1)};
  s.fail(1, 0);
  s.fail(2, 0);
  s.stage = {2};
  s.fail(3, 0);
  EXPECT_EQ(s.book.on_stage_ended({2}).size(), 1u);
  EXPECT_TRUE(s.book.is_host_excluded(profile, "alpha"));
}

TEST(exclusion_book, describes_a_few_and_the_last_failure) {
  scene s{rules(1, 9)};
  EXPECT_EQ(s.book.describe(profile), "");
  s.fail(1, 0);
  EXPECT_EQ(s.book.describe(profile), "executor 1 (alpha); the last failure: exit code 1");
  EXPECT_EQ(s.book.describe({7}), "");
  for (std::uint64_t e = 2; e <= 6; ++e) s.fail(e, 0);
  EXPECT_THAT(s.book.describe(profile), HasSubstr("executor 4 (alpha) and 2 more; the last failure"));
  const std::string text(1000, 'x');
  s.book.on_failure({profile, {1}, "alpha", {1}, 0, false, text}, start);
  EXPECT_LT(s.book.describe(profile).size(), 500u);
  scene host{rules(1, 1)};
  host.fail(1, 0);
  EXPECT_THAT(host.book.describe(profile), HasSubstr("host alpha, executor 1 (alpha)"));
}

} // namespace
} // namespace troupe
