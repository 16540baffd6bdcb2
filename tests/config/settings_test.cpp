#include "support.hpp"

#include <algorithm>

#include <troupe/runtime/config/profile_settings.hpp>

namespace troupe::testing::settings_tests {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::StartsWith;

std::string fault(std::string_view text) { return message_of(settings_of(text)); }

settings good(std::string_view text) {
  auto built = settings_of(text);
  EXPECT_TRUE(built) << built.error().message;
  return built ? *built : settings{};
}

result<settings> with_arguments(std::initializer_list<std::string_view> arguments) {
  settings_builder builder{"/base"};
  for (const auto argument : arguments) {
    if (auto added = builder.add_argument(argument); !added) return added.error();
  }
  return builder.build();
}

result<settings> with_environment(std::vector<const char*> variables) {
  variables.push_back(nullptr);
  settings_builder builder{"/base"};
  if (auto added = builder.add_environment(variables.data()); !added) return added.error();
  return builder.build();
}

TEST(settings, have_documented_defaults) {
  const settings s;
  EXPECT_EQ(s.get(keys::task_max_failures), 4);
  EXPECT_EQ(s.get(keys::executor_heartbeat_interval), 1s);
  EXPECT_EQ(s.get(keys::executor_heartbeat_timeout), 10s);
  EXPECT_EQ(s.get(keys::executor_driver_timeout), 6s);
  EXPECT_EQ(s.get(keys::executor_memory), std::int64_t{1} << 30);
  EXPECT_EQ(s.get(keys::task_max_inline_result), 1 << 20);
  EXPECT_EQ(s.get(keys::task_cpus), share::whole(1));
  EXPECT_EQ(s.get(keys::driver_bind_address), "127.0.0.1");
  EXPECT_FALSE(s.get(keys::security_insecure));
  EXPECT_TRUE(s.get(keys::dynamic_allocation_enabled));
  EXPECT_EQ(s.get(keys::scheduler_profile_change), "auto");
  EXPECT_THAT(s.get(keys::log_level_of), IsEmpty());
  EXPECT_EQ(to_string(s.origin_of("troupe.task.cpus")), "default");
}

TEST(settings, nested_and_dotted_keys_are_equal) {
  for (const std::string_view text :
       {"troupe: {executor: {cores: 2}}", "troupe.executor.cores: 2", "troupe.executor: {cores: 2}",
        "troupe:\n  executor.cores: 2\n", "troupe:\n  executor:\n    cores: '2'\n"}) {
    EXPECT_EQ(good(text).get(keys::executor_cores), 2) << text;
  }
}

TEST(settings, one_key_in_two_spellings_is_an_error) {
  EXPECT_EQ(fault("troupe.executor.cores: 2\ntroupe:\n  executor: {cores: 3}\n"),
            "x.yaml:3: troupe.executor.cores is given twice; the first one is in line 1");
  EXPECT_THAT(fault("caf.a.b: 1\ncaf:\n  a: {b: 2}\n"), HasSubstr("x.yaml:3: caf.a.b is given twice"));
}

TEST(settings, a_key_may_have_a_value_and_members) {
  const auto s = good("troupe:\n  log:\n    level: warn\n    level.driver: debug\n    level.dag-scheduler: trace\n");
  EXPECT_EQ(s.get(keys::log_level), "warn");
  EXPECT_THAT(s.get(keys::log_level_of), ElementsAre(Pair("dag-scheduler", "trace"), Pair("driver", "debug")));
}

TEST(settings, unknown_keys_name_place_and_nearest_key) {
  EXPECT_EQ(fault("troupe:\n  executor:\n    core: 2\n"),
            "x.yaml:3: troupe.executor.core = 2: there is no such key; did you mean troupe.executor.cores?");
  EXPECT_EQ(message_of(with_arguments({"troupe.executor.core=2"})),
            "--conf: troupe.executor.core = 2: there is no such key; did you mean troupe.executor.cores?");
  EXPECT_EQ(message_of(with_environment({"TROUPE_CONF_EXECUTOR_CORE=2"})),
            "there is no key for the environment variable TROUPE_CONF_EXECUTOR_CORE; did you mean "
            "TROUPE_CONF_EXECUTOR_CORES?");
  EXPECT_THAT(fault("troupe: {executor: {cores: {a: 1}}}"),
              HasSubstr("troupe.executor.cores.a = 1: there is no such key"));
  EXPECT_THAT(fault("troupe: {exeutor: {}}"), HasSubstr("troupe.exeutor: there is no such key"));
}

TEST(settings, bad_values_name_place_key_value_and_what_is_allowed) {
  EXPECT_EQ(fault("troupe:\n  executor:\n    cores: 010\n"),
            "x.yaml:3: troupe.executor.cores = 010: must be a whole number from 1 to 9000000, without leading zeros");
  EXPECT_EQ(fault("troupe.scheduler.profile-change: slice\n"),
            "x.yaml:1: troupe.scheduler.profile-change = slice: must be one of auto, cut, error, merge");
  EXPECT_EQ(message_of(with_arguments({"troupe.executor.heartbeat-interval=5"})),
            "--conf: troupe.executor.heartbeat-interval = 5: must be a time such as 500ms, 10s or 5min, from 10ms to "
            "1000d");
  EXPECT_EQ(message_of(with_environment({"TROUPE_CONF_EXECUTOR_MEMORY=1.5g"})),
            "environment variable TROUPE_CONF_EXECUTOR_MEMORY: troupe.executor.memory = 1.5g: must be a memory size "
            "such as 512m or 2g, at least 1m, at most 1024p");
  EXPECT_THAT(fault("troupe.security.insecure: yes"), HasSubstr("must be true or false"));
}

/// A number alone counts MiB, as with Spark; so few are somebody's GiB.
TEST(settings, of_executors_memory_name_their_unit_where_they_are_small) {
  EXPECT_EQ(
      message_of(with_arguments({"troupe.executor.memory=8"})),
      "--conf: troupe.executor.memory = 8: is 8 MiB, which is too little for any executor: write 8g for GiB, or 8m "
      "if that is meant");
  EXPECT_EQ(good("troupe.executor.memory: 8m\n").get(keys::executor_memory), 8 << 20);
  EXPECT_EQ(good("troupe.executor.memory: 64\n").get(keys::executor_memory), 64 << 20);
  EXPECT_EQ(good("troupe.executor.memory-overhead: 8\n").get(keys::executor_memory_overhead), 8 << 20);
}

TEST(settings, shapes_that_do_not_fit_are_errors) {
  EXPECT_EQ(
      fault("troupe.executor.cores:\n"),
      "x.yaml:1: troupe.executor.cores has no value; it must be a whole number from 1 to 9000000, without leading "
      "zeros");
  EXPECT_THAT(fault("troupe.executor.cores: [1]\n"), HasSubstr("troupe.executor.cores is a list; it must be a whole"));
  EXPECT_THAT(fault("troupe.executor.cores: {}\n"), HasSubstr("troupe.executor.cores has no value"));
  EXPECT_THAT(fault("troupe: 3\n"), HasSubstr("troupe must be a map"));
  EXPECT_THAT(fault("troupe: [a]\n"), HasSubstr("troupe must be a map"));
  EXPECT_THAT(fault("troupe.executor.resource.gpu.addresses: [[0]]"), HasSubstr("an element must be a text"));
  EXPECT_THAT(fault("troupe.executor.resource.gpu.addresses: ['a,b']"), HasSubstr("without a comma"));
  EXPECT_THAT(fault("troupe.executor.resource.gpu.addresses: ['']"), HasSubstr("an element is empty"));
  EXPECT_THAT(fault("troupe.executor.resource.gpu.addresses: []"), HasSubstr("must be a list of texts"));
}

TEST(settings, empty_sections_are_allowed) {
  EXPECT_EQ(good("troupe:\ncaf:\n").explain(), settings{}.explain());
  EXPECT_EQ(good("troupe: {executor: {}}\ncaf: {}\n").explain(), settings{}.explain());
}

TEST(settings, stronger_origins_win_whatever_the_order) {
  const auto file = document("troupe: {executor: {cores: 2}, task: {max-failures: 2}, driver: {port: 2}}\n");
  const char* environment[] = {"TROUPE_CONF_TASK_MAX_FAILURES=3", "TROUPE_CONF_DRIVER_PORT=3", "HOME=/x", nullptr};
  for (const bool reversed : {false, true}) {
    settings_builder builder{"/base"};
    const auto add = [&](int layer) -> result<void> {
      if (layer == 0) return builder.add_file(file);
      if (layer == 1) return builder.add_environment(environment);
      return builder.add_argument("troupe.driver.port=4");
    };
    for (const int i : {0, 1, 2}) ASSERT_TRUE(add(reversed ? 2 - i : i));
    const auto s = builder.build();
    ASSERT_TRUE(s) << s.error().message;
    EXPECT_EQ(s->get(keys::executor_cores), 2);
    EXPECT_EQ(to_string(s->origin_of("troupe.executor.cores")), "x.yaml:1");
    EXPECT_EQ(s->get(keys::task_max_failures), 3);
    EXPECT_EQ(to_string(s->origin_of("troupe.task.max-failures")),
              "environment variable TROUPE_CONF_TASK_MAX_FAILURES");
    EXPECT_EQ(s->get(keys::driver_port), 4);
    EXPECT_EQ(to_string(s->origin_of("troupe.driver.port")), "--conf");
  }
}

TEST(settings, of_one_origin_the_last_wins) {
  EXPECT_EQ(with_arguments({"troupe.driver.port=1", "troupe.driver.port=2"})->get(keys::driver_port), 2);
}

TEST(settings, arguments_must_be_assignments) {
  EXPECT_EQ(message_of(with_arguments({"troupe.driver.port"})), "--conf: `troupe.driver.port` must be key=value");
  EXPECT_EQ(message_of(with_arguments({"=3"})), "--conf: `=3` must be key=value");
  EXPECT_EQ(with_arguments({"troupe.app.name=a=b"})->get(keys::app_name), "a=b");
}

TEST(settings, only_variables_with_the_prefix_are_settings) {
  const auto s = with_environment({"TROUPE_ATTEMPT=1", "TROUPE_CONFX=1", "PATH=/bin", "TROUPE_CONF_PROGRESS=plain"});
  ASSERT_TRUE(s) << s.error().message;
  EXPECT_EQ(s->get(keys::progress), "plain");
  EXPECT_FALSE(with_environment({"TROUPE_CONF_PROGRESS"}));
}

TEST(settings, relative_paths_start_where_they_are_written) {
  settings_builder builder{"/base"};
  auto file = document("troupe: {security: {secret-file: keys/../secret}, local: {dir: [/abs, here]}}\n");
  file.file = "sub/x.yaml";
  ASSERT_TRUE(builder.add_file(file));
  ASSERT_TRUE(builder.add_argument("troupe.run-directory=runs"));
  const auto s = builder.build();
  ASSERT_TRUE(s);
  EXPECT_EQ(s->get(keys::security_secret_file), "/base/sub/secret");
  EXPECT_EQ(s->get(keys::local_dir), (std::vector<std::string>{"/abs", "/base/sub/here"}));
  EXPECT_EQ(s->get(keys::run_directory), "/base/runs");
  EXPECT_EQ(settings{}.get(keys::run_directory), "");
  EXPECT_EQ(settings{}.get(keys::local_dir), std::vector<std::string>{});
}

TEST(settings, of_paths_are_expanded_once) {
  ::setenv("TROUPE_TEST_PLACE", "/a place/$HOME", 1);
  settings_builder builder{"/base"};
  ASSERT_TRUE(builder.add_file(
      document("troupe: {local.dir: [/abs, '${TROUPE_TEST_PLACE}/b'], event-log.directory: $TROUPE_TEST_PLACE}\n")));
  ASSERT_TRUE(builder.add_argument("troupe.run-directory=$TROUPE_TEST_PLACE/runs"));
  const auto s = builder.build();
  ASSERT_TRUE(s);
  EXPECT_EQ(s->get(keys::local_dir), (std::vector<std::string>{"/abs", "/a place/$HOME/b"}));
  EXPECT_EQ(s->get(keys::event_log_directory), "/a place/$HOME");
  EXPECT_EQ(s->get(keys::run_directory), "/a place/$HOME/runs");
  settings_builder elsewhere{"/base", expand_nothing()};
  ASSERT_TRUE(elsewhere.add_file(document(s->to_yaml())));
  EXPECT_EQ(elsewhere.build()->get(keys::run_directory), "/a place/$HOME/runs");
  ::unsetenv("TROUPE_TEST_PLACE");
  EXPECT_THAT(fault("troupe.run-directory: $TROUPE_TEST_PLACE/runs"),
              HasSubstr("troupe.run-directory = $TROUPE_TEST_PLACE/runs: the variable TROUPE_TEST_PLACE is not set"));
  EXPECT_THAT(fault("troupe.local.dir: [/a, ~you/b]"), HasSubstr("write its path"));
}

TEST(settings, say_how_blocks_are_compressed) {
  std::string text;
  for (unsigned i = 0, seed = 1; i < 20'000; ++i)
    text += static_cast<char>('a' + (seed = seed * 1664525 + 1013904223) % 7 % 5);
  const auto size_with = [&](const std::string& conf) {
    std::string page;
    page_sealer::begin(page);
    page += text;
    page_sealer{compression_of(good(conf))}.seal(page);
    return page.size();
  };
  EXPECT_GT(size_with("troupe.io.compression.codec: none\n"), text.size());
  EXPECT_LT(size_with("troupe.io.compression.codec: lz4\n"), text.size());
  EXPECT_LT(size_with("troupe.io.compression.codec: zstd\n"), size_with("troupe.io.compression.codec: lz4\n"));
  EXPECT_LT(size_with("troupe.io.compression.codec: zstd\ntroupe.io.compression.level: 19\n"),
            size_with("troupe.io.compression.codec: zstd\n"));
}

TEST(settings, pass_the_caf_section_on) {
  const auto s = good("caf:\n  scheduler: {policy: sharing, max-threads: 2}\n  middleman.workers: 0\n");
  std::map<std::string, std::string> given;
  for (const auto& [key, set] : s.caf()) given[key] = to_string(set.origin) + " " + set.text;
  EXPECT_THAT(given, ElementsAre(Pair("middleman.workers", "x.yaml:3 0"), Pair("scheduler.max-threads", "x.yaml:2 2"),
                                 Pair("scheduler.policy", "x.yaml:2 sharing")));
  EXPECT_THAT(fault("caf: {a: [1]}"), HasSubstr("x.yaml:1: caf.a must have one text"));
  EXPECT_THAT(fault("caf: {a: }"), HasSubstr("caf.a must have one text"));
  EXPECT_THAT(fault("caf: 1"), HasSubstr("caf must be a map"));
}

TEST(settings, explain_lists_every_key_by_name_with_its_origin) {
  const auto s = good("troupe:\n  executor.resource.gpu.amount: 2\ncaf: {x: 1}\n");
  const auto lines = s.explain();
  EXPECT_TRUE(std::is_sorted(lines.begin(), lines.end(), [](auto& a, auto& b) { return a.name < b.name; }));
  std::size_t fixed = 0;
  for (const auto& entry : schema()) fixed += entry.is_family() ? 0 : 1;
  EXPECT_EQ(lines.size(), fixed + 2);
  const setting_origin here{origin_kind::file, "x.yaml:2"};
  EXPECT_NE(std::find(lines.begin(), lines.end(), explained_setting{"troupe.executor.resource.gpu.amount", "2", here}),
            lines.end());
  EXPECT_NE(std::find(lines.begin(), lines.end(), explained_setting{"troupe.executor.heartbeat-timeout", "10s", {}}),
            lines.end());
  EXPECT_NE(std::find(lines.begin(), lines.end(), explained_setting{"caf.x", "1", {origin_kind::file, "x.yaml:3"}}),
            lines.end());
}

TEST(settings, written_as_a_file_give_the_same_settings) {
  auto first = good("troupe: {executor: {cores: 3, resource: {gpu: {addresses: [a, b]}}}, task.cpus: 1/3,\n"
                    "  app.name: \"it's # not: {simple}\", local.dir: [/s, /t]}\ncaf: {x.y: \"true\"}\n");
  const auto second = good(first.to_yaml());
  const auto a = first.explain();
  const auto b = second.explain();
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].name, b[i].name);
    EXPECT_EQ(a[i].value, b[i].value);
  }
  EXPECT_EQ(good(settings{}.to_yaml()).explain(), settings{}.explain());
  settings_builder of_program{"/base"};
  ASSERT_TRUE(of_program.add_default("troupe.task.max-failures=7"));
  EXPECT_EQ(good(of_program.build()->to_yaml()).get(keys::task_max_failures), 7) << "a default of the program's own";
}

