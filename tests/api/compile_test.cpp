#include <gtest/gtest.h>

#include <functional>
#include <pthread.h>
#include <string>
#include <utility>
#include <vector>

#include <troupe/runtime/api/resource_profile_builder.hpp>
#include <troupe/runtime/api/session.hpp>

#include "inline_runner.hpp"

namespace {

using troupe::dependency_kind;
using troupe::ec;
using troupe::job_error;
using troupe::job_spec;
using troupe::native_program;
using troupe::resource_profile;

resource_profile cpus(std::int64_t n) {
  return troupe::resource_profile_builder{}
      .require(troupe::executor_resource_requests{}.cores(4))
      .require(troupe::task_resource_requests{}.cpus(n))
      .build();
}

class compiled_jobs : public testing::Test {
protected:
  std::shared_ptr<troupe::test::inline_runner> runner_ = std::make_shared<troupe::test::inline_runner>();
  troupe::session session_{runner_, options()};

  static troupe::session_options options(troupe::profile_change change = troupe::profile_change::error) {
    return {.default_parallelism = 4, .jobs = {change, "the build", 7}, .arguments = {}, .fake_resources = {}};
  }

  auto pairs() {
    return session_.range(0, 100, 5).map([](std::int64_t n) { return std::pair{n % 10, n}; });
  }
  const job_spec& last() const { return *runner_->jobs.back(); }
  resource_profile profile_of(std::size_t stage) const { return last().profiles[last().stages[stage].profile]; }
  std::size_t operations_of(std::size_t stage) const {
    return std::get<native_program>(last().stages[stage].program).operations.size();
  }
};

TEST_F(compiled_jobs, narrow_steps_fuse_and_a_shuffle_cuts) {
  pairs().reduce_by_key(std::plus<>{}, 3).map([](const auto& p) { return p.second; }).count();
  ASSERT_EQ(last().stages.size(), 2u);
  const auto& write = last().stages[0];
  EXPECT_EQ(write.name, "range, map, write for reduce_by_key");
  EXPECT_EQ(write.tasks, 5u);
  EXPECT_EQ(write.buckets, 3u);
  EXPECT_TRUE(write.dependencies.empty());
  EXPECT_FALSE(write.keep_results);
  EXPECT_EQ(operations_of(0), 3u) << "source, map, shuffle write";
  const auto& read = last().stages[1];
  EXPECT_EQ(read.name, "reduce_by_key, map, count");
  EXPECT_EQ(read.tasks, 3u);
  EXPECT_EQ(read.buckets, 0u);
  ASSERT_EQ(read.dependencies.size(), 1u);
  EXPECT_EQ(read.dependencies[0], (troupe::stage_dependency{0, dependency_kind::shuffle}));
  EXPECT_TRUE(read.keep_results);
  EXPECT_EQ(operations_of(1), 3u) << "shuffle read, map, count";
  EXPECT_EQ(last().max_task_failures, 7u);
  EXPECT_EQ(std::get<native_program>(read.program).build_id, "the build");
}

/// Runs it where calls that are nested as deep as a lineage is long would not fit.
void on_a_small_stack(const std::function<void()>& what) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 512 << 10), 0);
  pthread_t thread{};
  const auto run = [](void* given) -> void* {
    (*static_cast<const std::function<void()>*>(given))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, const_cast<std::function<void()>*>(&what)), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
}

TEST_F(compiled_jobs, may_come_from_a_loop_of_many_rounds) {
  constexpr std::uint32_t rounds = 10'000;
  on_a_small_stack([&] {
    auto d = session_.range(0, 4, 1).map([](std::int64_t n) { return std::pair{n % 2, n}; });
    for (std::uint32_t i = 0; i < rounds; ++i) d = d.reduce_by_key(std::plus<>{}, 1);
    EXPECT_EQ(d.count(), 2u);
    EXPECT_EQ(last().stages.size(), rounds + 1);
    EXPECT_EQ(last().stages[1].dependencies.at(0).stage, 0u) << "parents first";
    runner_->jobs.clear();
  });
}

