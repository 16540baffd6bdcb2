#include "support.hpp"

#include <troupe/runtime/config/profile_yaml.hpp>

namespace troupe::testing::profile_yaml_tests {
namespace {

using ::testing::HasSubstr;

result<std::vector<named_profile>> profiles_of(std::string_view text) {
  auto parsed = parse_yaml(text, "x.yaml");
  if (!parsed) return parsed.error();
  return read_profiles(*parsed, "/base");
}

std::string fault(std::string_view text) { return message_of(profiles_of(text)); }

/// Fault of one profile `p` in line 1.
std::string fault_of(const std::string& profile) { return fault("profiles: {p: " + profile + "}\n"); }

TEST(profile_yaml, reads_every_field) {
  const auto read = profiles_of(R"(profiles:
  gpu:
    executor: {cores: 4, memory: 8g, memory-overhead: 1g, off-heap: 512m, pyspark-memory: 2g,
               resource: {gpu-memory: {amount: 40g}, gpu: {amount: 2, discovery-script: bin/find, vendor: acme}}}
    task: {cpus: 1/2, memory: 1g, resource: {gpu: {amount: 0.25}, gpu-memory: {amount: 10g}}}
    max-tasks-per-executor: 3
    exclusive: true
    memory-ceiling: 16g
  light: {task: {cpus: 2}}
  alone: {exclusive: true}
)");
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), 3u);
  resource_profile gpu;
  gpu.executor["cores"].amount = 4;
  gpu.executor["memory"].amount = std::int64_t{8} << 30;
  gpu.executor["memoryOverhead"].amount = std::int64_t{1} << 30;
  gpu.executor["offHeap"].amount = 512 << 20;
  gpu.executor["pyspark.memory"].amount = std::int64_t{2} << 30;
  gpu.executor["gpu-memory"] = {std::int64_t{40} << 30, "", "", true};
  gpu.executor["gpu"] = {2, "/base/bin/find", "acme"};
  gpu.task["cpus"] = *parse_share("0.5");
  gpu.task["gpu"] = *parse_share("0.25");
  gpu.task["gpu-memory"] = share::whole(std::int64_t{10} << 30);
  gpu.task["memory"] = share::whole(std::int64_t{1} << 30);
  gpu.max_tasks_per_executor = 3;
  gpu.exclusive = true;
  gpu.memory_ceiling = std::int64_t{16} << 30;
  EXPECT_EQ(read->at(0), (named_profile{"gpu", gpu, 2}));
  EXPECT_TRUE(read->at(2).content.exclusive);
  EXPECT_EQ(read->at(1).name, "light");
  EXPECT_TRUE(read->at(1).content.is_task_only());
  EXPECT_EQ(find_profile(*read, "gpu", "x.yaml", 1).value(), gpu);
  EXPECT_EQ(find_profile(*read, "default", "x.yaml", 1).value(), resource_profile{});
  EXPECT_EQ(message_of(find_profile(*read, "gpus", "x.yaml", 9)),
            "x.yaml:9: there is no profile `gpus`; did you mean gpu?");
}

TEST(profile_yaml, is_found_in_a_cluster_file_too) {
  EXPECT_TRUE(profiles_of("cluster: {profiles: {p: {task: {cpus: 1}}}}"));
  EXPECT_EQ(fault("stages: {}\n"), "x.yaml:1: the file has no `profiles`");
}

TEST(profile_yaml, amounts_are_read_from_the_text) {
  EXPECT_EQ(
      fault("profiles:\n  p:\n    executor: {cores: 010}\n"),
      "x.yaml:3: profile p: executor.cores = 010: must be a whole number from 1 to 9000000, without leading zeros");
  EXPECT_EQ(fault_of("{executor: {memory: 1.5g}}"),
            "x.yaml:1: profile p: executor.memory = 1.5g: must be a memory size such as 512m or 2g, at "
            "least 1m, at most 1024p");
  EXPECT_EQ(fault_of("{task: {cpus: 0}}"),
            "x.yaml:1: profile p: task.cpus = 0: must be an amount above 0 such as 2, 0.5 or 1/3, of at most "
            "12 digits after the point");
  EXPECT_EQ(
      fault_of("{executor: {resource: {gpu: {amount: 0.5}}}}"),
      "x.yaml:1: profile p: executor.resource.gpu.amount = 0.5: must be a whole number up to 9000000 without leading "
      "zeros, or a size such as 40g; only tasks support fractional resources");
  EXPECT_THAT(fault_of("{executor: {cores: [1]}}"), HasSubstr("executor.cores must be a whole number"));
  EXPECT_THAT(fault_of("{executor: {cores: }}"), HasSubstr("executor.cores must be a whole number"));
}