TEST(settings, an_unknown_constant_is_a_defect) {
  EXPECT_THROW((void) settings{}.get(key<bool>{"troupe.none"}), std::logic_error);
}

TEST(settings, addresses_beyond_loopback_need_consent) {
  EXPECT_EQ(fault("troupe.driver.bind-address: 0.0.0.0"),
            "x.yaml:1: troupe.driver.bind-address = 0.0.0.0: is not a loopback address, and the traffic is not "
            "encrypted; use 127.0.0.1, or set troupe.security.insecure = true if everybody on that network may be "
            "trusted");
  EXPECT_THAT(fault("troupe.executor.bind-address: 10.0.0.1"), HasSubstr("troupe.executor.bind-address = 10.0.0.1"));
  EXPECT_THAT(fault("troupe.driver.bind-address: '::'"), HasSubstr("not a loopback"));
  EXPECT_THAT(fault("troupe.driver.bind-address: 300.1.1.1"), HasSubstr("must be an address or a host name"));
  for (const std::string_view address : {"127.0.0.1", "127.9.9.9", "::1", "localhost"})
    EXPECT_TRUE(with_arguments({"troupe.driver.bind-address=" + std::string{address}})) << address;
  EXPECT_TRUE(settings_of("troupe: {driver.bind-address: 0.0.0.0, security.insecure: true}"));
}