TEST_F(compiled_jobs, of_too_many_steps_in_a_row_are_refused_with_the_cure) {
  on_a_small_stack([&] {
    auto d = session_.range(0, 4, 1);
    for (int i = 0; i < 20'000; ++i) d = d.map([](std::int64_t n) { return n + 1; });
    try {
      d.count();
      FAIL() << "it ran";
    } catch (const job_error& e) {
      EXPECT_EQ(e.code(), ec::invalid_argument);
      EXPECT_NE(std::string{e.what()}.find("20001 steps away"), std::string::npos) << e.what();
      EXPECT_NE(std::string{e.what()}.find("cache() the records now and then"), std::string::npos) << e.what();
    }
  });
  {
    auto d = session_.range(0, 4, 1);
    for (int i = 0; i < 3000; ++i) {
      d = d.map([](std::int64_t n) { return n + 1; });
      if (i % 1000 == 0) d = d.cache();
    }
    EXPECT_EQ(d.collect(), (std::vector<std::int64_t>{3000, 3001, 3002, 3003}));
  }
  auto d = session_.range(0, 4, 1);
  for (int i = 0; i < 500; ++i) d = d.map([](std::int64_t n) { return n + 1; });
  EXPECT_EQ(d.collect(), (std::vector<std::int64_t>{500, 501, 502, 503}));
}

TEST_F(compiled_jobs, a_range_of_many_tasks_carries_no_arguments) {
  session_.range(0, 10, 2).count();
  EXPECT_EQ(last().stages[0].arguments, nullptr);
}

TEST_F(compiled_jobs, a_shuffle_that_two_datasets_read_is_written_once) {
  static int evaluations = 0;
  evaluations = 0;
  const auto counts = session_.range(0, 100, 5)
                          .map([](std::int64_t n) {
                            ++evaluations;
                            return std::pair{n % 10, n};
                          })
                          .reduce_by_key(std::plus<>{});
  const auto doubled = counts.map([](const auto& p) { return std::pair{p.first, p.second * 2}; });
  const auto both = counts.join(doubled).collect();
  EXPECT_EQ(both.size(), 10u);
  for (const auto& [key, values] : both) EXPECT_EQ(values.second, 2 * values.first);
  EXPECT_EQ(evaluations, 100) << "each record of the shared stage was made once";
  // range+map; counts for the left side; counts+map for the right; join.
  ASSERT_EQ(last().stages.size(), 4u);
  EXPECT_EQ(last().stages[1].dependencies, last().stages[2].dependencies);
  EXPECT_EQ(last().stages[3].dependencies,
            (std::vector<troupe::stage_dependency>{{1, dependency_kind::shuffle}, {2, dependency_kind::shuffle}}));
}

TEST_F(compiled_jobs, a_profile_covers_its_stage_and_no_other) {
  pairs().with_resources(cpus(2)).reduce_by_key(std::plus<>{}).map([](const auto& p) { return p.second; }).count();
  EXPECT_EQ(profile_of(0), cpus(2)) << "before the shuffle: the map stage";
  EXPECT_EQ(profile_of(1), resource_profile{});

  pairs().reduce_by_key(std::plus<>{}).map([](const auto& p) { return p.second; }).with_resources(cpus(2)).count();
  EXPECT_EQ(profile_of(0), resource_profile{}) << "after the shuffle: the reduce stage";
  EXPECT_EQ(profile_of(1), cpus(2));

  pairs().reduce_by_key(std::plus<>{}).with_resources(cpus(2)).map([](const auto& p) { return p.second; }).count();
  EXPECT_EQ(profile_of(1), cpus(2)) << "and so for what follows in the same tasks";
  EXPECT_EQ(last().profiles.size(), 2u);
  EXPECT_EQ(last().profiles[0], resource_profile{}) << "0 is the default one";
}

TEST_F(compiled_jobs, the_last_profile_of_a_dataset_wins) {
  pairs().with_resources(cpus(2)).with_resources(cpus(3)).count();
  EXPECT_EQ(profile_of(0), cpus(3));
  EXPECT_EQ(last().profiles.size(), 2u) << "the other one is not part of the job";
}

TEST_F(compiled_jobs, profiles_that_meet_in_one_stage_travel_with_the_datasets_that_carry_them) {
  const auto two = cpus(2);
  pairs().with_resources(two).named("readers").filter([](const auto&) { return true; }).with_resources(cpus(3)).count();
  const auto& stage = last().stages[0];
  ASSERT_EQ(stage.carried.size(), 2u);
  EXPECT_EQ(last().profiles[stage.carried[0].profile], cpus(2));
  EXPECT_EQ(stage.carried[0].dataset, "readers");
  EXPECT_EQ(last().profiles[stage.carried[1].profile], cpus(3));
  EXPECT_EQ(stage.carried[1].dataset, "filter");
  EXPECT_EQ(last().on_profile_change, troupe::profile_change::error);

  pairs().with_resources(two).filter([](const auto&) { return true; }).with_resources(two).count();
  EXPECT_TRUE(last().stages[0].carried.empty()) << "one profile on two datasets";
  EXPECT_EQ(last().profiles.size(), 2u);
  pairs().with_resources(cpus(2)).filter([](const auto&) { return true; }).with_resources(cpus(2)).count();
  EXPECT_EQ(last().stages[0].carried.size(), 2u) << "equal ones of two builds: the session's rules say what they are";
}

TEST_F(compiled_jobs, a_change_of_profile_cuts_a_stage_into_a_pipeline) {
  troupe::session cutting{runner_, options(troupe::profile_change::cut)};
  const auto words = cutting.range(0, 100, 5).map([](std::int64_t n) { return std::to_string(n); });
  const auto sizes = words.with_resources(cpus(2))
                         .named("words")
                         .map([](const std::string& word) { return word.size(); })
                         .with_resources(cpus(3))
                         .map([](std::size_t n) { return n + 1; });
  std::size_t total = 0;
  for (const auto n : sizes.collect()) total += n;
  EXPECT_EQ(total, 10 + 90 * 2 + 100u) << "records pass from one to the other";
  ASSERT_EQ(last().stages.size(), 2u);
  const auto& made = last().stages[0];
  const auto& used = last().stages[1];
  EXPECT_EQ(made.name, "words");
  EXPECT_EQ(made.buckets, 1u);
  EXPECT_FALSE(made.keep_results);
  EXPECT_EQ(operations_of(0), 3u) << "range, map, and the hand-over";
  EXPECT_EQ(profile_of(0), cpus(2)) << "a mark covers what is before it";
  EXPECT_EQ(used.name, "map, map, collect");
  EXPECT_EQ(used.tasks, 5u);
  EXPECT_EQ(operations_of(1), 4u) << "the hand-over, two maps and collect";
  EXPECT_EQ(profile_of(1), cpus(3)) << "up to the mark before it, and the last one covers what is behind it";
  ASSERT_EQ(used.dependencies.size(), 1u);
  EXPECT_EQ(used.dependencies[0], (troupe::stage_dependency{0, troupe::dependency_kind::one_to_one}));
  EXPECT_TRUE(made.carried.empty() && used.carried.empty() && used.cut_from.empty());
  EXPECT_EQ(last().on_profile_change, troupe::profile_change::cut);
}

TEST_F(compiled_jobs, one_mark_or_equal_ones_cut_nothing) {
  troupe::session cutting{runner_, options(troupe::profile_change::cut)};
  const auto numbers = cutting.range(0, 10);
  const auto is_any = [](std::int64_t) { return true; };
  numbers.filter(is_any).with_resources(cpus(2)).filter(is_any).count();
  EXPECT_EQ(last().stages.size(), 1u);
  EXPECT_EQ(profile_of(0), cpus(2)) << "all of the stage, as Spark has it";
  numbers.with_resources(cpus(2)).filter(is_any).with_resources(cpus(2)).count();
  EXPECT_EQ(last().stages.size(), 1u) << "equal content, of whatever build";
  numbers.with_resources(cpus(2)).with_resources(cpus(3)).count();
  EXPECT_EQ(last().stages.size(), 1u) << "of two calls on one dataset the last one counts";
  numbers.with_resources(cpus(2))
      .filter(is_any)
      .with_resources(cpus(2))
      .filter(is_any)
      .with_resources(cpus(3))
      .filter(is_any)
      .with_resources(cpus(2))
      .count();
  ASSERT_EQ(last().stages.size(), 3u);
  EXPECT_EQ(profile_of(0), cpus(2));
  EXPECT_EQ(profile_of(1), cpus(3));
  EXPECT_EQ(profile_of(2), cpus(2));
}

TEST_F(compiled_jobs, cuts_before_a_shuffle_and_behind_one_leave_its_edges_where_they_are) {
  troupe::session cutting{runner_, options(troupe::profile_change::cut)};
  const auto sums = cutting.range(0, 100, 5)
                        .map([](std::int64_t n) {
                          return std::pair{n % 10, n};
                        })
                        .with_resources(cpus(2))
                        .filter([](const auto&) { return true; })
                        .with_resources(cpus(3))
                        .reduce_by_key(std::plus<>{}, 3)
                        .with_resources(cpus(4))
                        .indeterminate()
                        .map([](const auto& p) { return p.second; })
                        .with_resources(cpus(1));
  std::int64_t total = 0;
  for (const auto n : sums.collect()) total += n;
  EXPECT_EQ(total, 4950);
  ASSERT_EQ(last().stages.size(), 4u);
  EXPECT_EQ(last().stages[1].dependencies[0].kind, troupe::dependency_kind::one_to_one);
  EXPECT_EQ(last().stages[1].buckets, 3u) << "it writes the shuffle";
  EXPECT_EQ(last().stages[2].dependencies[0], (troupe::stage_dependency{1, troupe::dependency_kind::shuffle}));
  EXPECT_EQ(last().stages[3].dependencies[0], (troupe::stage_dependency{2, troupe::dependency_kind::one_to_one}));
  EXPECT_TRUE(last().stages[2].indeterminate);
  EXPECT_FALSE(last().stages[3].indeterminate);
}

/// Cannot travel.
struct silent_record {
  std::int64_t number;
  std::string text;
};

TEST_F(compiled_jobs, records_that_cannot_travel_are_no_obstacle_where_nothing_is_cut) {
  troupe::session cutting{runner_, options(troupe::profile_change::cut)};
  const auto silent = cutting.range(0, 10)
                          .map([](std::int64_t n) {
                            return silent_record{n, {}};
                          })
                          .with_resources(cpus(2))
                          .named("silent ones");
  const auto numbers = silent.map([](const silent_record& r) { return r.number; });
  EXPECT_EQ(numbers.count(), 10u);
  try {
    numbers.with_resources(cpus(3)).count();
    FAIL() << "they pass from one stage to another";
  } catch (const troupe::job_error& e) {
    EXPECT_NE(std::string{e.what()}.find("'silent ones', whose records cannot travel"), std::string::npos) << e.what();
  }
}

TEST_F(compiled_jobs, a_barrier_concerns_its_part_of_a_stage_that_is_cut) {
  troupe::session cutting{runner_, options(troupe::profile_change::cut)};
  const auto is_any = [](std::int64_t) { return true; };
  cutting.range(0, 10).with_resources(cpus(2)).filter(is_any).with_resources(cpus(3)).barrier().count();
  ASSERT_EQ(last().stages.size(), 2u);
  EXPECT_FALSE(last().stages[0].barrier);
  EXPECT_TRUE(last().stages[1].barrier);
}

TEST_F(compiled_jobs, where_the_rules_decide_a_cut_says_what_it_has_cut) {
  troupe::session session{runner_, options(troupe::profile_change::by_matching)};
  session.range(0, 10)
      .with_resources(cpus(2))
      .named("numbers")
      .filter([](std::int64_t) { return true; })
      .with_resources(cpus(3))
      .count();
  ASSERT_EQ(last().stages.size(), 2u);
  const auto& cut = last().stages[1].cut_from;
  ASSERT_EQ(cut.size(), 2u);
  EXPECT_EQ(last().profiles[cut[0].profile], cpus(2));
  EXPECT_EQ(cut[0].dataset, "numbers");
  EXPECT_EQ(last().profiles[cut[1].profile], cpus(3));
  EXPECT_EQ(cut[1].dataset, "filter");
}

TEST_F(compiled_jobs, a_barrier_makes_a_gang_of_its_stage_and_of_no_other) {
  auto waiting = options();
  waiting.jobs.sync_timeout = std::chrono::seconds{30};
  troupe::session session{runner_, waiting};
  const auto pairs = session.range(0, 100, 5).map([](std::int64_t n) { return std::pair{n % 10, n}; });
  const auto is_even = [](const auto& p) { return p.first % 2 == 0; };
  pairs.barrier().filter(is_even).reduce_by_key(std::plus<>{}).count();
  EXPECT_TRUE(last().stages[0].barrier) << "before the shuffle: the map stage, narrow steps after it included";
  EXPECT_EQ(last().stages[0].sync_timeout, std::chrono::seconds{30});
  EXPECT_FALSE(last().stages[1].barrier);
  EXPECT_EQ(last().stages[1].sync_timeout, troupe::never);

  pairs.reduce_by_key(std::plus<>{}, 3).barrier().take(1);
  EXPECT_FALSE(last().stages[0].barrier);
  EXPECT_TRUE(last().stages[1].barrier);
  EXPECT_EQ(last().stages[1].tasks, 3u) << "a gang runs with all its partitions, whatever is taken of them";
  EXPECT_TRUE(troupe::validate(last()));

  pairs.count();
  EXPECT_FALSE(last().stages[0].barrier) << "the dataset that it was asked of is as it was";
}

TEST_F(compiled_jobs, what_happens_where_profiles_meet_travels_with_the_job) {
  troupe::session merging{runner_, options(troupe::profile_change::merge)};
  merging.range(0, 1).count();
  EXPECT_EQ(last().on_profile_change, troupe::profile_change::merge);
}

TEST_F(compiled_jobs, a_name_goes_to_the_stage_and_the_job) {
  pairs().named("numbers").reduce_by_key(std::plus<>{}).named("sums").count();
  EXPECT_EQ(last().stages[0].name, "numbers");
  EXPECT_EQ(last().stages[1].name, "sums");
  EXPECT_EQ(last().name, "sums");
}

TEST_F(compiled_jobs, a_stage_of_many_steps_has_a_short_name) {
  auto numbers = session_.range(0, 1);
  for (int i = 0; i < 1000; ++i) numbers = numbers.filter([](std::int64_t) { return true; });
  EXPECT_EQ(numbers.count(), 1u);
  EXPECT_EQ(last().stages[0].name, "range, filter, filter, …, filter, filter, filter, count");
}

TEST_F(compiled_jobs, attributes_leave_the_dataset_that_they_were_asked_of_alone) {
  const auto plain = pairs();
  static_cast<void>(plain.with_resources(cpus(2)).named("other"));
  plain.count();
  EXPECT_EQ(profile_of(0), resource_profile{});
  EXPECT_EQ(plain.name(), "map");
}

TEST_F(compiled_jobs, operations_that_do_not_fit_together_fail_the_task) {
  // As a peer could send them: a source of numbers before a sink of strings.
  session_.range(0, 4, 1).count();
  auto numbers = *runner_->jobs.back();
  session_.parallelize<std::string>({"x"}, 1).count();
  const auto strings = *runner_->jobs.back();
  std::get<native_program>(numbers.stages[0].program).operations.back() =
      std::get<native_program>(strings.stages[0].program).operations.back();
  const auto end = runner_->run(std::make_shared<const job_spec>(numbers));
  EXPECT_EQ(end.failure.code, ec::task_failed);
  EXPECT_NE(end.failure.message.find("do not fit together"), std::string::npos) << end.failure.message;
}

} // namespace