TEST(profile_yaml, task_memory_and_bounds_are_checked) {
  EXPECT_THAT(fault_of("{task: {memory: 1.5g}}"),
              HasSubstr("x.yaml:1: profile p: task.memory = 1.5g: must be a memory size such as 512m or 2g"));
  EXPECT_THAT(fault_of("{executor: {memory: 8}}"), HasSubstr("executor.memory = 8: is 8 MiB, which is too little for"));
  EXPECT_THAT(fault_of("{task: {memory: 0}}"), HasSubstr("task resource memory: amount 0 must be more than zero"));
  EXPECT_THAT(fault_of("{executor: {memory: 1g}, task: {memory: 2g}}"),
              HasSubstr("The executor resource: memory, amount: 1g needs to be >= what one task takes of it: 2g"));
  EXPECT_THAT(fault_of("{task: {resource: {memory: {amount: 1g}}}}"),
              HasSubstr("is built in: write memory beside `resource`"));
  EXPECT_THAT(fault_of("{max-tasks-per-executor: 0}"),
              HasSubstr("profile p: max-tasks-per-executor = 0: must be a whole number from 1 to 9000000"));
  EXPECT_THAT(fault_of("{exclusive: maybe}"), HasSubstr("profile p: exclusive = maybe: must be true or false"));
  EXPECT_THAT(fault_of("{exclusive: false}"), HasSubstr("asks for nothing"));
}

TEST(profile_yaml, sizes_follow_the_rules_of_counted_resources) {
  EXPECT_THAT(fault_of("{executor: {cores: 1, resource: {m: {amount: 4g, discovery-script: find}}}}"),
              HasSubstr("x.yaml:1: profile p: executor resource m 4g: a size is counted and has no addresses"));
  EXPECT_THAT(fault_of("{executor: {cores: 1, resource: {m: {amount: 4g, vendor: acme}}}}"),
              HasSubstr("leave out the vendor"));
  EXPECT_THAT(fault_of("{executor: {cores: 1, resource: {m: {amount: 4g}}}, task: {resource: {m: {amount: 0.5}}}}"),
              HasSubstr("write a size such as 10g"));
  for (const std::string amount : {"0", "0g"}) {
    EXPECT_THAT(fault_of("{executor: {cores: 1, resource: {m: {amount: " + amount + "}}}}"),
                HasSubstr("executor resource m: amount 0 must be more than zero"))
        << "only settings drop it";
    EXPECT_THAT(fault_of("{task: {resource: {m: {amount: " + amount + "}}}}"),
                HasSubstr("task resource m: amount 0 must be more than zero"));
  }
}