TEST(settings, a_heartbeat_is_due_at_least_three_times_before_an_executor_is_lost) {
  EXPECT_EQ(fault("troupe.executor.heartbeat-interval: 4s"),
            "x.yaml:1: troupe.executor.heartbeat-timeout = 10s: must be at least three times "
            "troupe.executor.heartbeat-interval = 4s");
  EXPECT_TRUE(settings_of("troupe.executor.heartbeat-interval: 3s"));
}

TEST(settings, the_master_is_checked) {
  EXPECT_THAT(message_of(with_arguments({"troupe.master=local[0]"})),
              StartsWith("--conf: troupe.master = local[0]: `local[0]` must name from 1 to 100000 cores, or *; valid"));
}

TEST(pools, are_what_the_settings_say) {
  EXPECT_EQ(sharing_of(settings{}), sharing_options{});
  const auto s = with_arguments({"troupe.scheduler.mode=fair", "troupe.scheduler.pools.etl.weight=3",
                                 "troupe.scheduler.pools.etl.min-share=2", "troupe.scheduler.pools.web.mode=fair"});
  ASSERT_TRUE(s) << s.error().message;
  const auto sharing = sharing_of(*s);
  EXPECT_EQ(sharing.mode, sharing_mode::fair);
  EXPECT_EQ(sharing.pools.at("etl"), (pool_options{sharing_mode::fifo, 3, 2}));
  EXPECT_EQ(sharing.pools.at("web"), (pool_options{sharing_mode::fair, 1, 0}));
  EXPECT_THAT(message_of(with_arguments({"troupe.scheduler.pools.etl.weight=0"})), HasSubstr("from 1 to 1000000"));
  EXPECT_THAT(message_of(with_arguments({"troupe.scheduler.pools.etl.wait=1"})), HasSubstr("pools.etl.weight"));
}

