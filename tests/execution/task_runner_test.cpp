#include <atomic>
#include <fstream>

#include <pthread.h>

#include <troupe/runtime/execution/native_plan.hpp>
#include <troupe/runtime/scheduling/bucket_sizes.hpp>
#include <troupe/tests/support/blocks.hpp>

#include "runner_fixture.hpp"

namespace troupe::testing_execution {
namespace {

std::string echo(task_context&, std::string_view captures, std::string_view argument) {
  return std::string{captures} + "/" + std::string{argument};
}

std::string describe(task_context& context, std::string_view, std::string_view) {
  EXPECT_EQ(&task_context::current(), &context);
  std::string text{context.stage_name};
  text += " " + std::to_string(context.partition) + "." + std::to_string(context.attempt) + " of " +
          std::to_string(context.tasks) + " on " + std::to_string(context.executor.value);
  for (const auto& a : context.addresses("gpu")) text += " " + a.address + "@" + std::to_string(a.ordinal);
  text += context.addresses("fpga").empty() ? " none" : " some";
  return text;
}

std::string thread_name(task_context&, std::string_view, std::string_view) {
  char name[16] = {};
  ::pthread_getname_np(::pthread_self(), name, sizeof name);
  return name;
}

std::string throws_exception(task_context&, std::string_view, std::string_view) {
  throw std::runtime_error("the reason: " + std::string(10'000, 'r'));
}
std::string throws_number(task_context&, std::string_view, std::string_view) { throw 42; }
std::string throws_fetch_failure(task_context&, std::string_view, std::string_view) {
  throw fetch_failure("gone", {11}, 12, 13, {14});
}
std::string fails_odd(task_context& context, std::string_view, std::string_view) {
  if (context.partition % 2 == 1) throw std::runtime_error("odd " + std::to_string(context.partition));
  return "even";
}
std::string large(task_context&, std::string_view, std::string_view) { return std::string(5000, 'L'); }
std::string map_output(task_context& context, std::string_view, std::string_view) {
  context.set_map_output({"zero", "", "two"});
  return {};
}
std::string many_records(task_context& context, std::string_view, std::string_view) {
  auto& output = context.map_output();
  for (int i = 0; i < 3 << 10; ++i) {
    output.page(1).append(std::string(1 << 10, 'm'));
    output.wrote(1);
  }
  return {};
}
std::string map_output_of_two(task_context& context, std::string_view, std::string_view) {
  context.set_map_output({"zero", "one"});
  return {};
}
std::string burn(task_context&, std::string_view, std::string_view) {
  timespec t{};
  do {
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  } while (t.tv_sec == 0 && t.tv_nsec < 20'000'000);
  return {};
}

/// Numbers from 0 below the argument's length; doubled; summed up.
struct sum_sink : sink<int>, terminal_sink {
  void push(int&& record) override { sum += record; }
  void finish() override { finished = true; }
  std::string take_result() override { return finished ? std::to_string(sum) : "not finished"; }
  int sum = 0;
  bool finished = false;
};
std::unique_ptr<terminal_sink> make_sum(task_context&, std::string_view) { return std::make_unique<sum_sink>(); }

struct scale_sink : sink<int> {
  scale_sink(int by, sink<int>& to) : factor(by), next(to) {}
  void push(int&& record) override { next.push(record * factor); }
  void finish() override { next.finish(); }
  int factor;
  sink<int>& next;
};
std::unique_ptr<erased_sink> make_scale(task_context&, std::string_view captures, erased_sink& out) {
  return std::make_unique<scale_sink>(std::stoi(std::string{captures}), dynamic_cast<sink<int>&>(out));
}
void numbers(task_context&, std::string_view, std::string_view argument, erased_sink& out) {
  for (int i = 0; i < static_cast<int>(argument.size()); ++i) dynamic_cast<sink<int>&>(out).push(int{i});
}

std::string_view value_of(const outcome_batch& batch, std::uint32_t i) {
  const auto entry = decode_result_entry(batch.results[i]);
  return entry ? entry->value : std::string_view{"<malformed>"};
}

TEST_F(runner_test, a_task_gets_captures_and_its_own_argument) {
  auto& r = start();
  r.open_lease(grant(1));
  r.install(native_stage<task<&echo>>(1, 3, 0, "captured"));
  auto batch = range(1, 1, 0, 3);
  auto arguments = std::make_shared<packed_column>();
  for (const auto* text : {"before", "a", "b", "c"}) arguments->push_back(text);
  batch->arguments = arguments;
  batch->argument_offset = 1;
  r.run(batch);
  ASSERT_TRUE(log.wait_for(3));
  std::vector<std::string> values;
  for (const auto& b : log.batches()) {
    for (std::uint32_t i = 0; i < b->count; ++i) values.emplace_back(value_of(*b, i));
  }
  EXPECT_EQ(values, (std::vector<std::string>{"captured/a", "captured/b", "captured/c"}));
}

TEST_F(runner_test, arguments_by_partition_are_those_of_the_stage) {
  auto& r = start();
  r.open_lease(grant(1));
  r.install(native_stage<task<&echo>>(1, 10));
  auto batch = range(1, 1, 0, 2);
  batch->partitions = {7, 5};
  batch->attempts = {0, 3};
  auto arguments = std::make_shared<packed_column>();
  for (int i = 0; i < 10; ++i) arguments->push_back("arg" + std::to_string(i));
  batch->arguments = arguments;
  batch->by_partition = true;
  r.run(batch);
  ASSERT_TRUE(log.wait_for(2));
  std::string seen;
  for (const auto& b : log.batches()) {
    for (std::uint32_t i = 0; i < b->count; ++i)
      seen +=
          std::to_string(b->partition(i)) + "." + std::to_string(b->attempt(i)) + std::string{value_of(*b, i)} + " ";
  }
  EXPECT_EQ(seen, "7.0/arg7 5.3/arg5 ");
}

TEST_F(runner_test, a_missing_argument_is_a_failure_of_that_task_alone) {
  auto& r = start();
  r.open_lease(grant(1));
  r.install(native_stage<task<&echo>>(1, 3));
  auto batch = range(1, 1, 0, 2);
  auto arguments = std::make_shared<packed_column>();
  arguments->push_back("only");
  batch->arguments = arguments;
  r.run(batch);
  ASSERT_TRUE(log.wait_for(2));
  const auto last = log.batches().back();
  EXPECT_EQ(last->status(last->count - 1), task_status::failed);
  EXPECT_NE(last->failures.back().message.find("no argument for partition 1"), std::string::npos);
}

TEST_F(runner_test, the_context_says_who_and_what_the_task_is) {
  auto options = base_options();
  options.ordinals["gpu"] = {"GPU-a", "GPU-b", "GPU-c"};
  auto& r = start(options);
  auto g = grant(1);
  g.holding.resources["gpu"] = {{"GPU-c", share::whole(1)}, {"unknown", share::whole(1)}};
  g.holding.resources["fpga"] = {{"", share::whole(2)}};
  r.open_lease(g);
  r.install(native_stage<task<&describe>>(4, 9));
  auto batch = range(4, 1, 8, 1);
  batch->attempts = {2};
  r.run(batch);
  EXPECT_EQ(value_of(*only_outcome(), 0), "stage-4 8.2 of 9 on 7 GPU-c@2 unknown@-1 none");
  EXPECT_THROW(task_context::current(), std::logic_error);
}

TEST_F(runner_test, threads_carry_the_name_of_their_lease) {
  auto& r = start();
  r.open_lease(grant(12));
  r.install(native_stage<task<&thread_name>>(1, 1));
  r.run(range(1, 12, 0, 1));
  EXPECT_EQ(value_of(*only_outcome(), 0), "lease-12");
}

TEST_F(runner_test, a_chain_of_sinks_ends_in_the_terminal_result) {
  auto& r = start();
  r.open_lease(grant(1));
  auto stage = native_stage<registered_function<key<&numbers>, &numbers>>(1, 1);
  native_program program = std::get<native_program>(*stage.program);
  program.operations.push_back({registered_function<key<&make_scale>, &make_scale>::index(), "2"});
  program.operations.push_back({registered_function<key<&make_scale>, &make_scale>::index(), "3"});
  program.operations.push_back({registered_function<key<&make_sum>, &make_sum>::index(), ""});
  stage.program = std::make_shared<const std::variant<native_program, command_program>>(program);
  r.install(stage);
  auto batch = range(1, 1, 0, 1);
  auto arguments = std::make_shared<packed_column>();
  arguments->push_back("12345");
  batch->arguments = arguments;
  r.run(batch);
  EXPECT_EQ(value_of(*only_outcome(), 0), "60");
}

TEST_F(runner_test, a_program_that_cannot_run_here_fails_its_tasks_with_the_reason) {
  auto& r = start();
  r.open_lease(grant(1));
  auto stage = native_stage<task<&echo>>(1, 1);
  auto program = std::get<native_program>(*stage.program);
  program.operations[0].function = 4'000'000'000u;
  stage.program = std::make_shared<const std::variant<native_program, command_program>>(program);
  r.install(stage);
  r.run(range(1, 1, 0, 1));
  const auto outcome = only_outcome();
  ASSERT_EQ(outcome->status(0), task_status::failed);
  EXPECT_NE(outcome->failures[0].message.find("function 4000000000"), std::string::npos);
}

TEST(native_plan, refuses_operations_in_the_wrong_place) {
  const auto whole = task<&echo>::index();
  const auto source = registered_function<key<&numbers>, &numbers>::index();
  const auto narrow = registered_function<key<&make_scale>, &make_scale>::index();
  const auto end = registered_function<key<&make_sum>, &make_sum>::index();
  const std::vector<std::vector<std::uint32_t>> bad{
      {}, {source}, {end}, {whole, whole}, {narrow, end}, {source, narrow}, {source, end, end}};
  for (const auto& functions : bad) {
    native_program program;
    for (const auto f : functions) program.operations.push_back({f, ""});
    EXPECT_FALSE(native_plan::make(program, function_table::instance())) << functions.size();
  }
  EXPECT_TRUE(native_plan::make({"", {{source, ""}, {end, ""}}}, function_table::instance()));
}

TEST_F(runner_test, an_exception_is_a_failure_with_its_bounded_words_and_the_tail_of_stderr) {
  auto options = base_options();
  options.stderr_file = scratch.file("stderr.txt");
  std::ofstream{options.stderr_file} << "last words\n";
  auto& r = start(options);
  r.open_lease(grant(1));
  r.install(native_stage<task<&throws_exception>>(1, 1));
  r.run(range(1, 1, 0, 1));
  const auto outcome = only_outcome();
  ASSERT_EQ(outcome->statuses, std::vector<task_status>{task_status::failed});
  const auto& failure = outcome->failures.at(0);
  EXPECT_TRUE(failure.message.starts_with("the reason: rrr"));
  EXPECT_LE(failure.message.size(), 4096u);
  EXPECT_EQ(failure.stderr_text, "last words\n");
}

TEST_F(runner_test, anything_thrown_is_a_failure) {
  auto& r = start();
  r.open_lease(grant(1));
  r.install(native_stage<task<&throws_number>>(1, 1));
  r.run(range(1, 1, 0, 1));
  EXPECT_EQ(only_outcome()->status(0), task_status::failed);
}

TEST_F(runner_test, a_fetch_failure_names_the_map_output_to_blame) {
  auto& r = start();
  r.open_lease(grant(1));
  r.install(native_stage<task<&throws_fetch_failure>>(1, 1));
  r.run(range(1, 1, 0, 1));
  const auto outcome = only_outcome();
  ASSERT_EQ(outcome->status(0), task_status::fetch_failed);
  const auto& failure = outcome->failures.at(0);
  EXPECT_EQ(failure.shuffle, stage_id{11});
  EXPECT_EQ(failure.map_partition, 12u);
  EXPECT_EQ(failure.map_attempt, 13u);
  EXPECT_EQ(failure.map_executor, executor_id{14});
}

/// Gives what it was asked for as the page.
class told_partitions : public shuffle_source {
public:
  void read(const shuffle_input&, std::uint32_t, const std::function<void(std::string_view)>&) override {}
  void read_partition(const partition_place& what, std::uint32_t,
                      const std::function<void(std::string_view)>& each) override {
    each(std::to_string(what.from.executor.value) + ": " + to_string(what.key()));
  }
  void forget(executor_id) override {}
};

std::string reads_partition(task_context& context, std::string_view, std::string_view) {
  std::string all;
  context.read_partition(0, [&](std::string_view page) { all += page; });
  return all;
}

TEST_F(runner_test, a_task_reads_the_partition_of_its_own_number) {
  told_partitions partitions;
  auto options = base_options();
  options.shuffles = &partitions;
  auto& r = start(options);
  r.open_lease(grant(1));
  r.install(native_stage<task<&reads_partition>>(1, 10));
  auto batch = range(1, 1, 4, 2);
  batch->inputs = {{stage_id{9},
                    cache_id{5},
                    {{executor_id{7}, 0, "", 0}, {executor_id{8}, 0, "", 0}},
                    {1, 0},
                    {0, partition_inputs::kept}}};
  r.run(batch);
  ASSERT_TRUE(log.wait_for(2));
  std::vector<std::string> read;
  for (const auto& outcome : log.batches())
    for (std::uint32_t i = 0; i < outcome->count; ++i) read.emplace_back(value_of(*outcome, i));
  EXPECT_EQ(read, (std::vector<std::string>{"8: stage 9 partition 4 attempt 0", "7: kept dataset 5 partition 5"}));
}

TEST_F(runner_test, a_batch_that_does_not_say_where_inputs_lie_fails_its_tasks) {
  told_partitions partitions;
  auto options = base_options();
  options.shuffles = &partitions;
  auto& r = start(options);
  r.open_lease(grant(1));
  r.install(native_stage<task<&reads_partition>>(1, 10));
  for (const auto& inputs : std::vector<std::vector<partition_inputs>>{{},
                                                                       {{stage_id{9}, {}, {{}}, {}, {}}},
                                                                       {{stage_id{9}, {}, {{}}, {0}, {}}},
                                                                       {{stage_id{9}, {}, {}, {0}, {0}}}}) {
    auto batch = range(1, 1, 0, 1);
    batch->inputs = inputs;
    r.run(batch);
  }
  ASSERT_TRUE(log.wait_for(4));
  for (const auto& outcome : log.batches())
    for (std::uint32_t i = 0; i < outcome->count; ++i) EXPECT_EQ(outcome->status(i), task_status::failed);
}

TEST_F(runner_test, every_task_of_a_mixed_batch_has_its_own_outcome) {
  auto& r = start();
  r.open_lease(grant(1));
  r.install(native_stage<task<&fails_odd>>(1, 1000));
  r.run(range(1, 1, 0, 1000));
  ASSERT_TRUE(log.wait_for(1000));
  std::vector<int> seen(1000);
  for (const auto& b : log.batches()) {
    std::size_t failure = 0;
    ASSERT_EQ(b->results.size(), b->count);
    for (std::uint32_t i = 0; i < b->count; ++i) {
      const auto p = b->partition(i);
      ++seen[p];
      if (p % 2 == 0) {
        EXPECT_EQ(value_of(*b, i), "even");
      } else {
        ASSERT_EQ(b->failures.at(failure).index, i);
        EXPECT_EQ(b->failures[failure++].message, "odd " + std::to_string(p));
      }
    }
  }
  EXPECT_EQ(seen, std::vector<int>(1000, 1));
}

TEST_F(runner_test, large_results_become_blocks) {
  auto options = base_options();
  options.max_inline_result = 4999;
  auto& r = start(options);
  r.open_lease(grant(1));
  r.install(native_stage<task<&large>>(3, 1));
  r.run(range(3, 1, 0, 1));
  const auto outcome = only_outcome();
  const auto entry = decode_result_entry(outcome->results[0]);
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->kind, result_kind::block);
  EXPECT_EQ(entry->bytes, 5000u);
  EXPECT_EQ(outcome->output_bytes, 5000u);
  EXPECT_EQ(testing::text_of(blocks.get(output_key({3}, 0, 0), 0)), std::string(5000, 'L'));
}

TEST_F(runner_test, map_outputs_stay_in_the_block_store) {
  auto& r = start();
  r.open_lease(grant(1));
  r.install(native_stage<task<&map_output>>(3, 1, 3));
  r.run(range(3, 1, 0, 1));
  const auto outcome = only_outcome();
  const auto entry = decode_result_entry(outcome->results[0]);
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->kind, result_kind::map_output);
  EXPECT_EQ(entry->bytes, testing::stored(4) + testing::stored(3));
  const auto sizes = bucket_sizes::parse(entry->buckets, 3);
  ASSERT_TRUE(sizes);
  EXPECT_TRUE(sizes->may_hold(0));
  EXPECT_FALSE(sizes->may_hold(1));
  EXPECT_EQ(testing::text_of(blocks.get(output_key({3}, 0, 0), 2)), "two");
}

TEST_F(runner_test, map_outputs_beyond_the_memory_of_their_task_are_spilled) {
  block_store roomy{{{scratch.path().string()}, 64 << 20}};
  const auto run_with = [&](memory_split memory, page_compression how) {
    auto options = base_options();
    options.blocks = &roomy;
    options.memory = memory;
    options.compression = how;
    auto& r = start(options);
    r.open_lease(grant(1));
    r.install(native_stage<task<&many_records>>(3, 1, 3));
    const auto batches = log.batches().size() + 1;
    r.run(range(3, 1, 0, 1));
    EXPECT_TRUE(log.wait_for(static_cast<std::uint32_t>(batches)));
    EXPECT_EQ(log.batches().back()->status(0), task_status::succeeded);
    EXPECT_TRUE(testing::text_of(roomy.get(output_key({3}, 0, 0), 1)) == std::string(3 << 20, 'm'));
    const auto in_memory = roomy.bytes_in_memory();
    roomy.remove(stage_id{3});
    runner.reset();
    return in_memory;
  };
  EXPECT_GT(run_with({}, {}), 3u << 20);
  EXPECT_EQ(run_with({{}, {}}, {}), 0u) << "it went to a file, since a mebibyte is all that it had";
  EXPECT_GT(run_with({{}, {}}, {page_codec::lz4, 1}), 0u) << "compressed it fits";
}

TEST_F(runner_test, a_map_task_hands_over_one_output_of_the_right_number_of_buckets) {
  auto& r = start();
  r.open_lease(grant(1));
  r.install(native_stage<task<&map_output_of_two>>(3, 1, 3));
  r.install(native_stage<task<&echo>>(4, 1, 3));
  r.run(range(3, 1, 0, 1));
  r.run(range(4, 1, 0, 1));
  ASSERT_TRUE(log.wait_for(2));
  for (const auto& b : log.batches()) EXPECT_EQ(b->status(0), task_status::failed);
  EXPECT_NE(log.batches()[0]->failures[0].message.find("2 buckets"), std::string::npos);
  EXPECT_EQ(blocks.bytes(), 0u);
}

TEST_F(runner_test, outcomes_carry_wall_and_cpu_time_and_peak_memory) {
  auto& r = start();
  r.open_lease(grant(1));
  r.install(native_stage<task<&burn>>(1, 1));
  r.run(range(1, 1, 0, 1));
  const auto outcome = only_outcome();
  EXPECT_GE(outcome->run_nanoseconds, 19'000'000u);
  EXPECT_GE(outcome->cpu_nanoseconds, 19'000'000u);
  EXPECT_GT(outcome->peak_memory, 1'000'000u);
}

} // namespace
} // namespace troupe::testing_execution
