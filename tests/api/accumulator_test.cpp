// Accumulators as the author of a program sees them.

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <troupe/runtime/api/session.hpp>

#include "inline_runner.hpp"

namespace {

using troupe::accumulator;
using troupe::with;

std::int64_t half(const accumulator& odd, std::int64_t number) {
  if (number % 2 != 0) odd.add(1);
  return number / 2;
}

template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "nothing was thrown";
}

class accumulators : public testing::Test {
protected:
  std::shared_ptr<troupe::test::inline_runner> runner_ = std::make_shared<troupe::test::inline_runner>();
  troupe::session session_{runner_, {2, {}, {}, {}}};
};

TEST_F(accumulators, are_counted_by_tasks_and_read_by_the_program) {
  const auto odd = session_.accumulator("odd");
  EXPECT_EQ(odd.value(), 0);
  const auto halves = session_.range(0, 11, 3).map(with(odd), [](const auto& o, std::int64_t n) { return half(o, n); });
  EXPECT_EQ(halves.count(), 11u);
  EXPECT_EQ(odd.value(), 5);
  EXPECT_EQ(halves.count(), 11u);
  EXPECT_EQ(odd.value(), 10) << "the second job has computed them again";
  EXPECT_EQ(session_.last_job().counted, (std::vector<troupe::accumulated>{{"odd", 5}})) << "of that job";
}

TEST_F(accumulators, of_one_name_are_one_in_all_of_a_session) {
  const auto first = session_.accumulator("n");
  const auto second = session_.in_group("g").accumulator("n");
  const auto other = session_.accumulator("m");
  first.add(3);
  second.add(-1);
  EXPECT_EQ(session_.in_pool("p").accumulator("n").value(), 2);
  EXPECT_EQ(other.value(), 0);
  EXPECT_EQ(first.name(), "n");
}

TEST_F(accumulators, are_captures_and_arguments_of_named_tasks) {
  const auto odd = session_.accumulator("odd");
  troupe::job j{"halves"};
  const auto stage = j.stage("half").run(troupe::task<"test.half_and_count", half>, odd).arguments({1, 2, 3});
  EXPECT_EQ(session_.run(j, stage), (std::vector<std::int64_t>{0, 1, 1}));
  EXPECT_EQ(odd.value(), 2);
}

TEST_F(accumulators, count_what_tasks_had_counted_by_the_end_of_a_failed_job) {
  const auto seen = session_.accumulator("seen");
  EXPECT_NE(error_of([&] {
              session_.range(0, 4, 4)
                  .map(with(seen),
                       [](const auto& s, std::int64_t n) {
                         s.add(1);
                         if (n == 2) throw std::runtime_error("two");
                         return n;
                       })
                  .count();
            }).find("two"),
            std::string::npos);
  EXPECT_EQ(seen.value(), 2) << "the failed one is not counted";
}

TEST_F(accumulators, are_never_added_to_where_nobody_would_see_it) {
  const auto n = session_.accumulator("n");
  const auto on_a_thread = [](const auto& a, std::int64_t) {
    std::string said;
    std::thread{[&] { said = error_of([&] { a.add(1); }); }}.join();
    return said;
  };
  EXPECT_NE(session_.range(0, 1, 1).map(with(n), on_a_thread).collect().at(0).find("on a thread that a task has"),
            std::string::npos);
  const auto read = [](const auto& a, std::int64_t) { return error_of([&] { static_cast<void>(a.value()); }); };
  EXPECT_NE(session_.range(0, 1, 1).map(with(n), read).collect().at(0).find("not in a task"), std::string::npos);
  EXPECT_NE(error_of([] { accumulator{}.add(1); }).find("has no name"), std::string::npos);
  EXPECT_THROW(session_.accumulator(""), std::invalid_argument);
  EXPECT_THROW(session_.accumulator(std::string(troupe::max_accumulator_name + 1, 'n')), std::invalid_argument);
  EXPECT_EQ(session_.accumulator(std::string(troupe::max_accumulator_name, 'n')).value(), 0);
}

TEST_F(accumulators, of_one_task_have_a_limit) {
  const auto count_in = [](std::int64_t names) {
    for (std::int64_t i = 0; i < names; ++i) troupe::task_context::current().count(std::to_string(i), 1);
    return names;
  };
  const std::int64_t most{troupe::max_accumulators};
  EXPECT_EQ(session_.parallelize(std::vector{most}, 1).map(count_in).count(), 1u);
  EXPECT_NE(error_of([&] {
              session_.parallelize(std::vector{most + 1}, 1).map(count_in).count();
            }).find("more than 100 accumulators"),
            std::string::npos);
  const auto long_name = [](std::int64_t n) {
    troupe::task_context::current().count(std::string(troupe::max_accumulator_name + 1, 'n'), 1);
    return n;
  };
  EXPECT_NE(error_of([&] { session_.range(0, 1, 1).map(long_name).count(); }).find("201 bytes"), std::string::npos);
}

} // namespace
