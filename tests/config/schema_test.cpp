#include "support.hpp"

#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include <troupe/runtime/config/schema.hpp>

namespace troupe::testing {
namespace {

using ::testing::HasSubstr;

/// A name that the entry covers.
std::string sample_name(const setting_schema& entry) {
  std::string name{entry.name};
  if (!entry.is_family()) return name;
  const auto open = name.find('<');
  const auto member = entry.members.empty() ? std::string{"gpu"} : split_choices(entry.members).front();
  return name.replace(open, name.find('>') - open + 1, member);
}

/// Texts that are wrong for the type.
std::vector<std::string> bad_values(const setting_schema& entry) {
  switch (entry.type) {
  case setting_type::flag: return {"", "yes", "True", "1", "on"};
  case setting_type::count: return {"", "010", "-1", "+1", "1.5", "0x10", "many", " 1", "99999999999999999999"};
  case setting_type::memory: return {"", "1.5g", "-1m", "lots", "010m", "1 g", "9000000000g"};
  case setting_type::time:
  case setting_type::time_or_never: return {"", "5", "1.5s", "-1s", "soon", "01s", "2000d", "Never"};
  case setting_type::share: {
    std::vector<std::string> bad{"", "-1", "1e3", "half", "1/0", "0.0000000000001"};
    if (entry.least > 0) bad.emplace_back("0");
    return bad;
  }
  case setting_type::count_or_size: return {"", "010", "-1", "1.5", "1/2", "1.5g", "many", "9000001", "8192p", "4x"};
  case setting_type::share_or_size: return {"", "-1", "1e3", "half", "1/0", "0.0000000000001", "1.5g", "4x"};
  case setting_type::choice: return {"", "nonsense", "ERROR "};
  case setting_type::list: return {"", "a,,b", ","};
  case setting_type::path: return {"a\nb"};
  case setting_type::paths: return {"a,,b", ",", "a\nb"};
  case setting_type::text: return {"a\nb"};
  }
  return {};
}

TEST(schema, is_ordered_and_without_repetition) {
  std::string before;
  for (const auto& entry : schema()) {
    EXPECT_LT(before, entry.name);
    before = entry.name;
  }
}

TEST(schema, names_are_kebab_case_and_documented_in_one_sentence) {
  const std::regex form{"troupe(\\.([a-z]+(-[a-z]+)*|<[a-z]+>))+"};
  for (const auto& entry : schema()) {
    EXPECT_TRUE(std::regex_match(std::string{entry.name}, form)) << entry.name;
    ASSERT_FALSE(entry.documentation.empty()) << entry.name;
    EXPECT_EQ(entry.documentation.back(), '.') << entry.name;
  }
}

TEST(schema, every_default_parses_and_survives_being_written) {
  for (const auto& entry : schema()) {
    if (entry.is_family()) continue;
    const auto value = parse_setting(entry, entry.default_text);
    ASSERT_TRUE(value) << entry.name << ": " << value.error().message;
    const auto again = parse_setting(entry, to_text(entry, *value));
    ASSERT_TRUE(again) << entry.name << " = " << to_text(entry, *value) << ": " << again.error().message;
    EXPECT_EQ(*again, *value) << entry.name;
  }
}

TEST(schema, every_key_refuses_bad_values_and_says_what_is_allowed) {
  for (const auto& entry : schema()) {
    for (const auto& text : bad_values(entry)) {
      const auto value = parse_setting(entry, text);
      ASSERT_FALSE(value) << entry.name << " = " << text;
      EXPECT_EQ(value.error().message, "must be " + describe_values(entry)) << entry.name;
    }
  }
}

TEST(schema, ranges_include_their_ends_and_nothing_beyond) {
  for (const auto& entry : schema()) {
    if (entry.type != setting_type::count && entry.type != setting_type::time) continue;
    const std::string unit = entry.type == setting_type::time ? "ns" : "";
    EXPECT_TRUE(parse_setting(entry, std::to_string(entry.least) + unit)) << entry.name;
    EXPECT_TRUE(parse_setting(entry, std::to_string(entry.most) + unit)) << entry.name;
    if (entry.least > 0) {
      EXPECT_FALSE(parse_setting(entry, std::to_string(entry.least - 1) + unit)) << entry.name;
    }
    EXPECT_FALSE(parse_setting(entry, std::to_string(entry.most + 1) + unit)) << entry.name;
  }
  EXPECT_FALSE(parse_setting(schema_entry("troupe.executor.memory"), "1k"));
  EXPECT_TRUE(parse_setting(schema_entry("troupe.executor.memory"), "1m"));
}

TEST(schema, every_name_is_found_and_a_typo_leads_to_it) {
  for (const auto& entry : schema()) {
    const auto name = sample_name(entry);
    const auto match = find_key(name);
    ASSERT_TRUE(match) << name;
    EXPECT_EQ(match->entry, &entry);
    auto typo = name;
    typo.insert(typo.find('.') + 2, "x");
    const auto miss = find_key(typo);
    ASSERT_FALSE(miss) << typo;
    EXPECT_EQ(miss.error().message, "there is no such key; did you mean " + name + "?");
  }
}

TEST(schema, members_of_families_are_recognised) {
  const auto gpu = find_key("troupe.executor.resource.my_gpu-2.amount");
  ASSERT_TRUE(gpu);
  EXPECT_EQ(gpu->member, "my_gpu-2");
  EXPECT_EQ(find_key("troupe.log.level.dag-scheduler")->member, "dag-scheduler");
  EXPECT_FALSE(find_key("troupe.executor.resource.gpu"));
  EXPECT_FALSE(find_key("troupe.executor.resource..amount"));
  EXPECT_FALSE(find_key("troupe.executor.resource.a.b.amount"));
  EXPECT_FALSE(find_key("troupe.executor.resource.g pu.amount"));
  EXPECT_FALSE(find_key("troupe.task.resource.gpu.vendor"));
  EXPECT_THAT(message_of(find_key("troupe.executor.resource.gpu.amout")),
              HasSubstr("did you mean troupe.executor.resource.gpu.amount?"));
  EXPECT_THAT(message_of(find_key("troupe.log.level.dag-schedular")),
              HasSubstr("did you mean troupe.log.level.dag-scheduler?"));
}

TEST(schema, sparks_spelling_leads_to_ours) {
  EXPECT_THAT(message_of(find_key("troupe.task.maxFailures")), HasSubstr("did you mean troupe.task.max-failures?"));
  EXPECT_THAT(message_of(find_key("troupe.dynamicAllocation.executorIdleTimeout")),
              HasSubstr("did you mean troupe.dynamic-allocation.executor-idle-timeout?"));
  EXPECT_EQ(message_of(find_key("weather")), "there is no such key; `troupe config show` lists all keys");
  EXPECT_EQ(message_of(find_key("executor.cores")), "there is no such key; did you mean troupe.executor.cores?");
  EXPECT_EQ(message_of(find_key("executor.resource.gpu.amout")),
            "there is no such key; did you mean troupe.executor.resource.gpu.amount?");
}

TEST(schema, environment_names_are_different_and_lead_back) {
  std::set<std::string> seen;
  for (const auto& entry : schema()) {
    const auto name = sample_name(entry);
    const auto variable = environment_name(name);
    EXPECT_TRUE(seen.insert(variable).second) << variable;
    const auto back = key_of_environment(variable);
    ASSERT_TRUE(back) << variable << ": " << back.error().message;
    EXPECT_EQ(*back, name);
  }
  EXPECT_EQ(environment_name("troupe.executor.heartbeat-interval"), "TROUPE_CONF_EXECUTOR_HEARTBEAT_INTERVAL");
  EXPECT_EQ(*key_of_environment("TROUPE_CONF_EXECUTOR_RESOURCE_MY_FPGA_DISCOVERY_SCRIPT"),
            "troupe.executor.resource.my-fpga.discovery-script");
  EXPECT_THAT(message_of(key_of_environment("TROUPE_CONF_EXECUTOR_CORE")),
              HasSubstr("did you mean TROUPE_CONF_EXECUTOR_CORES?"));
  EXPECT_THAT(message_of(key_of_environment("TROUPE_CONF_")), HasSubstr("there is no key for"));
}

TEST(schema, every_constant_of_keys_hpp_has_an_entry_and_every_entry_a_constant) {
  std::ifstream in{TROUPE_SOURCE_DIRECTORY "/runtime/config/keys.hpp"};
  std::stringstream text;
  text << in.rdbuf();
  const auto source = text.str();
  const std::regex quoted{"\\{\\s*\"(troupe\\.[^\"]+)\"\\}"};
  std::set<std::string> constants;
  for (std::sregex_iterator it{source.begin(), source.end(), quoted}, end; it != end; ++it)
    EXPECT_TRUE(constants.insert((*it)[1].str()).second) << (*it)[1];
  std::set<std::string> entries;
  for (const auto& entry : schema()) entries.emplace(entry.name);
  EXPECT_EQ(constants, entries);
}

} // namespace
} // namespace troupe::testing
