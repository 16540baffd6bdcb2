// The registry of profiles, and which executor may run what (MP).

#include <troupe/runtime/scheduling/executor_pool.hpp>
#include <troupe/tests/conformance/profile_texts.hpp>
#include <troupe/tests/conformance/rule.hpp>
#include <troupe/tests/support/builders.hpp>

namespace troupe::conformance {
namespace {

std::string id_text(const result<profile_registration>& known) {
  if (!known) return "refused";
  return std::to_string(known->profile.value) + (known->is_new ? " new" : " known");
}

/// Ids of profiles that are registered one after another, and how many there are in the end.
std::string registered_in_turn(const std::string& text, const profile_rules& rules) {
  auto registry = registry_with("cores 4, gpu 1; cpus 1", rules);
  std::string ids;
  for (const auto& part : parts_of(text, '|')) ids += id_text(registry.register_profile(profile_of(part))) + ", ";
  return ids + std::to_string(registry.profiles().size()) + " in all";
}

const table registrations_rows{
    "registrations",
    registered_in_turn,
    {
        {"MP-1", "cores 2; cpus 1 | cores 3; cpus 1", in_compatible("1 new, 2 new, 3 in all")},
        {"MP-3", "cores 2; cpus 1 | cores 2; cpus 1", in_compatible("1 new, 1 known, 2 in all")},
        {"MP-4", "; gpu 2 | ; gpu 2", in_compatible("refused, refused, 1 in all")},
        {"MP-6", "; | ;", same("0 known, 0 known, 1 in all")},
        {"MP-7", "cores 2; cpus 1 | cores 2; cpus 1 | cores 4, memory 1g, gpu 1; cpus 1",
         in_compatible("1 new, 1 known, 0 known, 2 in all")},
    }};

std::string first_one(const profile_rules& rules) {
  const auto registry = registry_with("cores 4; cpus 1", rules);
  return std::to_string(registry.profiles().front().profile.value) + ": " +
         to_string(registry.profiles().front().content);
}

/// What is refused of full and task-only profiles, on any master, with dynamic allocation and without.
std::string refused_anywhere(const profile_rules& rules) {
  int asked = 0;
  std::string out;
  for (const auto master : {master_kind::local, master_kind::local_cluster, master_kind::node_agents, master_kind::yarn,
                            master_kind::kubernetes})
    for (const bool dynamic : {false, true})
      for (const auto* text : {"cores 2; cpus 1", "; cpus 2"}) {
        auto there = rules;
        there.master = master;
        there.dynamic_allocation = dynamic;
        auto registry = registry_with("cores 4; cpus 1", there);
        const auto known = registry.register_profile(profile_of(text));
        ++asked;
        if (!known) out += known.error().message + "; ";
      }
  return out + std::to_string(asked) + " asked";
}

std::string merger_with_an_unknown_one(const profile_rules& rules) {
  auto registry = registry_with("cores 4; cpus 1", rules);
  const auto merged = merge_all(registry, {profile_id{0}, profile_id{7}});
  return merged ? "merged" : refused(merged.error());
}

/// Whether an executor that was started for a wide profile runs tasks of this one.
std::string runs_on_a_gpu_executor(const std::string& text, const profile_rules& rules) {
  executor_pool pool{rules.matching};
  const auto wide = testing::make_profile({{"cores", 8}, {"gpu", 2}}, {{"cpus", "1"}, {"gpu", "1"}});
  const auto narrow = complete(profile_of(text), testing::default_test_profile());
  demand wanted;
  wanted.profile = profile_id{narrow == wide ? 1u : 2u};
  wanted.shape = shape_id{narrow == wide ? 1u : 2u};
  wanted.content = std::make_shared<const resource_profile>(narrow);
  wanted.build_id = "build";
  const auto d = pool.intern(std::move(wanted));
  const auto e = pool.add(testing::executor_builder{}.started_for(wide).make(executor_id{1}, 1), time_point{});
  return pool.satisfies(e, d) ? "runs it" : "does not run it";
}

const table matching_rows{"matching",
                          runs_on_a_gpu_executor,
                          {
                              {"MP-8", "cores 8, gpu 2; cpus 1, gpu 1", same("runs it")},
                              {"MP-8", "cores 4; cpus 1", differs("does not run it", "runs it")},
                              {"MP-8", "cores 16; cpus 1", same("does not run it")},
                          }};

std::string dynamic_by_master(const profile_rules& rules) {
  std::string out;
  for (const auto master : {master_kind::local, master_kind::local_cluster, master_kind::node_agents, master_kind::yarn,
                            master_kind::kubernetes}) {
    auto there = rules;
    there.master = master;
    out += there.is_dynamic() ? "on " : "off ";
    there.dynamic_allocation = false;
    if (there.is_dynamic()) out += "(although switched off) ";
  }
  return out;
}

const table manager_rows{
    "manager",
    {
        {"MP-1", "the first profile of all", first_one, in_compatible("0: executor: cores 4, memory 1g; task: cpus 1")},
        {"MP-2", "full and task-only profiles everywhere", refused_anywhere, in_compatible("20 asked")},
        {"MP-5", "a profile that nobody registered", merger_with_an_unknown_one, same("refused: …7…")},
        {"MP-9", "local, local-cluster, node agents, YARN, Kubernetes", dynamic_by_master, same("off on on on on ")},
    }};

} // namespace
} // namespace troupe::conformance
