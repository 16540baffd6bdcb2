// The default profile, what others take from it, and how much memory an executor needs (DF).

#include <troupe/runtime/config/profile_settings.hpp>
#include <troupe/runtime/resources/carving.hpp>
#include <troupe/tests/conformance/profile_texts.hpp>
#include <troupe/tests/conformance/rule.hpp>

namespace troupe::conformance {
namespace {

/// Of settings written as `executor.cores=4, task.cpus=2`.
std::string default_of(const std::string& text, const profile_rules& rules) {
  settings_builder builder{"/base"};
  auto lines = parts_of(text, ',');
  lines.push_back("scheduler.profile-matching=" + std::string{to_string(rules.matching)});
  for (const auto& line : lines)
    if (auto ok = builder.add_argument("troupe." + line); !ok) return refused(ok.error());
  const auto built_settings = builder.build();
  if (!built_settings) return refused(built_settings.error());
  const auto profile = default_profile(*built_settings);
  return profile ? to_string(*profile) : refused(profile.error());
}

const table default_profiles_rows{
    "default_profiles",
    default_of,
    {
        {"DF-2", "executor.cores=4", same("executor: cores 4, …")},
        {"DF-2", "", in_compatible("executor: cores 1, …")},
        {"DF-3", "", same("…, memory 1g…")},
        {"DF-3", "executor.memory=4g", same("…, memory 4g…")},
        {"DF-4", "executor.memory-overhead=1g", same("…, memory 1g, memoryOverhead 1g…")},
        {"DF-4", "", in_compatible("…, memory 1g; …")},
        {"DF-5", "executor.off-heap=3m", same("…, offHeap 3m; …")},
        {"DF-5", "", in_compatible("…, memory 1g; …")},
        {"DF-6", "", in_compatible("executor: cores 1, memory 1g; task: cpus 1")},
        {"DF-6", "task.cpus=2, executor.cores=2", same("…; task: cpus 2")},
        {"DF-7", "executor.resource.gpu.amount=2, task.resource.gpu.amount=1", same("…, gpu 2; task: cpus 1, gpu 1")},
        {"DF-7", "executor.resource.gpu.amount=0", same("refused: …troupe.executor.resource.gpu.amount…0…")},
        {"DF-7", "executor.resource.gpu.amount=1, task.resource.gpu.amount=0",
         same("refused: …troupe.task.resource.gpu.amount…0…")},
        {"DF-8", "executor.resource.gpu.amount=1, task.resource.gpu.amount=0.7", in_compatible("…; task: …gpu 0.7")},
        {"DF-8", "executor.resource.gpu.amount=1, task.resource.gpu.amount=2",
         same("refused: the default profile…gpu…")},
        {"DF-9",
         "executor.cores=4, executor.memory=4g, executor.memory-overhead=1g, executor.off-heap=3m, "
         "executor.resource.gpu.amount=1, executor.resource.gpu.discovery-script=/find, task.resource.gpu.amount=1",
         same("executor: cores 4, memory 4g, memoryOverhead 1g, offHeap 3m, gpu 1; task: cpus 1, gpu 1")},
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
         in_compatible("executor: cores 8, memory 4g, memoryOverhead 1g, offHeap 512m; task: cpus 1")},
        {"DF-10", "cores 4, memoryOverhead 2g, offHeap 1g; cpus 1",
         in_compatible("executor: cores 4, memory 2g, memoryOverhead 2g, offHeap 1g; task: cpus 1")},
        {"DF-10", "cores 4, fpga 1; fpga 1",
         in_compatible("executor: cores 4, memory 2g, memoryOverhead 1g, offHeap 512m, fpga 1; task: cpus 2, fpga 1")},
        {"DF-15", "; gpu 1", in_compatible("executor: cores 8, …, gpu 2; task: cpus 2, gpu 1")},
    }};

/// The memory that an executor needs, which a host without any does not have.
std::string memory_needed(const std::string& text, const profile_rules& rules) {
  auto registry = registry_with("cores 1; cpus 1", rules);
  const auto known = registry.register_profile(profile_of(text));
  if (!known) return refused(known.error());
  carving_host host;
  host.name = "host";
  host.cores = 64;
  return carving{{host}, "a host without memory"}.check(known->content).sentence;
}

const table executor_memory_rows{
    "executor_memory",
    memory_needed,
    {
        {"DF-11", "memory 64g; cpus 1", in_compatible("no host has 64g of memory: …")},
        {"DF-12", "memory 1g, memoryOverhead 150m; cpus 1", in_compatible("no host has 1174m of memory (…): …")},
        {"DF-13", "memory 1g, offHeap 42m; cpus 1", in_compatible("no host has 1066m of memory (…): …")},
        {"DF-14", ";", in_compatible("no host has 1g of memory: …")},
        {"DF-14", "memory 2g, memoryOverhead 1g, offHeap 3g; cpus 1",
         in_compatible("no host has 6g of memory (memory 2g + memoryOverhead 1g + offHeap 3g): …")},
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

const table task_only_profiles_rows{"task_only_profiles",
                                    {
                                        {"DF-15", "gpu 1 per task, without dynamic allocation", gpu_without_dynamic,
                                         in_compatible("the default's executors, gpu 2")},
                                        {"DF-16", "gpu 1 per task, with dynamic allocation", gpu_with_dynamic,
                                         in_compatible("the default's executors, gpu 2")},
                                        {"DF-16", "2 cpus per task, with dynamic allocation", cpus_with_dynamic,
                                         in_compatible("the default's executors, gpu 2")},
                                    }};

} // namespace
} // namespace troupe::conformance