TEST(default_profile, holds_what_the_settings_say) {
  const auto profile = default_profile(
      good("troupe: {executor: {cores: 4, memory: 2g, memory-overhead: 1g, off-heap: 3m, pyspark-memory: 5m, resource: "
           "{gpu: {amount: 2, "
           "discovery-script: find.sh, vendor: acme}, fpga: {addresses: [f1]}}}, task: {cpus: 0.5, resource: {gpu: "
           "{amount: 1/3}}}}"));
  ASSERT_TRUE(profile) << profile.error().message;
  resource_profile expected;
  expected.executor["cores"].amount = 4;
  expected.executor["memory"].amount = std::int64_t{2} << 30;
  expected.executor["memoryOverhead"].amount = std::int64_t{1} << 30;
  expected.executor["offHeap"].amount = 3 << 20;
  expected.executor["pyspark.memory"].amount = 5 << 20;
  expected.executor["gpu"] = {2, "/base/find.sh", "acme"};
  expected.executor["fpga"].amount = 1;
  expected.task["cpus"] = *parse_share("0.5");
  expected.task["gpu"] = *parse_share("1/3");
  EXPECT_EQ(*profile, expected);
}

TEST(default_profile, without_settings_is_sparks) {
  const auto profile = default_profile(settings{});
  ASSERT_TRUE(profile);
  EXPECT_EQ(to_string(*profile), "executor: cores 1, memory 1g; task: cpus 1");
}

