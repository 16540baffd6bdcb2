// The default profile, what others take from it, and how much memory an executor needs (DF).

#include <troupe/runtime/config/profile_settings.hpp>
#include <troupe/runtime/resources/carving.hpp>
#include <troupe/tests/conformance/profile_texts.hpp>
#include <troupe/tests/conformance/rule.hpp>

namespace troupe::conformance {
namespace {

/// Of settings written as `executor.cores=4, task.cpus=2`.
result<settings> settings_of(std::string_view text, const profile_rules& rules) {
  settings_builder builder{"/base"};
  auto lines = parts_of(text, ',');
  lines.push_back("scheduler.profile-matching=" + std::string{to_string(rules.matching)});
  for (const auto& line : lines)
    if (auto ok = builder.add_argument("troupe." + line); !ok) return ok.error();
  return builder.build();
}

std::string default_on(master_kind master, std::string_view text, const profile_rules& rules) {
  const auto s = settings_of(text, rules);
  if (!s) return refused(s.error());
  const auto profile = default_profile(*s, rules_of(*s, master));
  return profile ? to_string(*profile) : refused(profile.error());
}

std::string default_of(const std::string& text, const profile_rules& rules) {
  return default_on(master_kind::local, text, rules);
}
std::string default_on_a_local_cluster(const std::string& text, const profile_rules& rules) {
  return default_on(master_kind::local_cluster, text, rules);
}

const table local_cluster_defaults_rows{
    "local_cluster_defaults",
    default_on_a_local_cluster,
    {
        {"DF-2", "", differs("executor: memory 1g, …", "executor: cores 1, …")},
        {"DF-2", "executor.cores=4", same("executor: cores 4, …")},
        {"DF-6", "",
         differs("executor: memory 1g, offHeap 0b; task: cpus 1", "executor: cores 1, memory 1g; task: cpus 1")},
    }};

const table default_profiles_rows{
    "default_profiles",
    default_of,
    {
        {"DF-2", "executor.cores=4", same("executor: cores 4, …")},
        {"DF-2", "", same("executor: cores 1, …")},
        {"DF-3", "", same("…, memory 1g…")},
        {"DF-3", "executor.memory=4g", same("…, memory 4g…")},
        {"DF-4", "executor.memory-overhead=1g", same("…, memory 1g, memoryOverhead 1g…")},
        {"DF-4", "executor.pyspark-memory=2g", same("…, pyspark.memory 2g; …")},
        {"DF-4", "", differs("…, memory 1g, offHeap 0b; …", "…, memory 1g; …")},
        {"DF-5", "executor.off-heap=3m", same("…, offHeap 3m; …")},
        {"DF-5", "", differs("…, memory 1g, offHeap 0b; …", "…, memory 1g; …")},
        {"DF-6", "",
         differs("executor: cores 1, memory 1g, offHeap 0b; task: cpus 1",
                 "executor: cores 1, memory 1g; task: cpus 1")},
        {"DF-6", "task.cpus=2, executor.cores=2", same("…; task: cpus 2")},
        {"DF-7", "executor.resource.gpu.amount=2, task.resource.gpu.amount=1", same("…, gpu 2; task: cpus 1, gpu 1")},
        {"DF-7", "executor.off-heap=1m, executor.resource.gpu.amount=0",
         same("executor: cores 1, memory 1g, offHeap 1m; task: cpus 1")},
        {"DF-7", "executor.resource.gpu.amount=1, task.resource.gpu.amount=0", same("…, gpu 1; task: cpus 1")},
        {"DF-8", "executor.resource.gpu.amount=1, task.resource.gpu.amount=0.7",
         differs("refused: …task resource amount 0.7 must be either <= 0.5…", "…; task: …gpu 0.7")},
        {"DF-8", "executor.resource.gpu.amount=1, task.resource.gpu.amount=2",
         same("refused: the default profile…gpu…")},
        {"DF-9",
         "executor.pyspark-memory=2g, executor.memory-overhead=1g, executor.memory=4g, executor.cores=4, "
         "executor.off-heap=3m, executor.resource.gpu.amount=1, executor.resource.gpu.discovery-script=/find, "
         "task.resource.gpu.amount=1",
         same("executor: cores 4, memory 4g, memoryOverhead 1g, offHeap 3m, pyspark.memory 2g, gpu 1; "
              "task: cpus 1, gpu 1")},
    }};

/// A profile completed by a default one that has something of everything.
std::string completed(const std::string& text, const profile_rules& rules) {
  auto registry = registry_with("cores 8, memory 2g, memoryOverhead 1g, offHeap 512m, gpu 2; cpus 2", rules);
  const auto known = registry.register_profile(profile_of(text));
  return known ? to_string(known->content) : refused(known.error());
}

const table inheritance_rows{
    "inheritance",
    completed,
    {
        {"DF-10", "memory 4g; cpus 1",
         same("executor: cores 8, memory 4g, memoryOverhead 1g, offHeap 512m; task: cpus 1")},
        {"DF-10", "cores 4, memoryOverhead 2g, offHeap 1g; cpus 1",
         same("executor: cores 4, memory 2g, memoryOverhead 2g, offHeap 1g; task: cpus 1")},
        {"DF-10", "cores 4, fpga 1; fpga 1",
         same("executor: cores 4, memory 2g, memoryOverhead 1g, offHeap 512m, fpga 1; task: cpus 2, fpga 1")},
        {"DF-15", "; gpu 1", same("executor: cores 8, …, gpu 2; task: cpus 2, gpu 1")},
    }};

/// The memory that an executor needs, which a host without any does not have.
std::string memory_on_a_host_without(profile_registry& registry, const std::string& text) {
  const auto known = registry.register_profile(profile_of(text));
  if (!known) return refused(known.error());
  carving_host host;
  host.name = "host";
  host.cores = 64;
  return carving{{host}, "a host without memory"}.check(known->content).sentence;
}

std::string memory_needed(const std::string& text, const profile_rules& rules) {
  auto registry = registry_with("cores 1; cpus 1", rules);
  return memory_on_a_host_without(registry, text);
}

const table executor_memory_rows{
    "executor_memory",
    memory_needed,
    {
        {"DF-11", "memory 64g; cpus 1", same("no host has 64g of memory: …")},
        {"DF-12", "memory 1g, memoryOverhead 150m; cpus 1", same("no host has 1174m of memory (…): …")},
        {"DF-13", "memory 1g, offHeap 42m; cpus 1", same("no host has 1066m of memory (…): …")},
        {"DF-13", "memory 1g, pyspark.memory 42m; cpus 1", same("no host has 1066m of memory (…): …")},
        {"DF-14", ";", same("no host has 1g of memory: …")},
        {"DF-14", "memory 2g, memoryOverhead 1g, offHeap 3g; cpus 1",
         same("no host has 6g of memory (memory 2g + memoryOverhead 1g + offHeap 3g): …")},
        {"DF-14", "memory 2g, memoryOverhead 1g, pyspark.memory 3g; cpus 1", same("no host has 6g of memory (…): …")},
    }};

/// The same beside the default profile of settings: `executor.memory=2g | memory 4g; cpus 1`.
std::string memory_by_settings(const std::string& text, const profile_rules& rules) {
  const auto bar = text.find('|');
  const auto s = settings_of(std::string_view{text}.substr(0, bar), rules);
  if (!s) return refused(s.error());
  const auto there = rules_of(*s, master_kind::local);
  auto defaults = default_profile(*s, there);
  if (!defaults) return refused(defaults.error());
  profile_registry registry{*std::move(defaults), there, overhead_rule_of(*s)};
  return memory_on_a_host_without(registry, text.substr(bar + 1));
}

const table configured_memory_rows{
    "configured_memory",
    memory_by_settings,
    {
        {"DF-11", "| memory 64g; cpus 1", same("no host has 64g of memory: …")},
        {"DF-11", "executor.memory-overhead-factor=0.1, executor.min-memory-overhead=384m | memory 64g; cpus 1",
         differs("no host has 65920m of memory (memory 64g + memoryOverhead 384m): …",
                 "no host has 72089m of memory (memory 64g + memoryOverhead 6553m): …")},
        {"DF-11",
         "executor.memory=64g, executor.memory-overhead-factor=0.1, executor.min-memory-overhead=384m | "
         "memory 1g; cpus 1",
         differs("no host has 7577m of memory (…): …", "no host has 1408m of memory (…): …")},
        {"DF-12", "executor.min-memory-overhead=500m | memory 1g, memoryOverhead 150m; cpus 1",
         same("no host has 1174m of memory (…): …")},
        {"DF-12", "executor.min-memory-overhead=500m, executor.memory-overhead=150m | memory 1g; cpus 1",
         same("no host has 1174m of memory (…): …")},
        {"DF-14", "executor.memory-overhead-factor=0.1, executor.min-memory-overhead=384m | ;",
         same("no host has 1408m of memory (…): …")},
        {"DF-14", "executor.memory-overhead-factor=0.1, executor.min-memory-overhead=384m, executor.off-heap=42m | ;",
         same("no host has 1450m of memory (…): …")},
        {"DF-14", "executor.memory-overhead-factor=0.1, executor.min-memory-overhead=500m | ;",
         same("no host has 1524m of memory (…): …")},
    }};

/// A task-only profile that asks for a gpu beside a default one with gpus: its executors, and its slots there.
std::string task_only(const std::string& text, profile_rules rules, bool dynamic) {
  rules.master = master_kind::local_cluster;
  rules.dynamic_allocation = dynamic;
  auto registry = registry_with("cores 8, gpu 2; cpus 1", rules);
  const auto known = registry.register_profile(profile_of(text));
  if (!known) return refused(known.error());
  const bool shared = known->shape == registry.profiles().front().shape;
  return std::string{shared ? "the default's executors" : "its own executors"} + ", gpu " +
         std::to_string(known->content.executor_amount("gpu"));
}

std::string gpu_with_dynamic(const profile_rules& rules) { return task_only("; gpu 1", rules, true); }
std::string gpu_without_dynamic(const profile_rules& rules) { return task_only("; gpu 1", rules, false); }
std::string cpus_with_dynamic(const profile_rules& rules) { return task_only("; cpus 2", rules, true); }

const table task_only_profiles_rows{
    "task_only_profiles",
    {
        {"DF-15", "2 cpus per task, with dynamic allocation", cpus_with_dynamic, differs("…, gpu 0", "…, gpu 2")},
        {"DF-15", "gpu 1 per task, without dynamic allocation", gpu_without_dynamic,
         same("the default's executors, gpu 2")},
        {"DF-16", "gpu 1 per task, with dynamic allocation", gpu_with_dynamic,
         differs("refused: No executor resource configs were specified for gpu…", "the default's executors, gpu 2")},
        {"DF-16", "2 cpus per task, with dynamic allocation", cpus_with_dynamic,
         differs("its own executors, gpu 0", "the default's executors, gpu 2")},
    }};

} // namespace
} // namespace troupe::conformance
