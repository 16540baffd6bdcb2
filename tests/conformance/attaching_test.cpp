// Which stage gets which profile (AT), what becomes of several in one stage (MG), and what a shuffle cuts (DG-1, DG-2).

#include <troupe/runtime/api/session.hpp>
#include <troupe/tests/api/inline_runner.hpp>
#include <troupe/tests/conformance/profile_texts.hpp>
#include <troupe/tests/conformance/rule.hpp>

namespace troupe::conformance {
namespace {

/// A session whose jobs run in place, so that one can look at what was submitted.
struct drafting_table {
  explicit drafting_table(profile_change change = profile_change::error)
    : session{runner,
              {.default_parallelism = 4, .jobs = {change, "the build", 4}, .arguments = {}, .fake_resources = {}}} {}

  std::shared_ptr<test::inline_runner> runner = std::make_shared<test::inline_runner>();
  troupe::session session;

  auto pairs() {
    return session.range(0, 100, 5).map([](std::int64_t n) { return std::pair{n % 10, n}; });
  }
  const job_spec& job() const { return *runner->jobs.back(); }
  /// `cpus 2 | default`: the task halves of the stages, parents first.
  std::string stages() const {
    std::string text;
    for (const auto& stage : job().stages) {
      const auto cpus = job().profiles[stage.profile].task_amount(resource_names::cpus);
      text += (text.empty() ? "" : " | ") + (cpus.is_zero() ? "default" : "cpus " + troupe::to_string(cpus));
    }
    return text;
  }
};

resource_profile cpus(int n) { return profile_of("; cpus " + std::to_string(n)); }
constexpr auto keep_all = [](const auto&) { return true; };
constexpr auto second_ones = [](const auto& p) { return p.second; };

std::string attached_twice(const profile_rules&) {
  drafting_table t;
  t.pairs().with_resources(cpus(2)).with_resources(cpus(3)).count();
  return t.stages();
}

std::string attached_before_a_shuffle(const profile_rules&) {
  drafting_table t;
  t.pairs().with_resources(cpus(2)).reduce_by_key(std::plus<>{}).map(second_ones).count();
  return t.stages();
}

std::string attached_after_a_shuffle(const profile_rules&) {
  drafting_table t;
  t.pairs().reduce_by_key(std::plus<>{}).map(second_ones).with_resources(cpus(2)).count();
  return t.stages();
}

std::string attached_to_a_step_of_many(const profile_rules&) {
  drafting_table t;
  t.pairs().filter(keep_all).with_resources(cpus(2)).filter(keep_all).filter(keep_all).count();
  return t.stages();
}

std::string attached_to_the_parent_only(const profile_rules&) {
  drafting_table t;
  const auto parent = t.pairs().with_resources(cpus(2));
  parent.reduce_by_key(std::plus<>{}).with_resources(cpus(3)).count();
  const auto first = t.stages();
  parent.count();
  return first + "; " + t.stages();
}

std::string attached_nowhere(const profile_rules&) {
  drafting_table t;
  t.pairs().reduce_by_key(std::plus<>{}).count();
  return t.stages();
}

std::string attached_in_a_graph(const profile_rules&) {
  drafting_table t;
  const auto a = t.pairs().with_resources(cpus(2));
  const auto c = t.pairs().reduce_by_key(std::plus<>{}).filter(keep_all).with_resources(cpus(3));
  a.join(c).count();
  return t.stages();
}

std::string attached_to_what_is_kept(const profile_rules&) {
  drafting_table t;
  const auto kept = t.pairs().with_resources(cpus(2)).cache();
  kept.count();
  kept.filter(keep_all).count();
  return t.stages();
}

const table attaching_rows{
    "attaching",
    {
        {"AT-1", "cpus 2, then cpus 3 on one dataset", attached_twice, same("cpus 3")},
        {"AT-2", "a shuffle of a dataset with cpus 2", attached_before_a_shuffle, same("cpus 2 | default")},
        {"AT-2", "cpus 3 on what is derived from a dataset with cpus 2, then that dataset", attached_to_the_parent_only,
         same("cpus 2 | cpus 3; cpus 2")},
        {"AT-3", "cpus 2 on one of five datasets of a stage", attached_to_a_step_of_many, same("cpus 2")},
        {"AT-4", "a profile before and none after a shuffle", attached_before_a_shuffle, same("cpus 2 | default")},
        {"AT-4", "no profile at all", attached_nowhere, same("default | default")},
        {"AT-5", "a profile after a shuffle", attached_after_a_shuffle, same("default | cpus 2")},
        {"AT-5", "a profile in the middle of a stage", attached_to_a_step_of_many, same("cpus 2")},
        {"AT-6", "cpus 2, joined with what a shuffle and then cpus 3 made", attached_in_a_graph,
         same("cpus 2 | default | cpus 3 | default")},
        {"AT-7", "a step behind a dataset with cpus 2 that is kept", attached_to_what_is_kept, same("cpus 2 | cpus 2")},
    }};

/// What the session makes of the profiles of a job's last stage, as its manager of profiles does.
result<profile_registration> profile_of_last_stage(profile_registry& registry, const job_spec& job) {
  std::vector<profile_registration> known;
  for (const auto& profile : job.profiles) {
    const auto registered = registry.register_profile(profile, "client");
    if (!registered) return registered.error();
    known.push_back(*registered);
  }
  const auto& stage = job.stages.back();
  std::vector<profile_use> uses;
  for (const auto& carried : stage.carried) uses.push_back({known[carried.profile], carried.dataset});
  if (uses.empty()) uses.push_back({known[stage.profile], stage.name});
  return registry.profile_of_stage(uses, job.on_profile_change);
}

/// The profile of the stage in which datasets with these profiles meet, source first; `-` is a dataset without one.
std::string met(const std::string& text, profile_change change, const profile_rules& rules) {
  drafting_table t{change};
  auto data = t.pairs();
  for (const auto& profile : parts_of(text, '|')) {
    auto next = data.filter(keep_all);
    data = profile == "-" ? next : next.with_resources(profile_of(profile)).named("dataset with " + profile);
  }
  data.count();
  auto registry = registry_with("cores 4; cpus 1", rules);
  const auto found = profile_of_last_stage(registry, t.job());
  if (!found) return refused(found.error());
  return found->profile == default_profile_id ? "default" : to_string(registry.find(found->profile)->written);
}

std::string met_by_error(const std::string& text, const profile_rules& rules) {
  return met(text, profile_change::error, rules);
}
std::string met_by_merge(const std::string& text, const profile_rules& rules) {
  return met(text, profile_change::merge, rules);
}

/// The profiles of a job's stages where nothing is said about changes, or why it is refused.
std::string met_by_default(const std::string& text, const profile_rules& rules) {
  drafting_table t{profile_change::by_matching};
  auto data = t.pairs();
  for (const auto& profile : parts_of(text, '|')) {
    auto next = data.filter(keep_all);
    data = profile == "-" ? next : next.with_resources(profile_of(profile)).named("dataset with " + profile);
  }
  data.count();
  auto registry = registry_with("cores 4; cpus 1", rules);
  for (const auto& meeting : meetings_of(t.job(), rules)) {
    std::vector<profile_use> uses;
    for (const auto& carried : meeting)
      uses.push_back({*registry.register_profile(t.job().profiles[carried.profile], "client"), carried.dataset});
    if (const auto done = registry.profile_of_stage(uses, t.job().on_profile_change); !done)
      return refused(done.error());
  }
  return t.stages();
}

const table changes_rows{
    "changes",
    met_by_default,
    {
        {"AT-3", "- | ; cpus 2 | -", same("cpus 2")},
        {"AT-5", "; cpus 2 | ; cpus 3", differs("refused: Multiple ResourceProfiles…", "cpus 2 | cpus 3")},
        {"AT-5", "- | ; cpus 2 | - | ; cpus 3 | -", differs("refused: …", "cpus 2 | cpus 3")},
        {"MG-2", "; cpus 2 | ; cpus 2", differs("refused: Multiple ResourceProfiles…", "cpus 2")},
        {"MG-3", "; cpus 2 | ; cpus 3", differs("refused: …troupe.scheduler.profile-change = cut…", "cpus 2 | cpus 3")},
    }};

const table conflicts_rows{
    "conflicts",
    met_by_error,
    {
        {"MG-1", "- | -", same("default")},
        {"MG-1", "- | ; cpus 2 | -", same("task: cpus 2")},
        {"MG-1", "; cpus 2 | ; cpus 3", same("refused: …")},
        {"MG-2", "; cpus 2 | ; cpus 2",
         differs("refused: Multiple ResourceProfiles specified in the RDDs for this stage…", "task: cpus 2")},
        {"MG-3", "; cpus 2 | ; cpus 3", same("refused: …troupe.scheduler.profile-change = merge…")},
        {"MG-9", "; cpus 2 | ; cpus 3",
         same("refused: …dataset with ; cpus 2…task: cpus 2…dataset with ; cpus 3…task: cpus 3…")},
        {"DG-2", "; cpus 2 | ; cpus 3", same("refused: …")},
    }};

const table merging_stages_rows{"merging_stages",
                                met_by_merge,
                                {
                                    {"MG-3", "; cpus 2 | ; cpus 3", same("…task: cpus 3")},
                                }};

/// Merges registered profiles; scripts stand behind the text.
std::string merged(const std::string& text, const profile_rules& rules) {
  auto configured = rules;
  configured.cores_configured = true;
  auto registry = registry_with("cores 4, gpu 1; cpus 1", configured);
  std::vector<profile_id> ids;
  for (const auto& part : parts_of(text, '+')) {
    const auto known = registry.register_profile(profile_of(part));
    if (!known) return refused(known.error());
    ids.push_back(known->profile);
  }
  const auto result = merge_all(registry, ids);
  if (!result) return refused(result.error());
  auto out = to_string(result->content);
  for (const auto& [name, request] : result->content.executor)
    if (!request.discovery_script.empty()) out += "; " + name + " by " + request.discovery_script;
  return out + "; slots " + std::to_string(registry.find(result->profile)->slots.slots);
}

const table mergers_rows{
    "mergers",
    merged,
    {
        {"MG-4", "gpu 4 disc; gpu 1 + gpu 2 fdisc; gpu 2", same("…gpu 4; …gpu 2; gpu by disc; …")},
        {"MG-4", "gpu 2 disc; gpu 1 + gpu 4 fdisc; gpu 2", same("…gpu 4; …gpu 2; gpu by fdisc; …")},
        {"MG-4", "gpu 2 left; gpu 1, cpus 1 + gpu 2 right; gpu 1, cpus 2",
         differs("…; gpu by right; …", "…; gpu by left; …")},
        {"MG-5", "; gpu 0.7 + cores 2, gpu 1; gpu 0.5",
         differs("refused: …task resource amount 0.7 must be either <= 0.5…", "…task: cpus 1, gpu 0.7; slots 1")},
        {"MG-5", "; cpus 2 + ; cpus 3", same("executor: cores 4, …, gpu 1; task: cpus 3; slots 1")},
        {"MG-7", "cores 4; cpus 1 + cores 2; cpus 2", same("executor: cores 4, …; task: cpus 2; …")},
        {"MG-7", "cores 1, gpu 1 disc; cpus 1, gpu 1 + cores 2; cpus 2",
         same("executor: cores 2, …, gpu 1; task: cpus 2, gpu 1; gpu by disc; …")},
        {"MG-7", "cores 4; cpus 1 + cores 2; cpus 1 + cores 3; cpus 2", same("executor: cores 4, …; task: cpus 2; …")},
        {"MG-7", "; cpus 1 + ; cpus 1 + ; cpus 2", same("executor: cores 4, …; task: cpus 2; …")},
        {"MG-8", "cores 16; cpus 1 + cores 8; cpus 8", same("executor: cores 16, …; task: cpus 8; slots 2")},
    }};

std::string merged_into_a_known_one(const profile_rules& rules) {
  auto registry = registry_with("cores 1; cpus 1", rules);
  const auto id = [&](const char* text) { return registry.register_profile(profile_of(text))->profile; };
  const auto a = id("cores 4; cpus 1");
  const auto b = id("cores 2; cpus 2");
  const auto both = id("cores 4; cpus 2");
  const auto result = merge_all(registry, {a, b});
  return std::string{result->profile == both ? "the known one" : "another one"} + (result->is_new ? ", new" : "");
}

/// The script of two requests for as many gpus, the second of which comes first in the stage.
std::string script_after_a_tie(const profile_rules& rules) {
  auto registry = registry_with("cores 1; cpus 1", rules);
  const auto one = registry.register_profile(profile_of("gpu 2 one; gpu 1, cpus 1"))->profile;
  const auto two = registry.register_profile(profile_of("gpu 2 two; gpu 2"))->profile;
  return merge_all(registry, {two, one})->content.executor.at("gpu").discovery_script;
}

const table known_mergers_rows{
    "known_mergers",
    {
        {"MG-4", "a tie of two profiles, the later one first in the stage", script_after_a_tie, same("one")},
        {"MG-6", "a merger that is registered already", merged_into_a_known_one, same("the known one")},
    }};

std::string cut_by_shuffles(const profile_rules&) {
  drafting_table t;
  const auto counts = t.pairs().reduce_by_key(std::plus<>{});
  counts.join(counts.map([](const auto& p) { return p; })).count();
  std::string text = std::to_string(t.job().stages.size()) + " stages";
  for (std::size_t i = 0; i < t.job().stages.size(); ++i)
    for (const auto& parent : t.job().stages[i].dependencies)
      text += ", " + std::to_string(parent.stage) + " before " + std::to_string(i);
  return text;
}

const table cuts_rows{"cuts",
                      {
                          {"DG-1", "two branches that read one shuffle, joined", cut_by_shuffles,
                           same("4 stages, 0 before 1, 0 before 2, 1 before 3, 2 before 3")},
                      }};

} // namespace
} // namespace troupe::conformance
