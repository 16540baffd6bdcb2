#include <algorithm>
#include <cstdlib>

#include <troupe/runtime/execution/command_environment.hpp>
#include <troupe/runtime/execution/command_words.hpp>

#include "process_fixture.hpp"

namespace troupe::testing_execution {
namespace {

placeholder_values one_file() { return {{"/data/in"}, {"/work/out"}, 7, 2}; }

std::string replaced(const std::vector<std::string>& words, const placeholder_values& values = one_file()) {
  const auto result = replace_placeholders(words, values);
  if (!result) return "error: " + result.error().message;
  std::string all;
  for (const auto& w : *result) all += "[" + w + "]";
  return all;
}

TEST(command_words, placeholders_are_replaced_anywhere_in_a_word) {
  EXPECT_EQ(replaced({"p", "{input}", "--out={output}", "{partition}.{attempt}"}),
            "[p][/data/in][--out=/work/out][7.2]");
}

TEST(command_words, a_word_of_its_own_becomes_one_per_file) {
  const placeholder_values values{{"/a", "/b c"}, {"/o1", "/o2"}, 0, 0};
  EXPECT_EQ(replaced({"cat", "{inputs}", "x{inputs}", "{outputs}"}, values), "[cat][/a][/b c][x/a /b c][/o1][/o2]");
  EXPECT_EQ(replaced({"cat", "{inputs}"}, {}), "[cat]");
}

TEST(command_words, one_file_means_one_file) {
  const placeholder_values two{{"/a", "/b"}, {}, 0, 0};
  EXPECT_NE(replaced({"cat", "{input}"}, two).find("exactly one input, the task has 2"), std::string::npos);
  EXPECT_NE(replaced({"cat", "{output}"}, two).find("exactly one output, the task has 0"), std::string::npos);
}

TEST(command_words, other_braces_stay_and_doubled_ones_escape) {
  EXPECT_EQ(replaced({"awk", "{print $1}", "${HOME}", "{unknown}", "{", "}}", "{{x}}"}),
            "[awk][{print $1}][${HOME}][{unknown}][{][}}][{{x}}]");
  EXPECT_EQ(replaced({"{{input}", "a{{partition}b{partition}"}), "[{input}][a{partition}b7]");
}

std::string value_in(const std::vector<std::string>& environment, const std::string& name) {
  for (const auto& v : environment) {
    if (v.starts_with(name + "=")) return v.substr(name.size() + 1);
  }
  return "<unset>";
}

TEST(command_environment, what_belongs_to_troupe_is_not_inherited) {
  ::setenv("TROUPE_SECRET_FILE", "/secret", 1);
  ::setenv("FOR_EVERYBODY", "1", 1);
  const auto inherited = inherited_environment();
  ::unsetenv("TROUPE_SECRET_FILE");
  ::unsetenv("FOR_EVERYBODY");
  EXPECT_TRUE(inherited.contains("FOR_EVERYBODY"));
  EXPECT_FALSE(inherited.contains("TROUPE_SECRET_FILE"));
}

TEST(command_environment, tells_the_task_what_it_is_and_has) {
  const environment_map base{{"A", "executor"}, {"B", "executor"}, {"OLDPWD", "/x"}};
  const task_resources resources{
      share::whole(2),
      {{"gpu", {{"GPU-1", 0, share::whole(1)}, {"GPU-2", 1, share::whole(1)}}}, {"my-fpga.x", {{"f0", -1, {}}}}},
      {{"memory", share::whole(std::int64_t{1} << 30)}, {"gpu-memory", share::whole(5)}}};
  const auto e = make_command_environment(base, {{"B", "stage"}, {"TROUPE_STAGE", "faked"}},
                                          {5, "align", 7, 2, 9, nullptr, "/attempts/1.7.2", "/attempts/1.7.2"},
                                          resources, true, {"/i"}, {"/o1", "/o2"});
  EXPECT_EQ(value_in(e, "A"), "executor");
  EXPECT_EQ(value_in(e, "B"), "stage");
  EXPECT_EQ(value_in(e, "OLDPWD"), "<unset>");
  EXPECT_EQ(value_in(e, "PWD"), "/attempts/1.7.2");
  EXPECT_EQ(value_in(e, "TROUPE_JOB"), "5");
  EXPECT_EQ(value_in(e, "TROUPE_STAGE"), "align");
  EXPECT_EQ(value_in(e, "TROUPE_PARTITION"), "7");
  EXPECT_EQ(value_in(e, "TROUPE_TASKS"), "9");
  EXPECT_EQ(value_in(e, "TROUPE_GANG"), "<unset>") << "it is of no gang";
  EXPECT_EQ(value_in(e, "TROUPE_ATTEMPT_NUMBER"), "2");
  EXPECT_EQ(value_in(e, "TROUPE_ATTEMPT"), "/attempts/1.7.2");
  EXPECT_EQ(value_in(e, "TROUPE_CPUS"), "2");
  EXPECT_EQ(value_in(e, "TROUPE_MEMORY"), "1073741824");
  EXPECT_EQ(value_in(e, "TROUPE_AMOUNT_GPU_MEMORY"), "5");
  EXPECT_EQ(value_in(e, "CUDA_VISIBLE_DEVICES"), "GPU-1,GPU-2");
  EXPECT_EQ(value_in(e, "TROUPE_ADDRESSES_GPU"), "GPU-1,GPU-2");
  EXPECT_EQ(value_in(e, "TROUPE_ADDRESSES_MY_FPGA_X"), "f0");
  EXPECT_EQ(value_in(e, "TROUPE_INPUT"), "/i");
  EXPECT_EQ(value_in(e, "TROUPE_INPUTS"), "/i");
  EXPECT_EQ(value_in(e, "TROUPE_OUTPUT"), "<unset>");
  EXPECT_EQ(value_in(e, "TROUPE_OUTPUTS"), "/o1\n/o2");
}

TEST(command_environment, a_task_without_gpu_sees_none_where_there_are_some) {
  const environment_map base{{"CUDA_VISIBLE_DEVICES", "0,1"}};
  const auto with = make_command_environment(base, {}, {}, {}, true, {}, {});
  EXPECT_EQ(value_in(with, "CUDA_VISIBLE_DEVICES"), "");
  const auto without = make_command_environment(base, {}, {}, {}, false, {}, {});
  EXPECT_EQ(value_in(without, "CUDA_VISIBLE_DEVICES"), "0,1");
}

TEST(command_environment, a_task_of_a_gang_finds_the_others) {
  packed_column gang;
  for (const auto* address : {"alpha:4242", "beta", "alpha:4243"}) gang.push_back(address);
  command_identity identity;
  identity.gang = &gang;
  EXPECT_EQ(value_in(make_command_environment({}, {}, identity, {}, false, {}, {}), "TROUPE_GANG"),
            "alpha:4242,beta,alpha:4243");
  for (int i = 0; i < 10'000; ++i) gang.push_back("alpha:4242");
  EXPECT_EQ(value_in(make_command_environment({}, {}, identity, {}, false, {}, {}), "TROUPE_GANG"), "<unset>")
      << "the system cannot take it";
}

TEST(command_environment, lists_that_the_system_cannot_take_are_left_out) {
  const auto e = make_command_environment({}, {}, {}, {}, false, std::vector<std::string>(10'000, "/some/file"), {});
  EXPECT_EQ(value_in(e, "TROUPE_INPUTS"), "<unset>");
}

} // namespace
} // namespace troupe::testing_execution