TEST(default_profile, has_cores_for_one_task_unless_it_is_told_how_many) {
  const auto with = [](std::initializer_list<std::string_view> words) {
    const auto s = with_arguments(words);
    return s ? to_string(*default_profile(*s)) : s.error().message;
  };
  EXPECT_EQ(with({"troupe.task.cpus=2.5"}), "executor: cores 3, memory 1g; task: cpus 2.5");
  EXPECT_EQ(with({"troupe.task.cpus=0.5"}), "executor: cores 1, memory 1g; task: cpus 0.5");
  EXPECT_EQ(with({"troupe.task.cpus=2", "troupe.executor.cores=4"}), "executor: cores 4, memory 1g; task: cpus 2");
  EXPECT_THAT(with({"troupe.task.cpus=2", "troupe.executor.cores=1"}), HasSubstr("cores per executor (=1)"));
  EXPECT_THAT(with({"troupe.task.cpus=2", "troupe.scheduler.profile-matching=exact"}),
              HasSubstr("cores per executor (=1)"))
      << "as Spark";
}

TEST(default_profile, under_exact_matching_is_sparks_to_the_clause) {
  const auto on = [](master_kind master, std::string_view more = "troupe.app.name=x") {
    const auto s = with_arguments({"troupe.scheduler.profile-matching=exact", more});
    return to_string(*default_profile(*s, rules_of(*s, master)));
  };
  EXPECT_EQ(on(master_kind::local), "executor: cores 1, memory 1g, offHeap 0b; task: cpus 1");
  EXPECT_EQ(on(master_kind::yarn), "executor: cores 1, memory 1g, offHeap 0b; task: cpus 1");
  EXPECT_EQ(on(master_kind::local_cluster), "executor: memory 1g, offHeap 0b; task: cpus 1");
  EXPECT_EQ(on(master_kind::local_cluster, "troupe.executor.cores=1"),
            "executor: cores 1, memory 1g, offHeap 0b; task: cpus 1");
  EXPECT_THAT(
      message_of(with_arguments({"troupe.scheduler.profile-matching=exact", "troupe.executor.resource.gpu.amount=1",
                                 "troupe.task.resource.gpu.amount=0.7"})),
      HasSubstr("must be either <= 0.5"));
}

