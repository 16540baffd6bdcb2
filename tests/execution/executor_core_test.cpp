// What an executor accepts and refuses, by effects: its ledger is the authority, whatever the driver believed.

#include <troupe/runtime/execution/executor_core.hpp>

#include <stdexcept>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/tests/support/builders.hpp>

namespace troupe {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using any_program = std::variant<native_program, command_program>;

class executor_core_test : public ::testing::Test {
protected:
  executor_info info = testing::executor_builder{}.cores(2).gpus(1).build("abc").make(executor_id{3}, 77);
  executor_core core{info};
  std::uint64_t sequence = 0;
  std::shared_ptr<const resource_profile> on_half_a_gpu =
      std::make_shared<const resource_profile>(testing::make_profile({{"gpu", 1}}, {{"gpu", "0.5"}}));

  executor_orders next() {
    executor_orders o;
    o.epoch = 77;
    o.sequence = ++sequence;
    return o;
  }
  effects::execution_list apply(executor_orders o) {
    effects::execution_list out;
    core.on_orders(std::make_shared<const executor_orders>(std::move(o)), out);
    return out;
  }
  lease_grant half_a_gpu(std::uint64_t lease, const std::string& address = "0") const {
    lease_grant g;
    g.lease = lease_id{lease};
    g.profile = on_half_a_gpu;
    g.holding.cpus = *parse_share("1");
    g.holding.resources["gpu"] = {{address, *parse_share("0.5")}};
    return g;
  }
  effects::execution_list grant(const lease_grant& g) {
    auto o = next();
    o.grants.push_back(g);
    return apply(std::move(o));
  }
  effects::execution_list install(std::uint64_t stage, any_program p) {
    auto o = next();
    o.installs.emplace_back();
    o.installs[0].stage = stage_id{stage};
    o.installs[0].program = std::make_shared<const any_program>(std::move(p));
    return apply(std::move(o));
  }
  effects::execution_list run(std::uint64_t stage, std::uint64_t lease, std::uint32_t count) {
    auto o = next();
    o.batches.emplace_back();
    o.batches[0].stage = stage_id{stage};
    o.batches[0].lease = lease_id{lease};
    o.batches[0].count = count;
    return apply(std::move(o));
  }
  effects::execution_list revoke(std::uint64_t lease) {
    auto o = next();
    o.revoked.push_back(lease_id{lease});
    return apply(std::move(o));
  }
  effects::execution_list ended(std::uint64_t lease, std::uint32_t count) {
    outcome_batch outcomes;
    outcomes.lease = lease_id{lease};
    outcomes.count = count;
    effects::execution_list out;
    core.on_outcomes(outcomes, out);
    return out;
  }
  static any_program native(std::string build) {
    native_program p;
    p.build_id = std::move(build);
    return p;
  }
  /// The reason of the one refusal that is all of `out`.
  static std::string refused(const effects::execution_list& out) {
    if (out.size() != 1) return "not one effect";
    const auto* r = std::get_if<effects::send_refusal>(&out[0]);
    return r ? r->what.reason : "no refusal";
  }
  template <class Effect>
  static bool is(const effects::execution_list& out) {
    return out.size() == 1 && std::holds_alternative<Effect>(out[0]);
  }
};

TEST_F(executor_core_test, runs_what_flows_through_a_valid_lease) {
  EXPECT_TRUE(is<effects::open_lease>(grant(half_a_gpu(1))));
  EXPECT_TRUE(is<effects::install_stage>(install(5, native("abc"))));
  EXPECT_TRUE(is<effects::run_batch>(run(5, 1, 3)));
  EXPECT_THAT(ended(1, 3), IsEmpty());
  EXPECT_TRUE(is<effects::close_lease>(revoke(1)));
  auto o = next();
  o.removed_stages.push_back(stage_id{5});
  EXPECT_TRUE(is<effects::remove_stage>(apply(std::move(o))));
  EXPECT_TRUE(core.is_idle());
  EXPECT_EQ(core.orders_seen(), sequence);
}

TEST_F(executor_core_test, tells_a_stage_that_took_too_long_from_one_that_is_over) {
  for (const bool is_late : {false, true}) {
    install(5, native("abc"));
    auto o = next();
    o.removed_stages = {stage_id{5}};
    o.late_stages = {stage_id{is_late ? 5u : 6u}};
    const auto removed = apply(std::move(o));
    ASSERT_TRUE(is<effects::remove_stage>(removed));
    EXPECT_EQ(std::get<effects::remove_stage>(removed.front()).is_late, is_late);
  }
}

TEST_F(executor_core_test, two_halves_share_an_address_and_no_third_one) {
  EXPECT_TRUE(is<effects::open_lease>(grant(half_a_gpu(1))));
  EXPECT_TRUE(is<effects::open_lease>(grant(half_a_gpu(2))));
  EXPECT_THAT(refused(grant(half_a_gpu(3))), ::testing::Not(IsEmpty()));
  EXPECT_TRUE(is<effects::close_lease>(revoke(1)));
  EXPECT_TRUE(is<effects::open_lease>(grant(half_a_gpu(3))));
}

TEST_F(executor_core_test, refuses_grants_that_are_not_its_to_give) {
  EXPECT_THAT(refused(grant(half_a_gpu(1, "7"))), HasSubstr("7")) << "an address that it has not";
  auto two_gpus = half_a_gpu(1);
  two_gpus.profile = std::make_shared<const resource_profile>(testing::make_profile({{"gpu", 2}}, {{"gpu", "1"}}));
  EXPECT_THAT(refused(grant(two_gpus)), HasSubstr("does not satisfy"));
  auto too_much = half_a_gpu(1);
  too_much.holding.resources["gpu"][0].amount = *parse_share("1");
  EXPECT_THAT(refused(grant(too_much)), HasSubstr("not what one task of the profile takes"));
  auto nothing = half_a_gpu(1);
  nothing.profile = nullptr;
  EXPECT_THAT(refused(grant(nothing)), HasSubstr("names no profile"));
  grant(half_a_gpu(1));
  EXPECT_THAT(refused(grant(half_a_gpu(1))), HasSubstr("open already"));
}

TEST_F(executor_core_test, refuses_tasks_outside_a_valid_lease_and_names_each_of_them) {
  install(5, native("abc"));
  const auto out = run(5, 1, 2);
  EXPECT_THAT(refused(out), HasSubstr("lease is not open"));
  EXPECT_THAT(std::get<effects::send_refusal>(out[0]).what.partitions, ::testing::ElementsAre(0u, 1u));
  grant(half_a_gpu(1));
  EXPECT_THAT(refused(run(6, 1, 1)), HasSubstr("stage is not installed"));
}

TEST_F(executor_core_test, refuses_native_stages_of_another_build) {
  grant(half_a_gpu(1));
  EXPECT_THAT(install(5, native("xyz")), IsEmpty());
  const auto out = run(5, 1, 1);
  EXPECT_THAT(refused(out), HasSubstr("needs build xyz"));
  EXPECT_TRUE(std::get<effects::send_refusal>(out[0]).what.build_mismatch);
  EXPECT_TRUE(is<effects::install_stage>(install(6, command_program{})));
  EXPECT_TRUE(is<effects::run_batch>(run(6, 1, 1)));
}

TEST_F(executor_core_test, of_the_plain_program_runs_commands_only) {
  core = executor_core{testing::executor_builder{}.cores(2).gpus(1).commands_only().make(executor_id{3}, 77)};
  grant(half_a_gpu(1));
  install(5, native("abc"));
  EXPECT_THAT(refused(run(5, 1, 1)), HasSubstr("runs commands only"));
  EXPECT_TRUE(is<effects::install_stage>(install(6, command_program{})));
}

TEST_F(executor_core_test, a_lease_with_work_closes_when_that_has_ended) {
  grant(half_a_gpu(1));
  install(5, native("abc"));
  run(5, 1, 2);
  EXPECT_THAT(revoke(1), IsEmpty());
  EXPECT_THAT(refused(run(5, 1, 1)), HasSubstr("lease is not open")) << "it takes no more";
  EXPECT_THAT(ended(1, 1), IsEmpty());
  EXPECT_THAT(revoke(1), IsEmpty()) << "said twice";
  EXPECT_TRUE(is<effects::close_lease>(ended(1, 1)));
  const auto before = core.ignored();
  EXPECT_THAT(ended(1, 1), IsEmpty());
  EXPECT_EQ(core.ignored(), before + 1) << "of a lease that is closed";
}

TEST_F(executor_core_test, passes_on_who_is_waited_for_no_longer) {
  auto o = next();
  o.gone = {executor_id{8}, executor_id{9}};
  EXPECT_FALSE(o.empty());
  const auto out = apply(std::move(o));
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(std::get<effects::forget_executor>(out[1]).executor, executor_id{9});
}

TEST_F(executor_core_test, passes_on_broadcasts_to_drop) {
  auto o = next();
  o.withdrawn = {{7, 1}, {7, 2}};
  EXPECT_FALSE(o.empty());
  const auto out = apply(std::move(o));
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(std::get<effects::drop_broadcast>(out[1]).broadcast, (broadcast_id{7, 2}));
}

TEST_F(executor_core_test, passes_on_kept_partitions_to_drop) {
  auto o = next();
  o.surplus = {{cache_id{7}, 1}};
  EXPECT_FALSE(o.empty());
  EXPECT_EQ(apply(std::move(o)), (effects::execution_list{effects::drop_copy{{cache_id{7}, 1}}}));
}

TEST_F(executor_core_test, passes_on_jobs_that_are_forgotten) {
  auto o = next();
  o.forgotten_jobs = {job_id{7}};
  EXPECT_FALSE(o.empty());
  EXPECT_EQ(apply(std::move(o)), (effects::execution_list{effects::drop_attempts{{7}}}));
}

TEST_F(executor_core_test, passes_on_that_an_open_lease_is_recalled) {
  const auto recall = [&](std::uint64_t lease) {
    auto o = next();
    o.recalled.push_back(lease_id{lease});
    return apply(std::move(o));
  };
  grant(half_a_gpu(1));
  install(5, native("abc"));
  run(5, 1, 2);
  const auto out = recall(1);
  ASSERT_TRUE(is<effects::recall_lease>(out));
  EXPECT_EQ(std::get<effects::recall_lease>(out[0]).lease, lease_id{1});
  EXPECT_THAT(recall(2), IsEmpty()) << "it is not open";
  EXPECT_THAT(ended(1, 2), IsEmpty());
  EXPECT_TRUE(is<effects::close_lease>(revoke(1)));
}

TEST_F(executor_core_test, passes_on_that_tasks_of_a_gang_go_on_where_their_stage_is_known) {
  install(5, native("abc"));
  auto o = next();
  o.barriers = {{stage_id{6}, 0, 0, {0}, nullptr, ""}, {stage_id{5}, 1, 2, {0, 3}, nullptr, "why"}};
  o.stop = true;
  EXPECT_EQ(apply(o), (effects::execution_list{effects::release_barrier{o.barriers[1]}, effects::stop_executor{}}));
}

TEST_F(executor_core_test, publishes_what_it_has_the_right_to_unless_the_job_is_over) {
  install(5, native("abc"));
  auto o = next();
  o.rights = {{stage_id{6}, 0, 0, {"over"}}, {stage_id{5}, 3, 1, {"out"}}};
  EXPECT_EQ(apply(o), (effects::execution_list{effects::publish_attempt{o.rights[1]}}));
}

TEST_F(executor_core_test, more_ends_than_attempts_are_a_defect) {
  grant(half_a_gpu(1));
  install(5, native("abc"));
  run(5, 1, 2);
  EXPECT_THROW(ended(1, 3), std::logic_error);
}

TEST_F(executor_core_test, ignores_orders_that_it_has_seen_and_those_for_another_incarnation) {
  auto o = next();
  o.grants.push_back(half_a_gpu(1));
  const auto same = o;
  EXPECT_THAT(apply(std::move(o)), SizeIs(1));
  EXPECT_THAT(apply(same), IsEmpty());
  auto foreign = next();
  foreign.epoch = 78;
  foreign.stop = true;
  EXPECT_THAT(apply(std::move(foreign)), IsEmpty());
  EXPECT_EQ(core.ignored(), 2u);
  --sequence; // that one was not for this executor
  auto last = next();
  last.stop = true;
  EXPECT_TRUE(is<effects::stop_executor>(apply(std::move(last))));
}

TEST_F(executor_core_test, stops_at_a_gap) {
  grant(half_a_gpu(1));
  static_cast<void>(next()); // gets lost
  EXPECT_THAT(revoke(1), IsEmpty());
  EXPECT_EQ(core.orders_seen(), 1u) << "its heartbeats say what it lacks";
  EXPECT_EQ(core.ignored(), 1u);
}

} // namespace
} // namespace troupe
