// What a profile is (DM) and when two are equal (ID).

#include <troupe/runtime/api/resource_profile_builder.hpp>
#include <troupe/runtime/discovery/resource_json.hpp>
#include <troupe/tests/conformance/profile_texts.hpp>
#include <troupe/tests/conformance/rule.hpp>

namespace troupe::conformance {
namespace {

std::string yes_or_no(bool yes) { return yes ? "yes" : "no"; }

std::string bytes_of(const std::string& size, const profile_rules&) {
  const auto bytes = parse_memory(size);
  return bytes ? std::to_string(*bytes) : refused(bytes.error());
}

const table memory_sizes_rows{"memory_sizes",
                              bytes_of,
                              {
                                  {"DM-5", "4096", same("4294967296")},
                                  {"DM-5", "7b", same("7")},
                                  {"DM-5", "3k", same("3072")},
                                  {"DM-5", "3KB", same("3072")},
                                  {"DM-5", "2000m", same("2097152000")},
                                  {"DM-5", "2Mb", same("2097152")},
                                  {"DM-5", "4G", same("4294967296")},
                                  {"DM-5", "1t", same("1099511627776")},
                                  {"DM-5", "1pb", same("1125899906842624")},
                                  {"DM-6", "4g", same("4294967296")},
                                  {"DM-6", "2000m", same("2097152000")},
                                  {"DM-6", "512000k", same("524288000")},
                                  {"DM-6", "1g", same("1073741824")},
                                  {"DM-6", "4096", same("4294967296")},
                                  {"DM-6", "1023k", same("1047552")},
                                  {"DM-7", "0.5g", same("refused: …0.5g…")},
                                  {"DM-7", "4x", same("refused: …4x…")},
                                  {"DM-7", "", same("refused: …")},
                              }};

std::string profile_text(const std::string& text, const profile_rules&) {
  const auto profile = built(text);
  return profile ? to_string(*profile) : refused(profile.error());
}

const table built_profiles_rows{
    "built_profiles",
    profile_text,
    {
        {"DM-1", "cores 1, gpu 9000000; cpus 1", same("executor: cores 1, gpu 9000000; task: cpus 1")},
        {"DM-1", "cores 1, gpu 9000001; cpus 1", same("refused: …gpu…9000001…largest count…")},
        {"DM-1", "cores 1, gpu-memory 2147483649b; cpus 1", same("executor: cores 1, gpu-memory 2147483649b; …")},
        {"DM-2", "cores 2, memory 4096, memoryOverhead 1g, offHeap 3m, pyspark.memory 2g, gpu 1; cpus 1, gpu 1",
         same("executor: cores 2, memory 4g, memoryOverhead 1g, offHeap 3m, pyspark.memory 2g, gpu 1; "
              "task: cpus 1, gpu 1")},
        {"DM-2", "cores 2, disk 3; cpus 1", same("executor: cores 2, disk 3; task: cpus 1")},
        {"DM-3", "cores 1, fpga 2; fpga 1", same("executor: cores 1, fpga 2; task: fpga 1")},
        {"DM-3", "cores 1, cpus 2; cpus 1", same("refused: executor resource cpus: …write cores")},
        {"DM-3", "cores 1; cores 1", same("refused: task resource cores: …tasks take cpus…")},
        {"DM-4", "cores 2, cores 4; cpus 2, cpus 1", same("executor: cores 4; task: cpus 1")},
        {"DM-8", "; gpu 0.2", same("task: gpu 0.2")},
        {"DM-9", "; gpu 0.33", same("task: gpu 0.33")},
        {"DM-9", "; gpu 0.7", same("task: gpu 0.7")},
        {"DM-9", "; gpu 1.0", same("task: gpu 1")},
        {"DM-9", "; gpu 2.0", same("task: gpu 2")},
        {"DM-9", "; gpu 4", same("task: gpu 4")},
        {"DM-9", "; gpu 1.5", same("refused: …gpu…1.5 must be either …1…whole number")},
        {"DM-12", "cores 4, gpu 1; gpu 0", same("refused: …gpu…0…")},
        {"DM-12", "cores 4, gpu 0; cpus 1", same("refused: …gpu: amount 0…")},
        {"DM-12", "cores 4, gpu -1; cpus 1", same("refused: …gpu: amount -1…")},
        {"DM-12", "cores 4, offHeap 0; cpus 1", same("executor: cores 4, offHeap 0b; task: cpus 1")},
        {"DM-12", "; gpu -0.5", same("refused: …gpu…-0.5…")},
        {"DM-12", "; gpu nan", same("refused: …gpu…nan…")},
        {"DM-13", "; cpus 0.3", same("task: cpus 0.3")},
        {"DM-13", "; cpus 1.5", same("task: cpus 1.5")},
        {"DM-13", "; cpus 1/3", same("task: cpus 1/3")},
        {"DM-13", "; cpus nan", same("refused: …cpus…nan…")},
        {"DM-13", "; cpus 0", same("refused: …cpus…0…")},
    }};

/// What the registry makes of a profile beside a default one with 8 cores and 2 gpus.
std::string registered(const std::string& text, const profile_rules& rules) {
  auto registry = registry_with("cores 8, gpu 2; cpus 1", rules);
  const auto known = registry.register_profile(profile_of(text));
  return known ? to_string(known->content.task_amount("gpu")) + " gpu, slots " +
                     std::to_string(registry.find(known->profile)->slots.slots)
               : refused(known.error());
}

const table fractions_rows{
    "fractions",
    registered,
    {
        {"DM-10", "cores 8, gpu 2; cpus 1, gpu 0.5", same("0.5 gpu, slots 4")},
        {"DM-10", "cores 8, gpu 2; cpus 1, gpu 0.7",
         differs("refused: …task resource amount 0.7 must be either <= 0.5…", "0.7 gpu, slots 2")},
        {"DM-10", "cores 8, gpu 2; cpus 1, gpu 2", same("2 gpu, slots 1")},
        {"DM-11", "; cpus 1, gpu 0.7", same("0.7 gpu, slots 2")},
        {"DM-13", "; cpus 0.3", same("0 gpu, slots 26")},
    }};

std::string amount_of_two_gibibytes(const profile_rules&) {
  // The amount of an event log test of Spark: more than 32 bits hold.
  return std::to_string(profile_of("memory 2147483649b; cpus 1").executor_amount("memory"));
}

std::string equality_of_requests(const profile_rules&) {
  const executor_request one{2, "./find", "nvidia"};
  std::string differ;
  for (const auto& [what, other] : std::map<std::string, executor_request>{{"amount", {3, "./find", "nvidia"}},
                                                                           {"copy", one},
                                                                           {"script", {2, "./seek", "nvidia"}},
                                                                           {"vendor", {2, "./find", "amd"}}})
    if (one != other) differ += (differ.empty() ? "" : ", ") + what;
  return differ;
}

std::string notes_on_a_slip(const profile_rules& rules) {
  auto registry = registry_with("cores 8; cpus 1", rules);
  const auto known = registry.register_profile(profile_of("cores 8, cpu 2; cpus 1, cpu 1"));
  std::string notes;
  for (const auto& note : known->notes) notes += note + ". ";
  return notes;
}

std::string a_copy_is_taken(const profile_rules&) {
  executor_resource_requests requests;
  requests.cores(2).memory("1g");
  resource_profile_builder builder;
  const auto profile = builder.require(requests).build();
  requests.cores(8);
  return std::to_string(profile.executor_amount("cores"));
}

std::string a_later_call_overrides(const profile_rules&) {
  resource_profile_builder builder;
  builder.require(executor_resource_requests{}.cores(2).memory("1g"));
  builder.require(task_resource_requests{}.cpus(1).resource("gpu", "0.5"));
  builder.require(executor_resource_requests{}.cores(4).resource("gpu", 1));
  builder.require(task_resource_requests{}.cpus(2));
  return to_string(builder.build());
}

std::string kind_of(const resource_profile& profile) { return profile.is_task_only() ? "task-only" : "full"; }

std::string kinds(const profile_rules&) {
  return kind_of(profile_of("; cpus 2")) + ", " + kind_of(profile_of(";")) + ", " + kind_of(profile_of("cores 1;"));
}

std::string two_builds(const profile_rules&) {
  resource_profile_builder builder;
  builder.require(executor_resource_requests{}.cores(2));
  return yes_or_no(builder.build() == builder.build());
}

std::string ids_of_two_builds(const profile_rules& rules) {
  auto registry = registry_with("cores 1; cpus 1", rules);
  resource_profile_builder builder;
  builder.require(executor_resource_requests{}.cores(2));
  const auto first = registry.register_profile(builder.build())->profile.value;
  return std::to_string(first) + ", " + std::to_string(registry.register_profile(builder.build())->profile.value);
}

std::string order_of_addresses(const profile_rules&) {
  const auto up = parse_resource_json(R"({"name": "gpu", "addresses": ["0", "1"]})");
  const auto down = parse_resource_json(R"({"name": "gpu", "addresses": ["1", "0"]})");
  const auto other = parse_resource_json(R"({"name": "fpga", "addresses": ["0", "1"]})");
  return yes_or_no(*up == *up) + ", " + yes_or_no(*up == *down) + ", " + yes_or_no(*up == *other);
}

const table data_model_rows{
    "data_model",
    {
        {"DM-1", "2 GiB and a byte of memory", amount_of_two_gibibytes, same("2147483649")},
        {"DM-1", "requests that differ in one field", equality_of_requests, same("amount, script, vendor")},
        {"DM-3", "an executor with cpu 2", notes_on_a_slip, same("executor resource cpu …cores?…")},
        {"DM-4", "requests that change after the profile was built", a_copy_is_taken, same("2")},
        {"DM-14", "an empty executor half, two empty halves, an executor half", kinds,
         same("task-only, task-only, full")},
        {"DM-15", "two calls for each half", a_later_call_overrides,
         same("executor: cores 4, memory 1g, gpu 1; task: cpus 2, gpu 0.5")},
        {"DM-16", "one builder builds twice: is the content equal?", two_builds, same("yes")},
        {"DM-16", "one builder builds twice: the ids", ids_of_two_builds, differs("1, 2", "1, 1")},
        {"DM-17", "same, other order, other name", order_of_addresses, same("yes, no, no")},
    }};

std::string read_answer(const std::string& text, const profile_rules&) {
  const auto found = parse_resource_json(text);
  if (!found) return refused(found.error());
  auto answer = found->name + ":";
  for (const auto& address : found->addresses) answer += " " + address;
  return answer;
}

const table discovery_answers_rows{
    "discovery_answers",
    read_answer,
    {
        {"DM-17", R"({"name": "gpu", "addresses": ["0", "1"]})", same("gpu: 0 1")},
        {"DM-18", R"({"name": "gpu"})", same("gpu:")},
        {"DM-18", R"({"addresses": ["0"]})",
         same(R"(refused: …{"addresses": ["0"]}…no name…{"name": "gpu", "addresses": ["0", "1"]})")},
        {"DM-18", "gpu 0 1", same(R"(refused: …gpu 0 1…{"name": "gpu", "addresses": ["0", "1"]})")},
        {"DM-19", R"({"name": "x", "addresses": ["f1", "10", "aa", "2"]})", same("x: f1 10 aa 2")},
        {"DM-19", R"({"name": "x", "addresses": ["a b"]})", same("refused: …no blank…")},
    }};

std::string ids_in_order(const profile_rules& rules) {
  auto registry = registry_with("cores 1; cpus 1", rules);
  std::string ids = std::to_string(registry.profiles().front().profile.value);
  for (const auto* text : {"cores 2; cpus 1", "cores 3; cpus 1"})
    ids += ", " + std::to_string(registry.register_profile(profile_of(text))->profile.value);
  return ids;
}

std::string id_of_an_early_profile(const profile_rules& rules) {
  const auto early = profile_of("cores 2; cpus 1");
  auto registry = registry_with("cores 1; cpus 1", rules);
  const auto known = registry.register_profile(early);
  return std::to_string(known->profile.value) + ", cores " + std::to_string(known->content.executor_amount("cores"));
}

std::string id_after_known_mergers(const profile_rules& rules) {
  auto registry = registry_with("cores 1; cpus 1", rules);
  const auto a = registry.register_profile(profile_of("cores 4; cpus 1"))->profile;
  const auto b = registry.register_profile(profile_of("cores 2; cpus 2"))->profile;
  const auto first = merge_all(registry, {a, b})->profile;
  const auto again = merge_all(registry, {a, b})->profile;
  const auto next = registry.register_profile(profile_of("cores 9; cpus 1"))->profile;
  return std::to_string(first.value) + ", " + std::to_string(again.value) + ", " + std::to_string(next.value);
}

std::string id_of_equal_halves(const profile_rules& rules) {
  auto registry = registry_with("cores 8; cpus 1", rules);
  const auto task_only = registry.register_profile(profile_of("; cpus 2"))->profile;
  const auto full = registry.register_profile(profile_of("cores 8; cpus 2"))->profile;
  return task_only == full ? "one profile" : "two profiles";
}

std::string equality_by_scripts(const profile_rules&) {
  const auto p = profile_of("gpu 1 ./find nvidia; gpu 1");
  return yes_or_no(p == profile_of("gpu 1 ./find nvidia; gpu 1")) + ", " +
         yes_or_no(p == profile_of("gpu 1 ./seek nvidia; gpu 1")) + ", " +
         yes_or_no(p == profile_of("gpu 1 ./find amd; gpu 1"));
}

std::string equality_by_kind(const profile_rules&) {
  return yes_or_no(profile_of("; gpu 1") == profile_of("gpu 1; gpu 1"));
}

const table ids_rows{
    "ids",
    {
        {"ID-1", "the default and two more", ids_in_order, same("0, 1, 2")},
        {"ID-3", "a profile that was built before the registry", id_of_an_early_profile, same("1, cores 2")},
        {"ID-4", "a merger, the same again, another profile", id_after_known_mergers, same("3, 3, 4")},
        {"ID-5", "equal content, built twice", ids_of_two_builds, differs("1, 2", "1, 1")},
        {"ID-6", "a task-only and a full profile of one task half", equality_by_kind, same("no")},
        {"ID-6", "a task-only profile, and a full one that says the same", id_of_equal_halves,
         differs("two profiles", "one profile")},
        {"ID-7", "same, other script, other vendor", equality_by_scripts, same("yes, no, no")},
    }};

} // namespace
} // namespace troupe::conformance
