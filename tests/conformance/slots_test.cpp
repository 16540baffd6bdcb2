// How many tasks an executor runs at once, what limits them, and what stays idle (SL).

#include <troupe/runtime/resources/exact_rules.hpp>
#include <troupe/tests/conformance/profile_texts.hpp>
#include <troupe/tests/conformance/rule.hpp>

namespace troupe::conformance {
namespace {

std::string slots_text(const slot_count& count) { return std::to_string(count.slots) + " " + count.limiting_resource; }

/// Tasks that an executor of a registered profile runs at once, and what limits them: `4 gpu`, `1 nothing`.
std::string limit_text(const registered_profile& known, const profile_rules& rules) {
  if (!rules.is_exact()) return slots_text(known.slots);
  const auto limit = exact::limit_of(known.content, rules);
  return std::to_string(limit.tasks) + " " + (limit.limiting_resource.empty() ? "nothing" : limit.limiting_resource);
}

/// That of a profile that is registered beside `defaults`.
std::string slots_beside(std::string_view defaults, std::string_view text, const profile_rules& rules) {
  auto registry = registry_with(defaults, rules);
  const auto known = registry.register_profile(profile_of(text));
  return known ? limit_text(*registry.find(known->profile), rules) : refused(known.error());
}

std::string slots_with_known_cores(const std::string& text, const profile_rules& rules) {
  auto configured = rules;
  configured.cores_configured = true;
  return slots_beside("cores 1; cpus 1", text, configured);
}

const table known_cores_rows{
    "known_cores",
    slots_with_known_cores,
    {
        {"SL-1", "cores 4; cpus 2", same("2 cpus")},
        {"SL-3", "cores 7; cpus 2", same("3 cpus")},
        {"SL-3", "; cpus 2", same("refused: The number of cores per executor (=1) has to be >= …")},
        {"SL-5", "cores 4, gpu 1; gpu 1", same("1 gpu")},
        {"SL-5", "cores 9, npu 4, gpu 4; npu 1, gpu 1", same("4 gpu")},
        {"SL-7", "cores 4;", same("4 cpus")},
        {"SL-8", "cores 99, gpu 3; gpu 0.3", same("9 gpu")},
    }};

/// `cores 10, gpu 1 | ; gpu 0.6`: a profile, or `default`, on a local cluster without dynamic allocation, where the
/// default profile has what stands before the bar. Cores are configured if they stand there. Told is the limit, then
/// what the registration notes.
std::string worked_example(const std::string& text, const profile_rules& rules) {
  const auto bar = text.find('|');
  const auto defaults = text.substr(0, bar);
  auto there = rules;
  there.master = master_kind::local_cluster;
  there.dynamic_allocation = false;
  there.cores_configured = defaults.find("cores") != std::string::npos;
  auto registry = registry_with(defaults + ";", there);
  const auto profile = parts_of(text.substr(bar + 1), '|').at(0);
  const auto known = registry.register_profile(profile == "default" ? resource_profile{} : profile_of(profile));
  if (!known) return refused(known.error());
  auto out = limit_text(*registry.find(known->profile), there);
  for (const auto& note : known->notes) out += "; " + note;
  return out;
}

/// What Spark says of idle cores.
std::string idle_cores(int cores, int cpus, int runnable, const std::string& limiting, int tasks) {
  return "; The configuration of cores (exec = " + std::to_string(cores) + " task = " + std::to_string(cpus) +
         ", runnable tasks = " + std::to_string(runnable) + ")…due to resource " + limiting +
         ",…to: " + std::to_string(tasks);
}
/// The same of idle addresses; `task` is `0.1/10`.
std::string idle_gpus(int gpus, const std::string& task, int runnable, const std::string& limiting, int tasks) {
  return "; The configuration of resource: gpu (exec = " + std::to_string(gpus) + ", task = " + task +
         ", runnable tasks = " + std::to_string(runnable) + ")…due to resource " + limiting +
         ",…to: " + std::to_string(tasks);
}

const table worked_examples_rows{
    "worked_examples",
    worked_example,
    {
        {"SL-5", "cores 1 | cores 4, gpu 2; cpus 1, gpu 1", differs("2 gpu" + idle_cores(4, 1, 4, "gpu", 2), "2 gpu…")},
        {"SL-5", "cores 1 | cores 8, gpu 1; cpus 1, gpu 0.25",
         differs("4 gpu" + idle_cores(8, 1, 8, "gpu", 4), "4 gpu…")},
        {"SL-5", "cores 1 | cores 4, gpu 4; cpus 1, gpu 1", same("4 cpus")},
        {"SL-5", "cores 1 | gpu 2; gpu 1", differs("1 cpus" + idle_gpus(2, "1.0/1", 2, "cpus", 1), "1 cpus…")},
        {"SL-5", "cores 1 | cores 16, gpu 4; cpus 1, gpu 0.3",
         differs("12 gpu" + idle_cores(16, 1, 16, "gpu", 12), "12 gpu…")},
        {"SL-5", "cores 1 | cores 10, fpga 3, gpu 2; cpus 1, fpga 2, gpu 0.5",
         differs("1 fpga" + idle_cores(10, 1, 10, "fpga", 1) + idle_gpus(2, "0.5/2", 4, "fpga", 1), "1 fpga…")},
        {"SL-5", "cores 1 | cores 70, gpu 7; cpus 2, gpu 0.5",
         differs("14 gpu" + idle_cores(70, 2, 35, "gpu", 14), "14 gpu…")},
        {"SL-5", "cores 1 | cores 80, gpu 9; cpus 3, gpu 2",
         differs("4 gpu" + idle_cores(80, 3, 26, "gpu", 4), "4 gpu…")},
        {"SL-5", "cores 1 | cores 10, gpu 1; cpus 1, gpu 0.1", same("10 cpus")},
        {"SL-5", "cores 1 | cores 20, gpu 2; cpus 2, gpu 0.2", same("10 cpus")},
        {"SL-5", "cores 1 | cores 1, gpu 4; cpus 1, gpu 3", differs("1 cpus", "1 cpus; 1 of 4 gpu stay idle…")},
        {"SL-4", "| gpu 2; gpu 1", differs("2 gpu", "1 cpus…")},
        {"SL-7", "| default", differs("1 nothing", "1 cpus")},
        {"SL-2", "cores 2 | gpu 2; gpu 1", same("2 cpus")},
        {"SL-5", "cores 2, gpu 2 | ; gpu 1", same("2 cpus")},
        {"SL-5", "cores 2, gpu 2 | ; gpu 2", differs("1 gpu" + idle_cores(2, 1, 2, "gpu", 1), "1 gpu…")},
        {"SL-5", "cores 10, gpu 1 | ; cpus 1, gpu 0.6", differs("1 gpu" + idle_cores(10, 1, 10, "gpu", 1), "1 gpu…")},
    }};

std::string slots_by_master(const std::string& text, const profile_rules& rules, master_kind master) {
  auto there = rules;
  there.master = master;
  return slots_beside("; cpus 1", text, there);
}
std::string slots_on_a_local_cluster(const std::string& text, const profile_rules& rules) {
  return slots_by_master(text, rules, master_kind::local_cluster);
}
std::string slots_on_yarn(const std::string& text, const profile_rules& rules) {
  return slots_by_master(text, rules, master_kind::yarn);
}
std::string slots_on_kubernetes(const std::string& text, const profile_rules& rules) {
  return slots_by_master(text, rules, master_kind::kubernetes);
}

const table unknown_cores_rows{"unknown_cores",
                               slots_on_a_local_cluster,
                               {
                                   {"SL-2", "cores 4; cpus 1", differs("1 nothing", "4 cpus")},
                                   {"SL-4", "cores 4, gpu 8; cpus 1, gpu 1", differs("8 gpu", "4 cpus")},
                                   {"SL-7", ";", differs("1 nothing", "1 cpus")},
                               }};

const table yarn_cores_rows{"yarn_cores", slots_on_yarn, {{"SL-2", "cores 4; cpus 1", same("4 cpus")}}};
const table kubernetes_cores_rows{
    "kubernetes_cores", slots_on_kubernetes, {{"SL-2", "cores 4; cpus 1", same("4 cpus")}}};

std::string build_error(const std::string& text, const profile_rules&) {
  const auto profile = built(text);
  return profile ? "no error" : refused(profile.error());
}

const table impossible_tasks_rows{
    "impossible_tasks",
    build_error,
    {
        {"SL-3", "cores 1; cpus 2", same("refused: The number of cores per executor (=1) has to be >= …(=2)…")},
        {"SL-3", "cores 2; cpus 2", same("no error")},
        {"SL-5", "cores 4, gpu 1; gpu 2", same("refused: The executor resource: gpu, amount: 1 needs to be >= …2.0…")},
        {"SL-5", "cores 4, gpu 2; gpu 2", same("no error")},
        {"SL-6", "cores 4, fpga 1; gpu 1, npu 1, fpga 1",
         same("refused: No executor resource configs were specified for gpu, npu…")},
    }};

std::string slots_on_a_real_executor(const profile_rules&) {
  return slots_text(slots_of(capacity_of("cores 2, gpu 4"), profile_of("cores 8, gpu 4; cpus 1, gpu 1")));
}

std::string notes_of(const std::string& text, const profile_rules& rules, bool cores_configured) {
  auto configured = rules;
  configured.cores_configured = cores_configured;
  auto registry = registry_with("cores 1; cpus 1", configured);
  const auto known = registry.register_profile(profile_of(text));
  if (!known) return refused(known.error());
  std::string notes;
  for (const auto& note : known->notes) notes += (notes.empty() ? "" : "; ") + note;
  return notes;
}

std::string notes_with_known_cores(const std::string& text, const profile_rules& rules) {
  return notes_of(text, rules, true);
}
std::string notes_with_unknown_cores(const std::string& text, const profile_rules& rules) {
  return notes_of(text, rules, false);
}

/// The notes, and what the record of the profile says whether they tell it or not.
std::string notes_and_record(const std::string& text, const profile_rules& rules) {
  auto configured = rules;
  configured.cores_configured = true;
  auto registry = registry_with("cores 1; cpus 1", configured);
  const auto known = registry.register_profile(profile_of(text));
  if (!known) return refused(known.error());
  auto out = std::to_string(known->notes.size()) + " notes";
  for (const auto& idle : registry.find(known->profile)->idle) out += "; " + to_string(idle);
  return out;
}

const table idle_notes_rows{
    "idle_notes",
    notes_with_known_cores,
    {
        {"SL-10", "cores 4, gpu 2; cpus 1, gpu 1",
         differs("The configuration of cores (exec = 4 task = 1, runnable tasks = 4)…", "2 of 4 cores stay idle: …")},
        {"SL-10", "cores 4, gpu 4; cpus 1, gpu 1", same("")},
        {"SL-11", "cores 10, gpu 9; cpus 1, gpu 1",
         differs("The configuration of cores (exec = 10 task = 1, runnable tasks = 10)…due to resource gpu…to: 9",
                 "1 of 10 cores stay idle: an executor of this profile runs 9 tasks at once, limited by gpu")},
        {"SL-12", "cores 5, gpu 1; cpus 1, gpu 0.1",
         differs("The configuration of resource: gpu (exec = 1, task = 0.1/10, runnable tasks = 10)…to: 5",
                 "0.5 of 1 gpu stay idle: an executor of this profile runs 5 tasks at once, limited by cpus")},
        {"SL-12", "cores 1, gpu 4; cpus 1, gpu 2",
         differs("The configuration of resource: gpu (exec = 4, task = 2.0/1, runnable tasks = 2)…to: 1",
                 "2 of 4 gpu stay idle: …")},
        {"SL-12", "cores 2, gpu 1; cpus 1, gpu 0.2",
         differs("The configuration of resource: gpu (exec = 1, task = 0.2/5, runnable tasks = 5)…to: 2",
                 "0.6 of 1 gpu stay idle: …")},
    }};

const table idle_notes_without_cores_rows{
    "idle_notes_without_cores",
    notes_with_unknown_cores,
    {
        {"SL-10", "cores 4, gpu 2; cpus 1, gpu 1", differs("", "2 of 4 cores stay idle: …")},
    }};

const table idle_remainders_rows{"idle_remainders",
                                 notes_and_record,
                                 {
                                     {"SL-14", "cores 12, gpu 4; cpus 1, gpu 0.3",
                                      differs("0 notes; 0.4 of 4 gpu stay idle", "1 notes; 0.4 of 4 gpu stay idle")},
                                     {"SL-14", "cores 1, gpu 4; cpus 1, gpu 3",
                                      differs("0 notes; 1 of 4 gpu stay idle", "1 notes; 1 of 4 gpu stay idle")},
                                     {"SL-14", "cores 4, gpu 9; cpus 1, gpu 2",
                                      differs("0 notes; 1 of 9 gpu stay idle", "1 notes; 1 of 9 gpu stay idle")},
                                 }};

std::string notes_of_a_wasteful_default(const profile_rules& rules) {
  auto configured = rules;
  configured.cores_configured = true;
  auto registry = registry_with("cores 10, gpu 9; cpus 1, gpu 1", configured);
  return registry.register_profile({})->notes.at(0);
}

std::string a_wasteful_profile_is_registered(const profile_rules& rules) {
  auto configured = rules;
  configured.cores_configured = true;
  auto registry = registry_with("cores 1; cpus 1", configured);
  const auto known = registry.register_profile(profile_of("cores 16, gpu 1; cpus 1, gpu 1"));
  return known ? "registered with " + std::to_string(known->notes.size()) + " note" : refused(known.error());
}

const table slots_rows{
    "slots",
    {
        {"SL-9", "a profile with 8 cores on an executor with 2", slots_on_a_real_executor, same("2 cpus")},
        {"SL-10", "a default profile that wastes a core", notes_of_a_wasteful_default,
         differs("The configuration of cores (exec = 10 task = 1, runnable tasks = 10)…to: 9",
                 "1 of 10 cores stay idle: …")},
        {"SL-13", "a profile that wastes 15 cores", a_wasteful_profile_is_registered, same("registered with 1 note")},
    }};

} // namespace
} // namespace troupe::conformance
