#include "support.hpp"

#include <troupe/runtime/config/cluster_file.hpp>

namespace troupe::testing::cluster_file_tests {
namespace {

using ::testing::HasSubstr;

result<cluster_description> cluster(std::string_view text) {
  auto parsed = parse_yaml(text, "x.yaml");
  if (!parsed) return parsed.error();
  return read_cluster(*parsed, "/base");
}

std::string fault(std::string_view text) { return message_of(cluster(text)); }

constexpr std::string_view whole = R"(cluster:
  hosts:
    - {name: left, cores: 4, memory: 8g}
    - {name: right, cores: 2, memory: 4g, resources: {gpu: [a, b], fpga: 2, gpu-memory: 80g}}
  profiles:
    gpu: {executor: {cores: 1, resource: {gpu: {amount: 1}}}, task: {cpus: 1}}
  executors:
    - {profile: gpu, count: 2}
    - {profile: default}
  elastic: false
troupe: {executor: {cores: 2}}
)";

TEST(cluster_file, reads_hosts_profiles_and_executors) {
  const auto read = cluster(whole);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->hosts.size(), 2u);
  EXPECT_EQ(read->hosts[0].name, "left");
  EXPECT_EQ(read->hosts[0].cores, 4);
  EXPECT_EQ(read->hosts[0].memory, std::int64_t{8} << 30);
  EXPECT_TRUE(read->hosts[0].custom.empty());
  EXPECT_EQ(read->hosts[1].custom.at("gpu"), (resource_pool{2, {"a", "b"}}));
  EXPECT_EQ(read->hosts[1].custom.at("fpga"), (resource_pool{2, {"0", "1"}}));
  EXPECT_EQ(read->hosts[1].custom.at("gpu-memory"), (resource_pool{std::int64_t{80} << 30, {}, true}));
  EXPECT_EQ(read->hosts[0].machine, read->hosts[1].machine);
  EXPECT_FALSE(read->hosts[0].machine.empty());
  ASSERT_EQ(read->executors.size(), 2u);
  EXPECT_EQ(read->executors[0].profile_name, "gpu");
  EXPECT_EQ(read->executors[0].profile, read->profiles.at(0).content);
  EXPECT_EQ(read->executors[0].count, 2u);
  EXPECT_EQ(read->executors[1].profile, resource_profile{});
  EXPECT_EQ(read->executors[1].count, 1u);
  EXPECT_FALSE(read->elastic);
}

TEST(cluster_file, is_elastic_unless_it_says_otherwise) {
  const auto read = cluster("cluster: {hosts: [{name: a, cores: 1, memory: 1g}]}");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(read->elastic);
  EXPECT_TRUE(read->executors.empty());
}

TEST(cluster_file, errors_name_place_and_cure) {
  EXPECT_THAT(fault("troupe: {}"), HasSubstr("x.yaml:1: the file has no `cluster`; write cluster: {hosts:"));
  EXPECT_EQ(fault("cluster: {}\n"), "x.yaml:1: cluster has no hosts");
  EXPECT_THAT(fault("cluster: {hosts: []}"), HasSubstr("cluster.hosts must be a list such as"));
  EXPECT_EQ(fault("cluster:\n  hosts:\n    - {name: a, cores: 1}\n"), "x.yaml:3: cluster.hosts: a host has no memory");
  EXPECT_EQ(fault("cluster:\n  hosts:\n    - {name: a, cores: 01, memory: 1g}\n"),
            "x.yaml:3: cluster.hosts.cores = 01: must be a whole number from 1 to 9000000, without leading zeros");
  EXPECT_EQ(fault("cluster:\n  hosts:\n    - {name: a, core: 1, memory: 1g}\n"),
            "x.yaml:3: cluster.hosts has no field `core`; did you mean cores?");
  EXPECT_EQ(fault("cluster:\n  hosts:\n    - {name: a, cores: 1, memory: 1g}\n    - {name: a, cores: 1, memory: 1g}\n"),
            "x.yaml:4: there are two hosts of the name a");
  EXPECT_EQ(fault("cluster: {host: []}"), "x.yaml:1: cluster has no field `host`; did you mean hosts?");
  EXPECT_THAT(fault("cluster: {hosts: [{name: a, cores: 1, memory: 1g}], elastic: yes}"),
              HasSubstr("cluster.elastic = yes: must be true or false"));
  EXPECT_THAT(fault("cluster: {hosts: [{name: a, cores: 1, memory: 1g}], elastic: false}"),
              HasSubstr("the cluster could run nothing"));
  EXPECT_THAT(fault("cluster: {hosts: []}\nclusters: {}"), HasSubstr("x.yaml:2: the file has no field `clusters`"));
}

std::string fault_of_resources(const std::string& resources) {
  return fault("cluster: {hosts: [{name: a, cores: 1, memory: 1g, resources: " + resources + "}]}");
}

