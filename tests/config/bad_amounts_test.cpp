// Amounts that people mistype: every place where a profile or a setting takes one refuses them, by name and value.

#include <set>
#include <utility>
#include <vector>

#include "support.hpp"

#include <troupe/runtime/config/profile_settings.hpp>
#include <troupe/runtime/config/profile_yaml.hpp>

namespace troupe::testing {
namespace {

using ::testing::HasSubstr;

/// A place for an amount: in a profile, and the key that says the same of the default one ("": there is none).
struct amount_place {
  std::string profile; ///< `$` stands for the amount
  std::string field;   ///< as errors name it
  std::string key;
  std::set<std::string> also; ///< which of `bad_amounts` it takes
};

const std::vector<amount_place>& places() {
  static const std::set<std::string> fractions{".5", "1/3", "1.5"};
  static const std::set<std::string> parts{".5", "1/3"};
  static const std::vector<amount_place> all{
      {"{executor: {cores: $}}", "executor.cores", "executor.cores", {}},
      {"{executor: {memory: $}}", "executor.memory", "executor.memory", {}},
      {"{executor: {memory-overhead: $}}", "executor.memory-overhead", "executor.memory-overhead", {}},
      {"{executor: {off-heap: $}}", "executor.off-heap", "executor.off-heap", {}},
      {"{executor: {pyspark-memory: $}}", "executor.pyspark-memory", "executor.pyspark-memory", {}},
      {"{executor: {resource: {gpu: {amount: $}}}}",
       "executor.resource.gpu.amount",
       "executor.resource.gpu.amount",
       {}},
      {"{task: {cpus: $}}", "task.cpus", "task.cpus", fractions},
      {"{task: {memory: $}}", "task.memory", "task.memory", {}},
      {"{task: {resource: {gpu: {amount: $}}}}", "task.resource.gpu.amount", "task.resource.gpu.amount", parts},
      {"{task: {cpus: 1}, max-tasks-per-executor: $}", "max-tasks-per-executor", "", {}},
      {"{task: {cpus: 1}, memory-ceiling: $}", "memory-ceiling", "task.memory-ceiling", {}},
  };
  return all;
}

/// None of them has to be quoted to be a YAML text, unless `show_value` quotes it.
const std::vector<std::string> bad_amounts{"-1",
                                           "0.0",
                                           "nan",
                                           ".nan",
                                           "inf",
                                           "1e400",
                                           "1e30",
                                           "9223372036854775808",
                                           "99999999999999999999g",
                                           "8191p",
                                           "",
                                           "  ",
                                           "1 gb",
                                           "1gbb",
                                           "0x10",
                                           "010",
                                           "1,5",
                                           ".5",
                                           "5.",
                                           "1/3",
                                           "1/0",
                                           "1/-3",
                                           "1.5",
                                           "+1",
                                           "1_000",
                                           "true",
                                           "1\t",
                                           "0.0000000000001"};

std::string with(const std::string& profile, const std::string& amount) {
  const auto at = profile.find('$');
  return profile.substr(0, at) + amount + profile.substr(at + 1);
}

std::string fault_of_profile(const std::string& profile) {
  const auto parsed = parse_yaml("profiles: {p: " + profile + "}\n", "x.yaml");
  return parsed ? message_of(read_profiles(*parsed, "/base")) : parsed.error().message;
}

std::string fault_of_argument(const std::string& key, const std::string& value) {
  settings_builder builder{"/base"};
  return message_of(builder.add_argument("troupe." + key + "=" + value));
}

TEST(bad_amounts, are_refused_in_every_field_by_name_and_value) {
  for (const auto& place : places())
    for (const auto& amount : bad_amounts) {
      if (amount == "8191p" && place.field.find("resource") != std::string::npos) continue; // below 2^63
      const auto fault = fault_of_profile(with(place.profile, amount == "1\t" ? "\"1\\t\"" : "'" + amount + "'"));
      if (place.also.contains(amount))
        EXPECT_EQ(fault, "(no error)") << place.field;
      else if (amount == "1.5" && place.field == "task.resource.gpu.amount") // a rule of its own
        EXPECT_EQ(fault, "x.yaml:1: profile p: task resource gpu: amount 1.5 must be either <= 1.0, or a whole number");
      else
        EXPECT_THAT(fault, ::testing::StartsWith("x.yaml:1: profile p: " + place.field + " = " + show_value(amount) +
                                                 ": must be "));
    }
}

TEST(bad_amounts, are_refused_in_every_setting_by_key_and_value) {
  for (const auto& place : places())
    for (const auto& amount : bad_amounts) {
      if (place.key.empty() || (amount == "8191p" && place.field.find("resource") != std::string::npos)) continue;
      const auto fault = fault_of_argument(place.key, amount);
      // What a task takes of a resource is compared with what executors have once all settings are known.
      const bool later = amount == "1.5" && place.key == "task.resource.gpu.amount";
      if (place.also.contains(amount) || later)
        EXPECT_EQ(fault, "(no error)") << place.key;
      else
        EXPECT_THAT(fault,
                    ::testing::StartsWith("--conf: troupe." + place.key + " = " + show_value(amount) + ": must be "));
    }
}

TEST(bad_amounts, structures_are_none) {
  for (const auto& place : places())
    for (const std::string instead : {"[1, 2]", "{a: 1}", "~", "null", "[]"})
      EXPECT_THAT(fault_of_profile(with(place.profile, instead)),
                  ::testing::StartsWith("x.yaml:1: profile p: " + place.field + " must be "))
          << instead;
}

TEST(bad_amounts, a_zero_is_said_by_leaving_the_field_out) {
  for (const auto& place : places()) {
    // Of these two one may say that there is none.
    if (place.field == "executor.off-heap" || place.field == "memory-ceiling") continue;
    EXPECT_THAT(fault_of_profile(with(place.profile, "0")), HasSubstr("x.yaml:1: profile p: ")) << place.field;
  }
}

TEST(bad_amounts, one_that_is_too_large_is_told_the_largest) {
  EXPECT_THAT(fault_of_profile("{executor: {memory: 2000p}}"), HasSubstr("executor.memory = 2000p: must be a memory "
                                                                         "size such as 512m or 2g, at least 1m, at "
                                                                         "most 1024p"));
}

TEST(bad_amounts, values_that_one_would_not_see_are_quoted) {
  EXPECT_EQ(show_value("1g"), "1g");
  EXPECT_EQ(show_value("1 gb"), "1 gb");
  EXPECT_EQ(show_value(""), "\"\"");
  EXPECT_EQ(show_value(" 1"), "\" 1\"");
  EXPECT_EQ(show_value("1\x1b[2J"), "\"1\\x1b[2J\"");
  EXPECT_LT(show_value(std::string(5000, '9')).size(), 200u);
}

} // namespace
} // namespace troupe::testing