TEST(default_profile, says_what_the_rules_for_profiles_depend_on) {
  const auto s = with_arguments({"troupe.scheduler.profile-matching=exact", "troupe.scheduler.support-matrix=spark",
                                 "troupe.dynamic-allocation.enabled=false", "troupe.executor.cores=2"});
  const auto rules = rules_of(*s, master_kind::node_agents);
  EXPECT_TRUE(rules.is_exact());
  EXPECT_EQ(rules.support, support_matrix::spark);
  EXPECT_EQ(rules.master, master_kind::node_agents);
  EXPECT_FALSE(rules.dynamic_allocation);
  EXPECT_TRUE(rules.cores_configured);
  EXPECT_FALSE(rules_of(settings{}, master_kind::local).is_dynamic()) << "a local master counts as without";
  EXPECT_TRUE(rules_of(settings{}, master_kind::local_cluster).is_dynamic());
}

TEST(default_profile, rules_are_checked_when_settings_are_built) {
  EXPECT_EQ(fault("troupe.executor.resource.gpu.vendor: acme"),
            "x.yaml:1: troupe.executor.resource.gpu.vendor: the amount is missing; set "
            "troupe.executor.resource.gpu.amount");
  EXPECT_EQ(fault("troupe.executor.resource.gpu: {amount: 3, addresses: [0, 1]}"),
            "x.yaml:1: troupe.executor.resource.gpu.addresses: there are 2 addresses, but the amount is 3");
  EXPECT_THAT(fault("troupe.executor.resource.gpu.addresses: [0, 0]"), HasSubstr("an address is given twice"));
  EXPECT_EQ(fault("troupe.executor.resource.cores.amount: 3"),
            "x.yaml:1: troupe.executor.resource.cores.amount: is built in: write cores beside `resource`");
  EXPECT_THAT(fault("troupe.task.resource.cpus.amount: 3"), HasSubstr("troupe.task.resource.cpus.amount: is built in"));
  EXPECT_THAT(fault("troupe.task.resource.gpu.amount: 1"), HasSubstr("the default profile (troupe.executor.*"));
  EXPECT_THAT(fault("troupe: {executor: {cores: 1}, task: {cpus: 2}}"), HasSubstr("cpus"));
}

