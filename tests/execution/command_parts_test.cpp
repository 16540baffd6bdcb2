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

/// A file called `a;rm -r ~` is a name, and no command.
TEST(command_words, names_mean_nothing_to_a_shell) {
  const auto with = [](const std::string& name, const std::string& script,
                       const std::vector<std::string>& before = {"sh", "-c"}) {
    auto words = before;
    words.push_back(script);
    return replaced(words, {{name}, {"/work/out"}, 7, 2});
  };
  EXPECT_EQ(with("/in/a.txt", "cat {input}"), "[sh][-c][cat /in/a.txt]");
  EXPECT_EQ(with("/in/my a", "cat \"{input}\""), "[sh][-c][cat \"/in/my a\"]");
  EXPECT_EQ(with("/in/$a", "cat '{input}'"), "[sh][-c][cat '/in/$a']");
  EXPECT_EQ(with("/in/my a", "echo \"of {input} it is\""), "[sh][-c][echo \"of /in/my a it is\"]");
  EXPECT_EQ(with("/in/my a", "print({input})", {"python3", "-c"}), "[python3][-c][print(/in/my a)]");
  EXPECT_EQ(with("/in/my a", "{input}", {"cat", "-c"}), "[cat][-c][/in/my a]");
  EXPECT_EQ(with("/in/my a", "n=\"$(wc -l <\"{input}\")\""), "[sh][-c][n=\"$(wc -l <\"/in/my a\")\"]");
  EXPECT_EQ(with("/in/my a", "# don't\ncat \"{input}\""), "[sh][-c][# don't\ncat \"/in/my a\"]");
  EXPECT_EQ(with("/in/my a", "n=\"`wc -l <\"{input}\"` of '{input}'\""),
            "[sh][-c][n=\"`wc -l <\"/in/my a\"` of '/in/my a'\"]");
  EXPECT_EQ(with("/in/a#1~", "cat {input}"), "[sh][-c][cat /in/a#1~]");
  for (const auto* script : {"n=\"$(wc -l <{input})\"", "n=\"`wc -l <{input}`\"", "cat <<end\nend\ncat {input}"})
    EXPECT_TRUE(with("/in/a;rm", script).starts_with("error: ")) << script;
  auto listed = one_file();
  listed.inputs_file = "/my work/list";
  EXPECT_TRUE(replaced({"sh", "-c", "cat {inputs-file}"}, listed).starts_with("error: "));
  EXPECT_TRUE(with("/in/my a", "cat {input}", {"bash", "-e", "-o", "pipefail", "-c"}).starts_with("error: "));
  // An argument that a shell never reads as a text.
  for (const auto& before : std::vector<std::vector<std::string>>{{"bash", "tool.sh", "--src"},
                                                                  {"bash", "tool.sh", "-c"},
                                                                  {"sh", "-c", "\"$@\"", "sh", "wc", "-c"},
                                                                  {"env", "SHELL=/bin/sh", "python3", "-c"}})
    EXPECT_TRUE(with("/in/my a", "{input}", before).ends_with("[/in/my a]")) << before.back();
  for (const auto* script : {"cat {input}", "cat '' {input}", "cat \\\"{input}\\\""})
    for (const auto* name : {"/in/my a", "/in/x[1]", "/in/a;echo", "/in/$a", "/in/a'b"})
      EXPECT_TRUE(with(name, script).starts_with("error: in a text for a shell the name '" + std::string{name}))
          << script << " " << name;
  EXPECT_TRUE(with("/in/$a", "cat \"{input}\"").starts_with("error: "));
  EXPECT_TRUE(with("/in/a'b", "cat '{input}'").starts_with("error: "));
  EXPECT_TRUE(with("/in/my a", "cat {inputs}", {"env", "bash", "-ec"}).starts_with("error: "));
}

TEST(command_words, many_inputs_are_named_by_a_file) {
  auto values = one_file();
  EXPECT_EQ(replaced({"p", "{inputs-file}"}, values),
            "error: the word '{inputs-file}' needs inputs, and the task has none");
  values.inputs_file = "/work.inputs-file";
  EXPECT_EQ(replaced({"p", "@{inputs-file}", "{{inputs-file}"}, values), "[p][@/work.inputs-file][{inputs-file}]");
}

