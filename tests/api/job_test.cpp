#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include <troupe/runtime/api/resource_profile_builder.hpp>
#include <troupe/runtime/api/session.hpp>

#include "inline_runner.hpp"

namespace {

using troupe::job;
using troupe::task;

int effects = 0;

double scaled(const double& factor, int value) { return factor * value; }
std::size_t measure(const std::string& text) noexcept { return text.size(); }
int constant() { return 17; }
void touch(int by) { effects += by; }
std::string raw(troupe::task_context& context, std::string_view captures, std::string_view argument) {
  return std::string{captures} + std::string{argument} + std::to_string(context.partition);
}
int failing(int value) { return value < 2 ? value : throw std::out_of_range("two"); }

constexpr auto scaled_task = task<"test.scaled", scaled>;

class named_tasks : public testing::Test {
protected:
  std::shared_ptr<troupe::test::inline_runner> runner_ = std::make_shared<troupe::test::inline_runner>();
  troupe::session session_{runner_, {}};
};

TEST_F(named_tasks, arguments_and_captures_go_in_and_results_come_out_in_order) {
  job j{"scale"};
  const auto stage = j.stage("scale").run(scaled_task, 0.5).arguments({1, 2, 3});
  EXPECT_EQ(session_.run(j, stage), (std::vector<double>{0.5, 1, 1.5}));
  EXPECT_EQ(runner_->jobs.back()->name, "scale");
  EXPECT_EQ(runner_->jobs.back()->stages[0].tasks, 3u);
}

TEST_F(named_tasks, all_shapes_of_functions_work) {
  job j{"shapes"};
  const auto lengths = j.stage("measure").run(task<"test.measure", measure>).arguments({"a", "bcd"});
  EXPECT_EQ(session_.run(j, lengths), (std::vector<std::size_t>{1, 3}));
  job k{"constant"};
  EXPECT_EQ(session_.run(k, k.stage("constant").run(task<"test.constant", constant>).tasks(3)),
            (std::vector<int>{17, 17, 17}));
  job l{"raw"};
  EXPECT_EQ(session_.run(l, l.stage("raw").run(task<"test.raw", raw>, "c").arguments({"x", "y"})),
            (std::vector<std::string>{"cx0", "cy1"}));
  job m{"raw tasks"};
  EXPECT_EQ(session_.run(m, m.stage("raw").run(task<"test.raw", raw>).tasks(2)), (std::vector<std::string>{"0", "1"}));
}

TEST_F(named_tasks, jobs_belong_to_the_group_of_the_session_that_runs_them) {
  auto nightly = session_.in_group("nightly");
  job j{"grouped"};
  j.stage("touch").run(task<"test.touch", touch>).arguments({1});
  nightly.run(j);
  EXPECT_EQ(runner_->jobs.back()->group, "nightly");
  const auto numbers = nightly.range(0, 4);
  session_.run(j);
  EXPECT_EQ(runner_->jobs.back()->group, "");
  EXPECT_EQ(numbers.count(), 4u);
  EXPECT_EQ(runner_->jobs.back()->group, "nightly") << "a dataset stays with the session that made it";
  EXPECT_EQ(nightly.last_job().job, (troupe::job_id{3}));
  EXPECT_EQ(session_.last_job().job, (troupe::job_id{2}));
  EXPECT_EQ(session_.cancel_group("nightly"), 0u) << "all have ended";
  try {
    session_.cancel_group("weekly");
    FAIL() << "a group that nobody knows was cancelled";
  } catch (const troupe::job_error& e) {
    EXPECT_EQ(e.code(), troupe::ec::not_found);
  }
}

TEST_F(named_tasks, stages_follow_each_other_and_only_the_asked_one_keeps_results) {
  effects = 0;
  job j{"two"};
  const auto first = j.stage("first").run(task<"test.touch", touch>).arguments({1, 10});
  auto second = j.stage("second").run(task<"test.constant", constant>);
  second.after(first);
  EXPECT_EQ(session_.run(j, second), std::vector<int>{17});
  EXPECT_EQ(effects, 11);
  const auto& spec = *runner_->jobs.back();
  EXPECT_EQ(spec.stages[1].dependencies, (std::vector<troupe::stage_dependency>{{0, troupe::dependency_kind::all}}));
  EXPECT_FALSE(spec.stages[0].keep_results);
  EXPECT_TRUE(spec.stages[1].keep_results);
  session_.run(j);
  EXPECT_EQ(effects, 22);
  EXPECT_FALSE(runner_->jobs.back()->stages[1].keep_results);
}

TEST_F(named_tasks, results_of_another_stage_or_job_are_refused) {
  job j{"mine"}, other{"other"};
  const auto first = j.stage("first").run(task<"test.constant", constant>);
  const auto last = j.stage("last").run(task<"test.constant", constant>);
  const auto foreign = other.stage("last").run(task<"test.constant", constant>);
  EXPECT_THROW(session_.run(j, first), std::invalid_argument);
  EXPECT_THROW(session_.run(j, foreign), std::invalid_argument);
  EXPECT_EQ(session_.run(j, last).size(), 1u);
}

TEST_F(named_tasks, the_last_stage_may_have_no_results) {
  job j{"two"};
  const auto first = j.stage("first").run(task<"test.touch", touch>).arguments({1, 2});
  const auto last = j.stage("last").run(task<"test.touch", touch>).arguments({3});
  EXPECT_THROW(session_.run(j, first), std::invalid_argument);
  session_.run(j, last);
  EXPECT_EQ(session_.last_job().stages.size(), 2u);
}

TEST_F(named_tasks, what_says_more_of_a_stage_gives_the_stage_itself_and_no_reference_to_what_is_gone) {
  job j{"gang"};
  const auto stage = j.stage("together").run(task<"test.constant", constant>).tasks(2);
  static_assert(!std::is_reference_v<decltype(stage.barrier())>);
  stage.barrier(); // a constant names the stage as well
  session_.run(j, stage);
  EXPECT_TRUE(runner_->jobs.back()->stages[0].barrier);
  EXPECT_EQ(runner_->jobs.back()->stages[0].tasks, 2u);
}

TEST_F(named_tasks, equal_profiles_of_stages_are_one) {
  const auto two = troupe::resource_profile_builder{}
                       .require(troupe::executor_resource_requests{}.cores(4))
                       .require(troupe::task_resource_requests{}.cpus(2))
                       .build();
  job j{"profiles"};
  j.stage("a").run(task<"test.constant", constant>).profile(two);
  j.stage("b").run(task<"test.constant", constant>);
  j.stage("c").run(task<"test.constant", constant>).profile(two);
  session_.run(j);
  const auto& spec = *runner_->jobs.back();
  EXPECT_EQ(spec.profiles, (std::vector{troupe::resource_profile{}, two}));
  EXPECT_EQ(spec.stages[0].profile, 1u);
  EXPECT_EQ(spec.stages[1].profile, 0u);
  EXPECT_EQ(spec.stages[2].profile, 1u);
}

TEST_F(named_tasks, stages_may_be_gangs) {
  troupe::session_options waiting;
  waiting.jobs.sync_timeout = std::chrono::seconds{30};
  troupe::session session{runner_, waiting};
  job j{"gang"};
  j.stage("alone").run(task<"test.constant", constant>);
  j.stage("together").run(task<"test.constant", constant>).tasks(3).barrier();
  session.run(j);
  const auto& stages = runner_->jobs.back()->stages;
  EXPECT_FALSE(stages[0].barrier);
  EXPECT_EQ(stages[0].sync_timeout, troupe::never);
  EXPECT_TRUE(stages[1].barrier);
  EXPECT_EQ(stages[1].sync_timeout, std::chrono::seconds{30});
}

TEST_F(named_tasks, are_found_by_their_name) {
  const auto index = troupe::function_table::instance().find_key("test.scaled");
  ASSERT_TRUE(index);
  EXPECT_EQ(*index, scaled_task.index());
  EXPECT_TRUE(troupe::function_table::instance().check());
}

TEST_F(named_tasks, failures_and_refusals_are_exceptions) {
  job j{"fails"};
  const auto stage = j.stage("fails").run(task<"test.failing", failing>).arguments({0, 1, 2});
  try {
    static_cast<void>(session_.run(j, stage));
    FAIL() << "no exception";
  } catch (const troupe::job_error& e) {
    EXPECT_EQ(e.code(), troupe::ec::task_failed);
    EXPECT_EQ(session_.last_job().state, troupe::job_state::failed);
  }
  job empty{"empty"};
  EXPECT_THROW(session_.run(empty), troupe::job_error) << "validation refuses it";
}

TEST_F(named_tasks, the_session_tells_what_ran_where) {
  EXPECT_TRUE(session_.last_placements().empty());
  EXPECT_TRUE(session_.last_job().stages.empty());
  job j{"where"};
  session_.run(j, j.stage("constants").run(task<"test.constant", constant>).tasks(2));
  ASSERT_EQ(session_.last_job().stages.size(), 1u);
  EXPECT_EQ(session_.last_job().stages[0].name, "constants");
  const auto placements = session_.last_placements();
  ASSERT_EQ(placements.size(), 2u);
  EXPECT_EQ(placements[1].partition, 1u);
  EXPECT_EQ(placements[1].stage, session_.last_job().stages[0].stage);
}

} // namespace
