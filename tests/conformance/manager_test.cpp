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
        {"MP-1", "cores 2; cpus 1 | cores 3; cpus 1", same("1 new, 2 new, 3 in all")},
        {"MP-3", "cores 2; cpus 1 | cores 2; cpus 1", differs("1 new, 2 new, 3 in all", "1 new, 1 known, 2 in all")},
        {"MP-4", "; gpu 2 | ; gpu 2", same("refused, refused, 1 in all")},
        {"MP-6", "; | ;", differs("1 new, 2 new, 3 in all", "0 known, 0 known, 1 in all")},
        {"MP-7", "cores 2; cpus 1 | cores 2; cpus 1 | cores 4, memory 1g, gpu 1; cpus 1",
         differs("1 new, 2 new, 3 new, 4 in all", "1 new, 1 known, 0 known, 2 in all")},
    }};

std::string first_one(const profile_rules& rules) {
  const auto registry = registry_with("cores 4; cpus 1", rules);
  return std::to_string(registry.profiles().front().profile.value) + ": " +
         to_string(registry.profiles().front().content);
}

std::string one_build_twice(const profile_rules& rules) {
  auto registry = registry_with("cores 4; cpus 1", rules);
  const auto profile = profile_of("cores 2; cpus 1");
  const auto first = id_text(registry.register_profile(profile));
  return first + ", " + id_text(registry.register_profile(profile)) + ", " +
         std::to_string(registry.profiles().size()) + " in all";
}

/// The equivalent of what these profiles are merged into, and what is registered after that.
std::string found_by_content(const std::string& text, const profile_rules& rules) {
  auto registry = registry_with("cores 4; cpus 1", rules);
  std::vector<profile_id> ids;
  for (const auto& part : parts_of(text, '+')) ids.push_back(registry.register_profile(profile_of(part))->profile);
  return id_text(merge_all(registry, ids));
}

const table equivalents_rows{"equivalents",
                             found_by_content,
                             {
                                 {"MP-6", "; + ;", differs("1 known", "0 known")},
                                 {"MP-6", "cores 2; + ; cpus 2 + cores 2; cpus 2", differs("3 known", "2 known")},
                                 {"MP-6", "cores 2; + ; cpus 2", differs("3 new", "2 known")},
                                 {"MP-6", "cores 4, memory 1g; + ; cpus 1", same("0 known")},
                                 {"MP-7", "cores 2; cpus 2 + cores 2; cpus 2", same("1 known")},
                             }};

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

constexpr std::string_view e1 = "ResourceProfiles are only supported on YARN and Kubernetes and Standalone";
constexpr std::string_view e2 = "TaskResourceProfiles are only supported for Standalone, Yarn and Kubernetes";

/// The default profile, a full one and a task-only one where Spark's matrix holds, without dynamic allocation and with.
std::string supported(const profile_rules& rules, master_kind master) {
  std::string out;
  for (const auto* text : {"default", "cores 2; cpus 1", "; cpus 2"})
    for (const bool dynamic : {false, true}) {
      auto there = rules;
      there.support = support_matrix::spark;
      there.master = master;
      there.dynamic_allocation = dynamic;
      auto registry = registry_with("cores 4; cpus 1", there);
      const bool is_default = std::string_view{text} == "default";
      const auto known = registry.register_profile(is_default ? resource_profile{} : profile_of(text));
      const auto why = known ? std::string{} : known.error().message;
      out += (out.empty() ? "" : dynamic ? "/" : ", ");
      out += known ? "yes" : why.starts_with(e1) ? "E1" : why.starts_with(e2) ? "E2" : why;
    }
  return out;
}

std::string on_local(const profile_rules& rules) { return supported(rules, master_kind::local); }
std::string on_local_cluster(const profile_rules& rules) { return supported(rules, master_kind::local_cluster); }
std::string on_node_agents(const profile_rules& rules) { return supported(rules, master_kind::node_agents); }
std::string on_yarn(const profile_rules& rules) { return supported(rules, master_kind::yarn); }
std::string on_kubernetes(const profile_rules& rules) { return supported(rules, master_kind::kubernetes); }