TEST(command_words, variables_are_named_as_wholes) {
  for (const auto* word : {"cat $TROUPE_INPUTS", "${TROUPE_INPUTS}", "TROUPE_INPUTS", "os.environ['TROUPE_INPUTS']"})
    EXPECT_TRUE(names_variable({"sh", word}, "TROUPE_INPUTS")) << word;
  for (const auto* word : {"cat $TROUPE_INPUTS_FILE", "MY_TROUPE_INPUTS", "TROUPE_INPUT", ""})
    EXPECT_FALSE(names_variable({"sh", word}, "TROUPE_INPUTS")) << word;
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

/// The environment with these variables, for as long as this lives.
struct with_variables {
  explicit with_variables(environment_map v) : variables(std::move(v)) {
    for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
  }
  ~with_variables() {
    for (const auto& variable : variables) ::unsetenv(variable.first.c_str());
  }
  with_variables(const with_variables&) = delete;
  with_variables& operator=(const with_variables&) = delete;
  environment_map variables;
};

TEST(command_environment, is_inherited_but_for_what_troupe_sets_itself) {
  const environment_map own{{"TROUPE_INPUT", "/x"},
                            {"TROUPE_AMOUNT_X", "1"},
                            {"TROUPE_ADDRESSES_GPU", "0"},
                            {"TROUPE_SESSION", "s"},
                            {"TROUPE_CPUS", "2"}};
  const environment_map users{
      {"FOR_EVERYBODY", "1"}, {"TROUPE_OF_ACTORS", "1"}, {"TROUPE_CONF_MASTER", "local"}, {"OMP_NUM_THREADS", "2"}};
  const with_variables a{own};
  const with_variables b{users};
  const auto inherited = inherited_environment();
  for (const auto& [name, value] : users) {
    ASSERT_TRUE(inherited.contains(name)) << name;
    EXPECT_EQ(inherited.at(name), value);
  }
  for (const auto& variable : own) EXPECT_FALSE(inherited.contains(variable.first)) << variable.first;
}

TEST(command_environment, of_a_task_within_a_task_has_no_threads_of_the_outer_one) {
  environment_map set{{"TROUPE_ATTEMPT", "/a"}, {"TROUPE_CPUS", "2"}};
  for (const auto* name :
       {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "NUMEXPR_NUM_THREADS"})
    set[name] = "2";
  {
    const with_variables outer{set};
    EXPECT_FALSE(inherited_environment().contains("OMP_NUM_THREADS"));
  }
  set["MKL_NUM_THREADS"] = "7";
  const with_variables outer{set};
  EXPECT_TRUE(inherited_environment().contains("OMP_NUM_THREADS")) << "somebody else has set them";
}

TEST(command_environment, tells_numeric_libraries_the_cpus_of_the_task) {
  const auto threads = [](const environment_map& base, share cpus, bool on = true, const char* name = "OMP_NUM_THREADS",
                          const std::map<std::string, std::string>& own = {}) {
    command_identity identity;
    identity.thread_variables = on;
    task_resources resources;
    resources.cpus = cpus;
    return value_in(make_command_environment(base, own, identity, resources, false, {}, {}), name);
  };
  for (const auto* name :
       {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "NUMEXPR_NUM_THREADS"})
    EXPECT_EQ(threads({}, share::whole(3), true, name), "3");
  EXPECT_EQ(threads({}, *parse_share("2.5")), "2");
  EXPECT_EQ(threads({}, *parse_share("1/3")), "1");
  EXPECT_EQ(threads({}, share::whole(3), false), "<unset>");
  EXPECT_EQ(threads({{"OMP_NUM_THREADS", "8"}}, share::whole(3)), "8");
  EXPECT_EQ(threads({{"OMP_NUM_THREADS", "8"}}, share::whole(3), true, "MKL_NUM_THREADS"), "<unset>")
      << "it takes the other one";
  EXPECT_EQ(threads({}, share::whole(3), true, "OMP_NUM_THREADS", {{"MKL_NUM_THREADS", "2"}}), "<unset>");
}

TEST(command_environment, tells_the_task_what_it_is_and_has) {
  const environment_map base{{"A", "executor"}, {"B", "executor"}, {"OLDPWD", "/x"}, {"TROUPE_SESSIONS", "o:p"}};
  const task_resources resources{
      share::whole(2),
      {{"gpu", {{"GPU-1", 0, share::whole(1)}, {"GPU-2", 1, share::whole(1)}}}, {"my-fpga.x", {{"f0", -1, {}}}}},
      {{"memory", share::whole(std::int64_t{1} << 30)}, {"gpu-memory", share::whole(5)}}};
  const auto e =
      make_command_environment(base, {{"B", "stage"}, {"TROUPE_STAGE", "faked"}},
                               {"s", 5, "align", 7, 2, 9, nullptr, "/attempts/1.7.2", "/attempts/1.7.2", false},
                               resources, true, {"/i"}, {"/o1", "/o2"});
  EXPECT_EQ(value_in(e, "A"), "executor");
  EXPECT_EQ(value_in(e, "B"), "stage");
  EXPECT_EQ(value_in(e, "OLDPWD"), "<unset>");
  EXPECT_EQ(value_in(e, "PWD"), "/attempts/1.7.2");
  EXPECT_EQ(value_in(e, "TROUPE_SESSION"), "s");
  EXPECT_EQ(value_in(e, "TROUPE_SESSIONS"), "o:p:s") << "of which it is started by a task of `p`";
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

TEST(command_environment, lists_that_the_system_cannot_take_are_no_empty_ones) {
  command_identity identity;
  identity.inputs_file = "/attempts/1.7.2.inputs-file";
  const auto e =
      make_command_environment({}, {}, identity, {}, false, std::vector<std::string>(10'000, "/some/file"), {});
  EXPECT_EQ(value_in(e, "TROUPE_INPUTS"), "/too-many-files-for-TROUPE_INPUTS--see-docs/job-files.md");
  EXPECT_EQ(value_in(e, "TROUPE_INPUTS_FILE"), "/attempts/1.7.2.inputs-file");
  EXPECT_EQ(value_in(e, "TROUPE_OUTPUTS"), "");
}

} // namespace
} // namespace troupe::testing_execution
