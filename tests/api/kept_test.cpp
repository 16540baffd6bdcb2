// Datasets that are kept for later jobs, as jobs are made of them.

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/runtime/api/resource_profile_builder.hpp>
#include <troupe/runtime/api/session.hpp>

#include "inline_runner.hpp"

namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;
using troupe::dependency_kind;
using troupe::job_spec;
using troupe::resource_profile;
using troupe::stage_spec;
using troupe::storage_level;

resource_profile cpus(std::int64_t n) {
  return troupe::resource_profile_builder{}
      .require(troupe::executor_resource_requests{}.cores(4))
      .require(troupe::task_resource_requests{}.cpus(n))
      .build();
}

class kept_datasets_of_programs : public ::testing::Test {
protected:
  std::shared_ptr<troupe::test::inline_runner> runner_ = std::make_shared<troupe::test::inline_runner>();
  troupe::session session_{runner_,
                           {.default_parallelism = 4,
                            .jobs = {troupe::profile_change::cut, "the build", 7},
                            .arguments = {},
                            .fake_resources = {}}};

  const job_spec& last() const { return *runner_->jobs.back(); }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& stage : last().stages) all.push_back(stage.name);
    return all;
  }
  resource_profile profile_of(std::size_t stage) const { return last().profiles[last().stages[stage].profile]; }
};

TEST_F(kept_datasets_of_programs, end_a_stage) {
  const auto squares = session_.range(0, 10, 3).map([](std::int64_t n) { return n * n; }).cache();
  EXPECT_EQ(squares.filter([](std::int64_t n) { return n > 9; }).count(), 6u);
  EXPECT_THAT(names(), ElementsAre("range, map, keep", "filter, count"));
  const auto& keep = last().stages[0];
  ASSERT_TRUE(keep.keeps);
  EXPECT_EQ(keep.keeps->level, storage_level::memory);
  EXPECT_EQ(keep.buckets, 1u);
  EXPECT_FALSE(keep.keep_results);
  const auto& use = last().stages[1];
  EXPECT_FALSE(use.keeps);
  ASSERT_THAT(use.dependencies, SizeIs(1));
  EXPECT_EQ(use.dependencies[0].kind, dependency_kind::one_to_one);
  EXPECT_THAT(squares.collect(), ElementsAre(0, 1, 4, 9, 16, 25, 36, 49, 64, 81));
  EXPECT_EQ(last().stages[0].keeps, keep.keeps) << "the same for every job";
}

TEST_F(kept_datasets_of_programs, are_read_by_an_action_of_their_own) {
  const auto numbers = session_.range(0, 4, 2).persist(storage_level::disk);
  EXPECT_EQ(numbers.count(), 4u);
  EXPECT_THAT(names(), ElementsAre("range, keep", "count"));
  EXPECT_EQ(last().stages[0].keeps->level, storage_level::disk);
}

TEST_F(kept_datasets_of_programs, are_not_the_ones_that_they_were_made_from) {
  const auto numbers = session_.range(0, 4, 2);
  const auto kept = numbers.cache();
  numbers.count();
  EXPECT_THAT(last().stages, SizeIs(1));
  const auto again = numbers.cache();
  kept.count();
  const auto id = last().stages[0].keeps->id;
  again.count();
  EXPECT_NE(last().stages[0].keeps->id, id);
}

TEST_F(kept_datasets_of_programs, are_one_stage_where_a_job_reads_them_twice) {
  const auto pairs = session_.range(0, 6, 2).map([](std::int64_t n) { return std::pair{n % 3, n}; }).cache();
  const auto both = pairs.join(pairs, 2);
  EXPECT_EQ(both.count(), 12u);
  std::size_t keeping = 0;
  for (const auto& stage : last().stages) keeping += stage.keeps.has_value();
  EXPECT_EQ(keeping, 1u);
  EXPECT_THAT(last().stages, SizeIs(4)) << "keep, two that write, one that joins";
}

TEST_F(kept_datasets_of_programs, are_computed_under_the_profile_of_their_part) {
  session_.range(0, 4, 2).cache().map([](std::int64_t n) { return n; }).with_resources(cpus(2)).count();
  ASSERT_THAT(last().stages, SizeIs(2));
  EXPECT_EQ(profile_of(0), cpus(2)) << "the mark covers what is above it";
  EXPECT_EQ(profile_of(1), cpus(2));
  session_.range(0, 4, 2)
      .with_resources(cpus(1))
      .cache()
      .map([](std::int64_t n) { return n; })
      .with_resources(cpus(2))
      .count();
  ASSERT_THAT(last().stages, SizeIs(2)) << "one cut is enough";
  EXPECT_EQ(profile_of(0), cpus(1));
  EXPECT_TRUE(last().stages[0].keeps);
  EXPECT_EQ(profile_of(1), cpus(2));
}

TEST_F(kept_datasets_of_programs, may_be_results_of_a_shuffle) {
  const auto sums = session_.range(0, 10, 2)
                        .map([](std::int64_t n) {
                          return std::pair{n % 2, n};
                        })
                        .reduce_by_key(std::plus<>{}, 2)
                        .cache();
  EXPECT_EQ(sums.count(), 2u);
  EXPECT_THAT(names(), ElementsAre("range, map, write for reduce_by_key", "reduce_by_key, keep", "count"));
}

TEST_F(kept_datasets_of_programs, are_withdrawn_when_they_are_not_needed_any_more) {
  {
    const auto numbers = session_.range(0, 4, 2).cache();
    const auto more = numbers.map([](std::int64_t n) { return n + 1; });
    EXPECT_EQ(runner_->kept_broadcasts(), 1u);
    numbers.unpersist();
    EXPECT_EQ(runner_->kept_broadcasts(), 0u);
    EXPECT_EQ(more.count(), 4u);
    EXPECT_THAT(names(), ElementsAre("range, map, count")) << "nothing is kept any more";
    numbers.unpersist();
  }
  {
    auto derived = session_.range(0, 4, 2).cache().map([](std::int64_t n) { return n + 1; });
    EXPECT_EQ(runner_->kept_broadcasts(), 1u) << "by one that was made from it";
  }
  EXPECT_EQ(runner_->kept_broadcasts(), 0u);
  session_.range(0, 4, 2).unpersist();
}

/// What the task of `are_kept_until_the_job_that_reads_them` sees.
const troupe::dataset<std::int64_t>* unpersisted = nullptr;
const troupe::test::inline_runner* unpersisting = nullptr;
std::size_t kept_meanwhile = 0;

TEST_F(kept_datasets_of_programs, are_kept_until_the_job_that_reads_them_has_ended) {
  const auto numbers = session_.range(0, 4, 2).cache();
  unpersisted = &numbers;
  unpersisting = runner_.get();
  numbers
      .map([](std::int64_t n) {
        unpersisted->unpersist();
        kept_meanwhile = unpersisting->kept_broadcasts();
        return n;
      })
      .count();
  EXPECT_EQ(kept_meanwhile, 1u) << "a withdrawal that overtakes the job would be forgotten";
  EXPECT_EQ(runner_->kept_broadcasts(), 0u);
}

TEST_F(kept_datasets_of_programs, keep_records_of_any_type_that_travels) {
  const auto words = session_.parallelize(std::vector<std::string>{"a", "", "ccc"}, 2).cache();
  EXPECT_THAT(words.collect(), ElementsAre("a", "", "ccc"));
  EXPECT_EQ(words.map([](const std::string& w) { return w.size(); }).collect(), (std::vector<std::size_t>{1, 0, 3}));
}

} // namespace