TEST(profile_yaml, slips_of_form_and_spelling_are_explained) {
  EXPECT_EQ(fault_of("{executor: {core: 1}}"),
            "x.yaml:1: profile p: executor has no field `core`; did you mean cores?");
  EXPECT_EQ(fault_of("{executor: {memoryOverhead: 1g}}"),
            "x.yaml:1: profile p: executor has no field `memoryOverhead`; did you mean memory-overhead?");
  EXPECT_EQ(fault_of("{executors: {cores: 1}}"),
            "x.yaml:1: profile p has no field `executors`; did you mean executor?");
  EXPECT_EQ(fault_of("{executor: {resource: {gpu: 1}}}"),
            "x.yaml:1: profile p: executor.resource.gpu must be a map such as {amount: 1}");
  EXPECT_EQ(fault_of("{executor: {resource: [gpu]}}"),
            "x.yaml:1: profile p: executor.resource must be a map of names, such as {gpu: {amount: 1}}");
  EXPECT_EQ(fault_of("{executor: {resource: {gpu: {vendor: x}}}}"),
            "x.yaml:1: profile p: executor.resource.gpu has no amount");
  EXPECT_EQ(fault_of("{task: {resource: {gpu: {amount: 1, vendor: x}}}}"),
            "x.yaml:1: profile p: task.resource.gpu has no field `vendor`; valid here: amount");
  EXPECT_EQ(fault_of("{executor: {resource: {memory: {amount: 1}}}}"),
            "x.yaml:1: profile p: executor.resource.memory: is built in: write memory beside `resource`");
  EXPECT_THAT(fault_of("{executor: {resource: {memoryOverhead: {amount: 1}}}}"),
              HasSubstr("write memory-overhead beside `resource`"));
  EXPECT_THAT(fault_of("{task: {resource: {cpus: {amount: 1}}}}"), HasSubstr("tasks take cpus, executors have cores"));
  EXPECT_THAT(fault_of("{executor: {resource: {gpu: {amount: 1, discovery-script: []}}}}"),
              HasSubstr("discovery-script must be a text"));
  EXPECT_THAT(fault_of("{executor: {resource: {gpu: {amount: 1, vendor: ''}}}}"), HasSubstr("vendor is empty"));
}

TEST(profile_yaml, alternatives_are_profiles_of_the_file_by_name) {
  const auto profiles =
      profiles_of("profiles:\n"
                  "  fast: {executor: {cores: 1, resource: {gpu: {amount: 1}}}, task: {resource: {gpu: {amount: 1}}}, "
                  "alternatives: [wide, default]}\n"
                  "  wide: {executor: {cores: 16}, task: {cpus: 16}}\n"
                  "  one: {executor: {cores: 2}, alternatives: wide}\n");
  ASSERT_TRUE(profiles) << profiles.error().message;
  EXPECT_EQ((*profiles)[0].content.alternatives, (std::vector{(*profiles)[1].content, resource_profile{}}));
  EXPECT_EQ((*profiles)[2].content.alternatives, std::vector{(*profiles)[1].content});
  EXPECT_THAT(fault("profiles:\n  a: {executor: {cores: 1}, alternatives: [b]}\n  bb: {executor: {cores: 2}}\n"),
              HasSubstr("there is no profile `b`; did you mean bb?"));
  EXPECT_THAT(fault("profiles:\n  a: {executor: {cores: 1}, alternatives: {b: 1}}\n"),
              HasSubstr("profile a: alternatives must be a name or a list of names"));
  EXPECT_THAT(fault("profiles:\n  a: {executor: {cores: 1}, alternatives: [a]}\n"), HasSubstr("twice"));
}

TEST(profile_yaml, rules_of_profiles_are_checked_where_they_stand) {
  EXPECT_EQ(fault("profiles:\n  p:\n    {}\n"),
            "x.yaml:3: profile p asks for nothing; remove it and use the profile default");
  EXPECT_THAT(fault("profiles:\n  p:\n    executor: {cores: 1}\n    task: {cpus: 2}\n"),
              ::testing::StartsWith("x.yaml:3: profile p: The number of cores per executor (=1) has to be >="));
  EXPECT_THAT(fault_of("{executor: {cores: 1}, task: {resource: {gpu: {amount: 1}}}}"),
              HasSubstr("profile p: No executor resource configs were specified for gpu"));
  EXPECT_THAT(fault_of("{executor: {cores: 1, resource: {'g p': {amount: 1}}}}"),
              HasSubstr("profile p: executor resource"));
  EXPECT_THAT(fault_of("{executor: {memory-overhead: 0}}"), HasSubstr("must be more than zero"));
  EXPECT_EQ(fault("profiles: {default: {task: {cpus: 1}}}"),
            "x.yaml:1: profile default: the name stands for the cluster's own profile; choose another one");
  EXPECT_THAT(fault("profiles: [a]"), HasSubstr("profiles must be a map of names to profiles"));
  EXPECT_THAT(fault("profiles: {p: 1}"), HasSubstr("profile p must be a map, not the text `1`"));
}

} // namespace
} // namespace troupe::testing::profile_yaml_tests