const table support_rows{
    "support",
    {
        {"MP-2", "default, full, task-only on local, without/with", on_local, same("yes/yes, E1/E1, E2/E2")},
        {"MP-2", "the same on local-cluster", on_local_cluster, same("yes/yes, E1/yes, yes/yes")},
        {"MP-2", "the same with node agents", on_node_agents, same("yes/yes, E1/yes, yes/yes")},
        {"MP-2", "the same on YARN", on_yarn, same("yes/yes, E1/yes, yes/yes")},
        {"MP-2", "the same on Kubernetes", on_kubernetes, same("yes/yes, E1/yes, yes/yes")},
    }};

/// Whether an executor that was started for a profile with 8 cores and 2 gpus runs tasks of this one; `itself` is that
/// very profile.
struct circumstances {
  bool dynamic = true;
  bool by_hand = false; ///< the executor was started on nobody's request
};

std::string runs_on_a_gpu_executor(const std::string& text, const profile_rules& rules, circumstances how) {
  auto there = rules;
  there.master = master_kind::local_cluster;
  there.dynamic_allocation = how.dynamic;
  auto registry = registry_with("cores 1; cpus 1", there);
  const auto wide = profile_of("cores 8, gpu 2; cpus 1, gpu 1");
  const auto started = *registry.register_profile(wide);
  const auto known = registry.register_profile(text == "itself" ? wide : profile_of(text));
  if (!known) return refused(known.error());
  auto content = known->content;
  if (known->any_executor) content.executor.clear();
  executor_pool pool{rules.matching};
  const auto d = pool.intern(
      {known->profile, known->shape, std::make_shared<const resource_profile>(content), "build", known->any_executor});
  auto executor = testing::executor_builder{}.started_for(started.content);
  if (!how.by_hand) executor.request(1).shape(started.shape);
  const auto e = pool.add(executor.make(executor_id{1}, 1), time_point{});
  return pool.satisfies(e, d) ? "runs it" : "does not run it";
}

std::string runs_it(const std::string& text, const profile_rules& rules) {
  return runs_on_a_gpu_executor(text, rules, {});
}
std::string runs_it_without_dynamic(const std::string& text, const profile_rules& rules) {
  return runs_on_a_gpu_executor(text, rules, {false, false});
}

std::string runs_it_by_hand(const std::string& text, const profile_rules& rules) {
  return runs_on_a_gpu_executor(text, rules, {true, true});
}

const table matching_rows{"matching",
                          runs_it,
                          {
                              {"MP-8", "itself", same("runs it")},
                              {"MP-8", "cores 8, gpu 2; cpus 1, gpu 1", differs("does not run it", "runs it")},
                              {"MP-8", "cores 4; cpus 1", differs("does not run it", "runs it")},
                              {"MP-8", "cores 16; cpus 1", same("does not run it")},
                              {"MP-8", "; cpus 1", differs("does not run it", "runs it")},
                          }};

const table matching_without_dynamic_rows{"matching_without_dynamic",
                                          runs_it_without_dynamic,
                                          {
                                              {"MP-8", "itself", same("runs it")},
                                              {"MP-8", "cores 4; cpus 1", differs("does not run it", "runs it")},
                                              {"MP-8", "; cpus 1", same("runs it")},
                                          }};

const table matching_by_hand_rows{"matching_by_hand",
                                  runs_it_by_hand,
                                  {
                                      {"MP-8", "itself", same("runs it")},
                                      {"MP-8", "cores 8, gpu 2; cpus 2, gpu 0.5", same("runs it")},
                                      {"MP-8", "cores 8, offHeap 0, gpu 2 ./find nvidia; cpus 1", same("runs it")},
                                      {"MP-8", "cores 4; cpus 1", differs("does not run it", "runs it")},
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
        {"MP-1", "the first profile of all", first_one, same("0: executor: cores 4, memory 1g; task: cpus 1")},
        {"MP-2", "full and task-only profiles everywhere", refused_anywhere, same("20 asked")},
        {"MP-3", "one build, registered twice", one_build_twice, same("1 new, 1 known, 2 in all")},
        {"MP-5", "a profile that nobody registered", merger_with_an_unknown_one,
         same("refused: ResourceProfileId 7 not found!")},
        {"MP-9", "local, local-cluster, node agents, YARN, Kubernetes", dynamic_by_master, same("off on on on on ")},
    }};

} // namespace
} // namespace troupe::conformance