TEST(cluster_file, resources_are_addresses_or_a_number_of_fake_ones) {
  EXPECT_EQ(fault_of_resources("{gpu: 0}"), "x.yaml:1: cluster.hosts.resources.gpu = 0: must be a list of addresses, a "
                                            "number of fake ones from 1 to 1024, or "
                                            "a size such as 80g");
  EXPECT_THAT(fault_of_resources("{gpu: 0g}"), HasSubstr("gpu = 0g: must be a list"));
  EXPECT_THAT(fault_of_resources("{gpu: 1.5g}"), HasSubstr("gpu = 1.5g: must be a list"));
  EXPECT_THAT(fault_of_resources("{gpu: 02}"), HasSubstr("gpu = 02: must be a list"));
  EXPECT_THAT(fault_of_resources("{gpu: 5000}"), HasSubstr("gpu = 5000: must be"));
  EXPECT_THAT(fault_of_resources("{gpu: []}"), HasSubstr("gpu is an empty list"));
  EXPECT_THAT(fault_of_resources("{gpu: [a, a]}"), HasSubstr("x.yaml:1: "));
  EXPECT_THAT(fault_of_resources("{gpu: {amount: 1}}"), HasSubstr("gpu must be a list, not a map"));
  EXPECT_THAT(fault_of_resources("{cores: 1}"), HasSubstr("write cores or memory beside `resources`"));
  EXPECT_THAT(fault_of_resources("[gpu]"), HasSubstr("resources must be a map such as {gpu: [0, 1]}"));
}

std::string fault_of_executors(const std::string& executors) {
  return fault("cluster: {hosts: [{name: a, cores: 1, memory: 1g}], profiles: {gpu: {task: {cpus: 1}}}, executors: " +
               executors + "}");
}

TEST(cluster_file, executors_name_a_profile_and_a_count) {
  EXPECT_EQ(fault_of_executors("[{profile: gpus}]"), "x.yaml:1: there is no profile `gpus`; did you mean gpu?");
  EXPECT_EQ(fault_of_executors("[{count: 1}]"), "x.yaml:1: cluster.executors: an entry has no profile");
  EXPECT_EQ(fault_of_executors("[{profile: gpu, count: 0}]"),
            "x.yaml:1: cluster.executors.count = 0: must be a whole number from 1 to 10000");
  EXPECT_THAT(fault_of_executors("[{profile: gpu, count: [1]}]"), HasSubstr("must be a whole number"));
  EXPECT_THAT(fault_of_executors("[{profile: gpu, count: 6000}, {profile: gpu, count: 6000}]"),
              HasSubstr("more than 10000 in all"));
  EXPECT_THAT(fault_of_executors("{profile: gpu}"), HasSubstr("must be a list such as [{profile: gpu, count: 2}]"));
}

/// Says what is wrong with these executors on two hosts of four cores.
std::string lack_of(const std::string& executors) {
  const auto read = cluster("cluster:\n"
                            "  hosts: [{name: a, cores: 4, memory: 8g}, {name: b, cores: 4, memory: 8g}]\n"
                            "  profiles:\n"
                            "    cpu: {executor: {cores: 2, memory: 1g}, task: {cpus: 1}}\n"
                            "    wide: {executor: {cores: 3, memory: 1g}, task: {cpus: 1}}\n"
                            "    huge: {executor: {cores: 5, memory: 1g}, task: {cpus: 1}}\n"
                            "  executors:\n" +
                            executors);
  EXPECT_TRUE(read) << read.error().message;
  resource_profile defaults;
  defaults.executor["cores"].amount = 1;
  defaults.executor["memory"].amount = 1 << 30;
  const auto fit = check_room(*read, defaults, {}, "x.yaml");
  EXPECT_TRUE(fit || fit.error().code == ec::infeasible);
  return fit ? "" : fit.error().message;
}

TEST(cluster_file, executors_fit_the_hosts_all_together) {
  EXPECT_EQ(lack_of("    - {profile: cpu, count: 4}\n"), "");
  EXPECT_EQ(lack_of("    - {profile: wide, count: 2}\n    - {profile: default, count: 2}\n"), "");
  EXPECT_EQ(
      lack_of("    - {profile: cpu, count: 5}\n"),
      "x.yaml:8: cluster.executors: 5 executors of profile cpu need 10 cores, the hosts have 8 (missing: 2 cores)");
  EXPECT_EQ(
      lack_of("    - {profile: cpu, count: 3}\n    - {profile: default, count: 3}\n"),
      "x.yaml:9: cluster.executors: 3 executors of profile default need 3 cores, the hosts have 8, of which others "
      "take 6 (missing: 1 core)");
  EXPECT_EQ(lack_of("    - {profile: wide}\n    - {profile: wide}\n    - {profile: cpu}\n"),
            "x.yaml:10: cluster.executors: 1 executor of profile cpu needs 2 cores, 1g of memory on one host, and none "
            "has all of that left");
  EXPECT_EQ(lack_of("    - {profile: huge}\n"),
            "x.yaml:8: cluster.executors: 1 executor of profile huge fits no host: no host has 5 cores: the largest of "
            "2 hosts has 4 (cluster.hosts)");
}

TEST(local_cluster, has_equal_hosts_on_one_machine) {
  const auto hosts = cluster_of({2, 4, 1 << 30}, {{"gpu", {1, {"7"}}}}).hosts;
  ASSERT_EQ(hosts.size(), 2u);
  EXPECT_EQ(hosts[0].name, "host-1");
  EXPECT_EQ(hosts[1].name, "host-2");
  EXPECT_EQ(hosts[0].cores, 4);
  EXPECT_EQ(hosts[1].memory, 1 << 30);
  EXPECT_EQ(hosts[1].custom.at("gpu").addresses, std::vector<std::string>{"7"});
  EXPECT_EQ(hosts[0].machine, hosts[1].machine);
  for (const auto& host : hosts) EXPECT_TRUE(validate(host));
}

} // namespace
} // namespace troupe::testing::cluster_file_tests