TEST(default_profile, has_sizes_that_are_counted) {
  const auto s = good("troupe.executor.resource.gpu-memory.amount: 40g\ntroupe.task.resource.gpu-memory.amount: 10g");
  EXPECT_EQ(to_string(default_profile(s).value()),
            "executor: cores 1, memory 1g, gpu-memory 40g; task: cpus 1, gpu-memory 10g");
  EXPECT_TRUE(default_profile(s)->is_counted("gpu-memory"));
  EXPECT_TRUE(executor_resources(s)->at("gpu-memory").counted);
  EXPECT_THAT(s.to_yaml(), HasSubstr("troupe.executor.resource.gpu-memory.amount: '40g'"));
  for (const std::string field : {"addresses: [a]", "discovery-script: find", "vendor: acme"})
    EXPECT_THAT(fault("troupe.executor.resource.m: {amount: 4g, " + field + "}"),
                HasSubstr("troupe.executor.resource.m." + field.substr(0, field.find(':')) +
                          ": the amount is 4g, a size, which is counted and has no addresses; leave this key out"));
}

TEST(default_profile, drops_amounts_of_zero_on_their_side) {
  const std::string_view plain = "executor: cores 1, memory 1g; task: cpus 1";
  for (const std::string zero : {"0", "0g"}) {
    const auto s = good("troupe.executor.resource.fpga: {amount: " + zero +
                        ", discovery-script: find, vendor: v}\ntroupe.task.resource.fpga.amount: " + zero);
    EXPECT_EQ(to_string(default_profile(s).value()), plain);
    EXPECT_TRUE(executor_resources(s)->empty()) << "so no script of it is run";
  }
  EXPECT_EQ(
      to_string(default_profile(good("troupe: {executor: {resource: {fpga: {amount: 2}}}, task: {resource: {fpga: "
                                     "{amount: 0}}}}"))
                    .value()),
      "executor: cores 1, memory 1g, fpga 2; task: cpus 1");
  EXPECT_THAT(fault("troupe: {executor: {resource: {fpga: {amount: 0}}}, task: {resource: {fpga: {amount: 1}}}}"),
              HasSubstr("No executor resource configs were specified for fpga"));
  EXPECT_THAT(fault("troupe.executor.resource.cores.amount: 0"), HasSubstr("is built in"));
}

TEST(default_profile, has_the_overhead_that_is_given_or_follows_from_its_memory) {
  const auto overhead = [](const std::string& text) {
    return default_profile(good(text))->executor_amount(resource_names::memory_overhead) >> 20;
  };
  EXPECT_EQ(overhead("troupe.executor.memory-overhead-factor: 0.1"), 102);
  EXPECT_EQ(overhead("troupe.executor.min-memory-overhead: 384m"), 384);
  EXPECT_EQ(overhead("troupe.executor: {memory: 8g, memory-overhead-factor: 0.1, min-memory-overhead: 384m}"), 819);
  EXPECT_EQ(overhead("troupe.executor: {memory-overhead: 150m, min-memory-overhead: 500m}"), 150);
  EXPECT_EQ(overhead("troupe.executor: {memory-overhead: 0, min-memory-overhead: 500m}"), 0) << "given as well";
  EXPECT_EQ(overhead("{}"), 0);
  EXPECT_EQ(overhead_rule_of(good("troupe: {executor: {memory-overhead-factor: 0.1, min-memory-overhead: 1m}, "
                                  "scheduler.profile-matching: exact}")),
            (overhead_rule{*parse_share("0.1"), 1 << 20, profile_matching::exact}));
  EXPECT_EQ(overhead_rule_of(good("troupe.executor: {memory-overhead: 0, min-memory-overhead: 1m}")), overhead_rule{});
}

TEST(executor_resources, count_addresses_where_no_amount_is_given) {
  const auto resources = executor_resources(good("troupe.executor.resource.gpu.addresses: 3,5"));
  ASSERT_TRUE(resources);
  EXPECT_THAT(*resources, ElementsAre(Pair("gpu", configured_resource{2, false, {"3", "5"}, "", ""})));
}

} // namespace
} // namespace troupe::testing::settings_tests
