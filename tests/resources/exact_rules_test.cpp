#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/runtime/api/resource_profile_builder.hpp>
#include <troupe/runtime/resources/exact_rules.hpp>
#include <troupe/runtime/resources/profile_registry.hpp>

#include "profiles.hpp"

namespace troupe::exact_rules_tests {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

profile_rules exact_on(master_kind master, bool dynamic = true) {
  return {profile_matching::exact, support_matrix::all, master, dynamic, true};
}
const profile_rules on_cluster = exact_on(master_kind::local_cluster);
const profile_rules without_dynamic = exact_on(master_kind::local_cluster, false);

resource_profile defaults() {
  return profile_of({{"cores", 4}, {"memory", gib}, {"offHeap", 0}, {"gpu", 2}}, {{"cpus", "1"}});
}
/// As a builder would make it: with a number of its own.
resource_profile built(resource_profile p) {
  p.build = next_profile_build();
  return p;
}

TEST(exact_rules, fractions_above_one_half_are_for_task_only_profiles) {
  const auto full = [](const char* amount) { return profile_of({{"gpu", 1}}, {{"gpu", amount}}); };
  EXPECT_TRUE(exact::check_fractions(full("0.5")));
  EXPECT_TRUE(exact::check_fractions(full("1")));
  EXPECT_THAT(exact::check_fractions(full("0.7")).error().message,
              HasSubstr("The task resource amount 0.7 must be either <= 0.5, or a whole number"));
  EXPECT_TRUE(exact::check_fractions(profile_of({}, {{"gpu", "0.7"}})));
  EXPECT_TRUE(exact::check_fractions(profile_of({{"cores", 1}}, {{"cpus", "0.7"}}))) << "cpus are exempt";
}

TEST(exact_rules, full_profiles_do_not_inherit_custom_resources) {
  const auto whole = exact::complete(profile_of({{"memory", 2 * gib}}, {}), defaults(), on_cluster);
  EXPECT_EQ(whole, profile_of({{"cores", 4}, {"memory", 2 * gib}, {"offHeap", 0}}, {{"cpus", "1"}}));
}

TEST(exact_rules, task_only_profiles_read_the_default_only_without_dynamic_allocation) {
  const auto written = profile_of({}, {{"gpu", "1"}});
  EXPECT_EQ(exact::complete(written, defaults(), without_dynamic).executor, defaults().executor);
  EXPECT_EQ(exact::complete(written, defaults(), on_cluster).executor_amount("gpu"), 0);
  EXPECT_EQ(exact::complete(written, defaults(), exact_on(master_kind::local)).executor_amount("gpu"), 2)
      << "a local master counts as without dynamic allocation";
}

TEST(exact_rules, the_support_matrix_is_sparks) {
  const auto full = profile_of({{"cores", 1}}, {});
  const auto task_only = profile_of({}, {{"cpus", "2"}});
  const auto refusal = [](const resource_profile& p, const profile_rules& rules) {
    const auto answer = exact::check_supported(p, rules);
    return answer ? std::string{} : answer.error().message;
  };
  const auto e1 = HasSubstr("ResourceProfiles are only supported on YARN and Kubernetes and Standalone");
  const auto e2 = HasSubstr("TaskResourceProfiles are only supported for Standalone, Yarn and Kubernetes");
  EXPECT_THAT(refusal(full, exact_on(master_kind::local)), e1);
  EXPECT_THAT(refusal(task_only, exact_on(master_kind::local)), e2);
  for (const auto master : {master_kind::local_cluster, master_kind::node_agents, master_kind::yarn}) {
    EXPECT_THAT(refusal(full, exact_on(master, false)), e1);
    EXPECT_THAT(refusal(full, exact_on(master)), IsEmpty());
    EXPECT_THAT(refusal(task_only, exact_on(master, false)), IsEmpty());
    EXPECT_THAT(refusal(task_only, exact_on(master)), IsEmpty());
  }
}

TEST(exact_rules, limits_break_ties_in_favour_of_cpus) {
  struct row {
    std::int64_t cores, gpus;
    const char *cpus, *gpu;
    std::int64_t tasks;
    const char* limit;
  };
  for (const auto& r :
       {row{4, 2, "1", "1", 2, "gpu"}, row{8, 1, "1", "0.25", 4, "gpu"}, row{4, 4, "1", "1", 4, "cpus"},
        row{16, 4, "1", "0.3", 12, "gpu"}, row{70, 7, "2", "0.5", 14, "gpu"}, row{80, 9, "3", "2", 4, "gpu"},
        row{10, 1, "1", "0.1", 10, "cpus"}, row{1, 4, "1", "3", 1, "cpus"}}) {
    const auto limit = exact::limit_of(
        profile_of({{"cores", r.cores}, {"gpu", r.gpus}}, {{"cpus", r.cpus}, {"gpu", r.gpu}}), on_cluster);
    EXPECT_EQ(limit, (exact::task_limit{r.tasks, r.limit, true})) << r.cores << " cores, " << r.gpus << " gpus";
  }
}

TEST(exact_rules, cores_of_the_profile_do_not_make_cores_known) {
  auto unknown = on_cluster;
  unknown.cores_configured = false;
  const auto gpus = profile_of({{"cores", 1}, {"gpu", 2}}, {{"cpus", "1"}, {"gpu", "1"}});
  EXPECT_EQ(exact::limit_of(gpus, unknown), (exact::task_limit{2, "gpu", false}));
  EXPECT_EQ(exact::limit_of(profile_of({{"cores", 8}}, {{"cpus", "1"}}), unknown), (exact::task_limit{1, "", false}));
  auto yarn = unknown;
  yarn.master = master_kind::yarn;
  EXPECT_EQ(exact::limit_of(gpus, yarn), (exact::task_limit{1, "cpus", true}));
}

TEST(exact_rules, says_what_is_wasted_in_words_that_people_search_for) {
  const auto waste = [](const resource_profile& p, const profile_rules& rules = on_cluster) {
    return exact::waste_of(p, exact::limit_of(p, rules));
  };
  EXPECT_THAT(waste(profile_of({{"cores", 10}, {"gpu", 9}}, {{"cpus", "1"}, {"gpu", "1"}})),
              ElementsAre(AllOf(HasSubstr("The configuration of cores (exec = 10 task = 1, runnable tasks = 10)"),
                                HasSubstr("due to resource gpu"), HasSubstr("to: 9"))));
  EXPECT_THAT(
      waste(profile_of({{"cores", 5}, {"gpu", 1}}, {{"cpus", "1"}, {"gpu", "0.1"}})),
      ElementsAre(AllOf(HasSubstr("The configuration of resource: gpu (exec = 1, task = 0.1/10, runnable tasks = 10)"),
                        HasSubstr("due to resource cpus"), HasSubstr("to: 5"))));
  EXPECT_THAT(waste(profile_of({{"cores", 1}, {"gpu", 4}}, {{"cpus", "1"}, {"gpu", "2"}})),
              ElementsAre(HasSubstr("task = 2.0/1, runnable tasks = 2")));
  EXPECT_THAT(waste(profile_of({{"cores", 4}, {"gpu", 4}}, {{"cpus", "1"}, {"gpu", "1"}})), IsEmpty());
  auto unknown = on_cluster;
  unknown.cores_configured = false;
  EXPECT_THAT(waste(profile_of({{"cores", 10}, {"gpu", 9}}, {{"cpus", "1"}, {"gpu", "1"}}), unknown), IsEmpty());
}

TEST(exact_rules, the_right_one_survives_a_tie_as_a_whole) {
  auto left = profile_of({{"gpu", 4}, {"cores", 1}}, {{"gpu", "1"}, {"cpus", "1"}});
  left.executor["gpu"].discovery_script = "disc";
  auto right = profile_of({{"gpu", 4}, {"fpga", 1}}, {{"gpu", "2"}});
  right.executor["gpu"].discovery_script = "fdisc";
  const auto merged = exact::merge(left, right);
  EXPECT_EQ(merged.executor.at("gpu"), (executor_request{4, "fdisc", ""}));
  EXPECT_EQ(merged.executor_amount("cores"), 1);
  EXPECT_EQ(merged.executor_amount("fpga"), 1);
  EXPECT_EQ(merged.task, profile_of({}, {{"gpu", "2"}, {"cpus", "1"}}).task);
  left.executor["gpu"].amount = 5;
  EXPECT_EQ(exact::merge(left, right).executor.at("gpu").discovery_script, "disc") << "the larger one, whoever has it";
}

TEST(exact_registry, every_build_is_a_profile_and_a_shape_of_its_own) {
  profile_registry registry{defaults(), on_cluster};
  const auto content = profile_of({{"cores", 2}}, {{"cpus", "1"}});
  const auto one = built(content);
  const auto first = registry.register_profile(one, "client").value();
  const auto again = registry.register_profile(one, "client").value();
  const auto second = registry.register_profile(built(content), "client").value();
  const auto other = registry.register_profile(one, "another client").value();
  EXPECT_TRUE(first.is_new);
  EXPECT_FALSE(again.is_new);
  EXPECT_EQ(again.profile, first.profile);
  EXPECT_EQ(first.profile, profile_id{1});
  EXPECT_EQ(second.profile, profile_id{2});
  EXPECT_EQ(other.profile, profile_id{3}) << "build numbers of another process are other builds";
  EXPECT_NE(first.shape, second.shape);
  EXPECT_EQ(registry.register_profile(built(defaults()), "client").value().profile, profile_id{4})
      << "a copy of the default profile is not the default profile";
  EXPECT_EQ(registry.register_profile(resource_profile{}, "client").value().profile, default_profile_id);
}

TEST(exact_registry, a_jobs_profile_stands_for_an_equal_one_of_the_session) {
  profile_registry registry{defaults(), on_cluster};
  const auto content = profile_of({{"cores", 2}}, {{"cpus", "1"}});
  const auto own = registry.register_profile(content).value();
  EXPECT_EQ(registry.register_profile(built(content), "client").value().profile, own.profile);
}

TEST(exact_registry, task_only_profiles_share_the_defaults_executors_without_dynamic_allocation) {
  profile_registry fixed{defaults(), without_dynamic};
  const auto shared = fixed.register_profile(built(profile_of({}, {{"gpu", "1"}}))).value();
  EXPECT_EQ(shared.shape, shape_id{1});
  EXPECT_TRUE(shared.any_executor);
  EXPECT_FALSE(fixed.register_profile(built(profile_of({{"cores", 1}}, {}))).value().any_executor);

  profile_registry dynamic{defaults(), on_cluster};
  const auto own = dynamic.register_profile(built(profile_of({}, {{"cpus", "2"}}))).value();
  EXPECT_NE(own.shape, shape_id{1});
  EXPECT_FALSE(own.any_executor);
  EXPECT_THAT(dynamic.register_profile(built(profile_of({}, {{"gpu", "1"}, {"fpga", "1"}}))).error().message,
              HasSubstr("No executor resource configs were specified for fpga, gpu"));
}

TEST(exact_registry, a_conflict_is_one_of_identity_and_mergers_are_found_again) {
  profile_registry registry{defaults(), on_cluster};
  const auto content = profile_of({{"cores", 4}}, {{"cpus", "1"}});
  const auto a = registry.register_profile(built(content)).value().profile;
  const auto b = registry.register_profile(built(content)).value().profile;
  const auto meet = [&](profile_id x, profile_id y, profile_change rule) {
    return registry.profile_of_stage({use(x, "map"), use(y, "filter")}, rule);
  };
  EXPECT_THAT(meet(a, b, profile_change::error).error().message,
              AllOf(HasSubstr("Multiple ResourceProfiles specified in the RDDs for this stage"),
                    HasSubstr("troupe.scheduler.profile-change"), HasSubstr("'map'"), HasSubstr("'filter'")));
  EXPECT_EQ(meet(a, a, profile_change::error).value().profile, a);
  const auto wide = registry.register_profile(built(profile_of({{"cores", 2}}, {{"cpus", "2"}}))).value().profile;
  const auto merged = meet(a, wide, profile_change::merge).value();
  EXPECT_TRUE(merged.is_new);
  EXPECT_EQ(merged.content.executor_amount("cores"), 4);
  EXPECT_EQ(merged.content.task_amount("cpus"), parsed("2"));
  EXPECT_EQ(meet(wide, a, profile_change::merge).value().profile, merged.profile);
  EXPECT_EQ(meet(a, b, profile_change::merge).value().profile, a) << "an equivalent one that is registered is taken";
}

TEST(exact_registry, mergers_are_made_of_what_was_written) {
  profile_registry registry{defaults(), on_cluster};
  const auto small = registry.register_profile(built(profile_of({{"memory", gib / 2}}, {}))).value().profile;
  const auto wide = registry.register_profile(built(profile_of({{"cores", 2}}, {}))).value().profile;
  const auto merged = registry.profile_of_stage({use(small, "a"), use(wide, "b")}, profile_change::merge).value();
  EXPECT_EQ(merged.content.executor_amount("memory"), gib / 2) << "the default's 1g was asked for by nobody";
}

TEST(exact_registry, a_refused_profile_leaves_no_trace) {
  profile_registry registry{defaults(), on_cluster};
  const auto bad = built(profile_of({{"gpu", 1}}, {{"gpu", "0.7"}}));
  for (int i = 0; i < 2; ++i) EXPECT_THAT(registry.register_profile(bad).error().message, HasSubstr("<= 0.5"));
  EXPECT_EQ(registry.profiles().size(), 1u);
  EXPECT_THROW(
      (profile_registry{profile_of({{"cores", 1}, {"memory", gib}, {"gpu", 1}}, {{"cpus", "1"}, {"gpu", "0.7"}}),
                        on_cluster}),
      std::invalid_argument);
}

TEST(exact_registry, refuses_what_spark_refuses_where_that_is_asked_for) {
  auto rules = exact_on(master_kind::local);
  const auto full = built(profile_of({{"cores", 1}}, {}));
  EXPECT_TRUE((profile_registry{defaults(), rules}.register_profile(full)));
  rules.support = support_matrix::spark;
  profile_registry registry{defaults(), rules};
  EXPECT_THAT(registry.register_profile(full).error().message,
              HasSubstr("ResourceProfiles are only supported on YARN"));
  EXPECT_EQ(registry.register_profile(resource_profile{}).value().profile, default_profile_id) << "always supported";
}

TEST(exact_text, is_what_spark_prints) {
  auto profile = profile_of({{"cores", 2}, {"memory", std::int64_t{1} << 30}}, {{"cpus", "1"}, {"gpu", "0.5"}});
  profile.executor["gpu"] = {1, "/opt/find", "nvidia.com"};
  EXPECT_EQ(
      exact::to_string(profile, profile_id{3}),
      "Profile: id = 3, executor resources: cores -> name: cores, amount: 2, script: , vendor: ,gpu -> name: gpu, "
      "amount: 1, script: /opt/find, vendor: nvidia.com,memory -> name: memory, amount: 1024, script: , vendor: , "
      "task resources: cpus -> name: cpus, amount: 1.0,gpu -> name: gpu, amount: 0.5");
  EXPECT_EQ(exact::to_string({}, profile_id{1}), "Profile: id = 1, executor resources: , task resources: ");
}

} // namespace
} // namespace troupe::exact_rules_tests
