#include "support.hpp"

#include <filesystem>
#include <fstream>
#include <map>

#include <unistd.h>

#include <troupe/runtime/config/job_file.hpp>
#include <troupe/runtime/config/keys.hpp>
#include <troupe/runtime/scheduling/command_arguments.hpp>

namespace troupe::testing::job_file_tests {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using texts = std::vector<std::string>;

/// Answers from a table of patterns.
path_finder files(std::map<std::string, texts> table) {
  return [table = std::move(table)](const std::string& directory, const std::string& pattern) -> result<texts> {
    EXPECT_EQ(directory, "/jobs");
    if (pattern == "forbidden/*") return make_error(ec::io, "a directory of the pattern cannot be read");
    const auto found = table.find(pattern);
    return found == table.end() ? texts{} : found->second;
  };
}

path_finder reads() {
  return files({{"data/*.fq", {"/jobs/data/a.fq", "/jobs/data/b.fq"}},
                {"data/a.fq", {"/jobs/data/a.fq"}},
                {"same/*", {"/jobs/same/x.1", "/jobs/same/x.2"}},
                {"three/*", {"/jobs/three/1", "/jobs/three/2", "/jobs/three/3"}}});
}

result<job_spec> job_of(std::string_view text) {
  auto parsed = parse_yaml(text, "x.yaml");
  if (!parsed) return parsed.error();
  return read_job(*parsed, "/jobs", {4}, reads());
}

job_spec good(std::string_view text) {
  auto job = job_of(text);
  EXPECT_TRUE(job) << job.error().message;
  if (!job) return {};
  EXPECT_TRUE(validate(*job)) << validate(*job).error().message;
  return *job;
}

std::string fault(std::string_view text) { return message_of(job_of(text)); }

/// Fault of a job with these lines below `stages:`, the first of which is line 3.
std::string fault_of_stages(const std::string& stages) { return fault("name: j\nstages:\n" + stages); }

command_arguments arguments(const stage_spec& stage, std::uint32_t task) {
  auto decoded = decode_command_arguments((*stage.arguments)[task]);
  EXPECT_TRUE(decoded);
  return *decoded;
}

const command_program& program(const stage_spec& stage) { return std::get<command_program>(stage.program); }

constexpr std::string_view design_example = R"(name: reads
profiles:
  io:  {executor: {cores: 2, memory: 2g}, task: {cpus: 1}}
  gpu: {executor: {cores: 4, memory: 8g, resource: {gpu: {amount: 1}}}, task: {cpus: 1, resource: {gpu: {amount: 0.5}}}}
stages:
  trim:   {profile: io, for-each: "data/*.fq", run: [./trim, "{input}", -o, "{output}"]}
  align:  {profile: gpu, after: {trim: one-to-one}, run: [./align, "{input}", "{output}"]}
  report: {after: {align: all}, run: [./merge, "{inputs}", -o, report.html], outputs: [report.html]}
)";

TEST(job_file, of_the_design_becomes_three_stages) {
  const auto job = good(design_example);
  EXPECT_EQ(job.name, "reads");
  EXPECT_EQ(job.max_task_failures, 4u);
  ASSERT_EQ(job.profiles.size(), 3u);
  EXPECT_EQ(job.profiles[0], resource_profile{});
  EXPECT_EQ(job.profiles[1].executor_amount("cores"), 2);
  EXPECT_EQ(job.profiles[2].task_amount("gpu"), *parse_share("0.5"));
  ASSERT_EQ(job.stages.size(), 3u);

  const auto& trim = job.stages[0];
  EXPECT_EQ(trim.name, "trim");
  EXPECT_EQ(trim.profile, 1u);
  EXPECT_EQ(trim.tasks, 2u);
  EXPECT_FALSE(trim.keep_results);
  EXPECT_THAT(trim.dependencies, IsEmpty());
  EXPECT_THAT(program(trim).words, ElementsAre("./trim", "{input}", "-o", "{output}"));
  EXPECT_EQ(program(trim).directory, "/jobs");
  EXPECT_EQ(program(trim).output_directory, "/jobs/out/trim");
  EXPECT_EQ(arguments(trim, 1), (command_arguments{{"/jobs/data/b.fq"}, {"b"}}));

  const auto& align = job.stages[1];
  EXPECT_EQ(align.profile, 2u);
  EXPECT_EQ(align.tasks, 2u);
  EXPECT_THAT(align.dependencies, ElementsAre(stage_dependency{0, dependency_kind::one_to_one}));
  EXPECT_EQ(arguments(align, 0), (command_arguments{{"/jobs/out/trim/a"}, {"a"}}));

  const auto& report = job.stages[2];
  EXPECT_EQ(report.profile, 0u);
  EXPECT_EQ(report.tasks, 1u);
  EXPECT_THAT(report.dependencies, ElementsAre(stage_dependency{1, dependency_kind::all}));
  EXPECT_EQ(arguments(report, 0), (command_arguments{{"/jobs/out/align/a", "/jobs/out/align/b"}, {"report.html"}}));
}

TEST(job_file, the_head_may_set_output_and_failures) {
  const auto job = good("name: j\noutput: ../results/\nmax-failures: 1\nstages: {a: {run: [x]}}\n");
  EXPECT_EQ(job.max_task_failures, 1u);
  EXPECT_EQ(program(job.stages[0]).output_directory, "/results/a");
  EXPECT_EQ(program(good("name: j\noutput: /\nstages: {a: {run: [x]}}\n").stages[0]).output_directory, "/a");
}

TEST(job_file, the_head_may_name_a_group) {
  EXPECT_EQ(good("name: j\nstages: {a: {run: [x]}}\n").group, "");
  EXPECT_EQ(good("name: j\ngroup: nightly\nstages: {a: {run: [x]}}\n").group, "nightly");
}

TEST(job_file, stages_may_stand_in_any_order) {
  const auto job =
      good("name: j\nstages:\n  c: {after: [a, b], run: [x]}\n  b: {after: [a], run: [x]}\n  d: {run: [x]}\n"
           "  a: {run: [x]}\n");
  texts names;
  for (const auto& stage : job.stages) names.push_back(stage.name);
  EXPECT_THAT(names, ElementsAre("d", "a", "b", "c"));
  EXPECT_THAT(job.stages[3].dependencies,
              ElementsAre(stage_dependency{1, dependency_kind::all}, stage_dependency{2, dependency_kind::all}));
}

TEST(job_file, tasks_without_files_are_counted) {
  const auto job =
      good("name: j\nstages: {a: {tasks: 3, run: [x, \"{partition}\"]}, b: {tasks: 2, run: [x, \"{output}\"]}}");
  EXPECT_EQ(job.stages[0].tasks, 3u);
  EXPECT_EQ(arguments(job.stages[0], 2), command_arguments{});
  EXPECT_EQ(arguments(job.stages[1], 1), (command_arguments{{}, {"b-1"}}));
}

TEST(job_file, inputs_of_the_task_itself_come_first) {
  const auto job = good(R"(name: j
stages:
  index: {run: [x, "{output}"]}
  trim: {for-each: "data/*.fq", run: [x], outputs: ["{stem}.out", "{stem}.log"]}
  align: {for-each: "data/*.fq", after: {index: all, trim: one-to-one}, run: [x, "{inputs}"], outputs: ["{name}.bam"]}
)");
  EXPECT_EQ(arguments(job.stages[0], 0), (command_arguments{{}, {"index-0"}}));
  EXPECT_EQ(arguments(job.stages[2], 1), (command_arguments{{"/jobs/data/b.fq", "/jobs/out/trim/b.out",
                                                             "/jobs/out/trim/b.log", "/jobs/out/index/index-0"},
                                                            {"b.fq.bam"}}));
}

TEST(job_file, output_names_may_hold_name_stem_and_partition) {
  const auto job =
      good("name: j\nstages: {a: {for-each: data/*.fq, run: [x], outputs: [\"d{partition}/{name}-{stem}.o\"]}}");
  EXPECT_THAT(arguments(job.stages[0], 1).outputs, ElementsAre("d1/b.fq-b.o"));
}

TEST(job_file, for_each_may_be_a_list) {
  const auto job = good("name: j\nstages: {a: {for-each: [three/*, data/a.fq], run: [x, \"{input}\"]}}");
  ASSERT_EQ(job.stages[0].tasks, 4u);
  EXPECT_THAT(arguments(job.stages[0], 3).inputs, ElementsAre("/jobs/data/a.fq"));
}

TEST(job_file, environment_is_passed_on) {
  const auto job = good("name: j\nstages: {a: {run: [x], environment: {LC_ALL: C, EMPTY: ''}}}");
  EXPECT_EQ(program(job.stages[0]).environment, (std::map<std::string, std::string>{{"LC_ALL", "C"}, {"EMPTY", ""}}));
}

TEST(job_file, braces_of_other_languages_are_left_alone) {
  const auto job = good("name: j\nstages: {a: {run: [awk, '{print $1}', '{}', '{x}', 'a{input']}}");
  EXPECT_THAT(program(job.stages[0]).words, ElementsAre("awk", "{print $1}", "{}", "{x}", "a{input"));
}

TEST(job_file, fields_of_the_head_are_checked) {
  EXPECT_EQ(fault("stages: {a: {run: [x]}}"), "x.yaml:1: the job has no name; write name: reads");
  EXPECT_THAT(fault("name: [a]\nstages: {a: {run: [x]}}"), HasSubstr("x.yaml:1: name must be a text, not a list"));
  EXPECT_EQ(fault("name: j\n"), "x.yaml:1: the job has no stages; write stages: {first: {run: [./tool]}}");
  EXPECT_THAT(fault("name: j\nstages: {}\n"), HasSubstr("x.yaml:2: the job has no stages"));
  EXPECT_THAT(fault("name: j\nstages: [a]\n"), HasSubstr("the job has no stages"));
  EXPECT_EQ(fault("name: j\nstage: {}\n"), "x.yaml:2: a job file has no field `stage`; did you mean stages?");
  EXPECT_EQ(fault("name: j\nmax-failures: 0\nstages: {a: {run: [x]}}\n"),
            "x.yaml:2: max-failures = 0: must be a whole number from 1 to 4095, without leading zeros");
  EXPECT_EQ(fault("name: j\nmax-failures: 4096\nstages: {a: {run: [x]}}\n"),
            "x.yaml:2: max-failures = 4096: must be a whole number from 1 to 4095, without leading zeros");
  EXPECT_THAT(fault("name: j\ntroupe: {}\n"), HasSubstr("a job file has no field `troupe`"));
  EXPECT_THAT(fault("name: j\noutput: ''\nstages: {a: {run: [x]}}"), HasSubstr("output is empty"));
}

TEST(job_file, fields_of_a_stage_are_checked) {
  EXPECT_EQ(fault_of_stages("  a: {runs: [x]}\n"), "x.yaml:3: stage a has no field `runs`; did you mean run?");
  EXPECT_THAT(fault_of_stages("  a: x\n"), HasSubstr("stage a must be a map, not the text `x`"));
  EXPECT_THAT(fault_of_stages("  ../a: {run: [x]}\n"), HasSubstr("stage ../a: a stage's name is made of letters"));
  EXPECT_THAT(fault_of_stages("  a: {profile: io, run: [x]}\n"),
              HasSubstr("x.yaml:3: there is no profile `io`; valid here: default"));
  EXPECT_EQ(fault("name: j\nprofiles: {gpu: {task: {cpus: 1}}}\nstages:\n  a:\n    profile: gpus\n    run: [x]\n"),
            "x.yaml:5: there is no profile `gpus`; did you mean gpu?");
}

TEST(job_file, run_is_a_list_of_words) {
  EXPECT_EQ(
      fault_of_stages("  a:\n    run: sort x | uniq\n"),
      "x.yaml:4: stage a: run must be a list of words, such as [./tool, \"{input}\"]; no shell is involved unless you "
      "ask for one: [sh, -c, \"sort x | uniq\"]");
  EXPECT_THAT(fault_of_stages("  a:\n    run: sort {input} >{output}\n"),
              HasSubstr("[sh, -c, 'sort \"$1\" >\"$2\"', sh, \"{input}\", \"{output}\"], which names cannot break"));
  EXPECT_THAT(fault_of_stages("  a: {tasks: 1}\n"),
              HasSubstr("x.yaml:3: stage a: run is missing; write the command as a list"));
  EXPECT_THAT(fault_of_stages("  a: {run: []}\n"), HasSubstr("stage a: run is an empty list"));
  EXPECT_THAT(fault_of_stages("  a: {run: ['', x]}\n"), HasSubstr("the first word of run, the program, is empty"));
  EXPECT_THAT(fault_of_stages("  a: {run: [x, [y]]}\n"),
              HasSubstr("run must be a list of texts; one of them is a list"));
  EXPECT_THAT(fault_of_stages("  a: {run: [x, null]}\n"), HasSubstr("one of them is nothing"));
  EXPECT_THAT(fault_of_stages("  a: {run: [x, \"\\0\"]}\n"), HasSubstr("a text holds a zero byte"));
  EXPECT_EQ(fault_of_stages("  a: {run: [x, \"{inptu}\"]}\n"),
            "x.yaml:3: stage a: run has no placeholder {inptu}; did you mean {input}?");
}

TEST(job_file, placeholders_need_something_to_stand_for) {
  EXPECT_EQ(
      fault_of_stages("  a: {run: [x, \"{input}\"]}\n"),
      "x.yaml:3: stage a: run mentions {input}, but its tasks have no input; give for-each, or after a stage with "
      "outputs");
  EXPECT_THAT(fault_of_stages("  a: {run: [x]}\n  b: {after: [a], run: [x, \"{inputs}\"]}\n"),
              HasSubstr("x.yaml:4: stage b: run mentions {inputs}"));
  EXPECT_EQ(fault_of_stages("  a: {run: [x, \"{outputs}\"]}\n"),
            "x.yaml:3: stage a: run mentions {outputs}, but the stage declares none; add outputs: [name]");
  EXPECT_EQ(fault_of_stages("  a: {run: [x, \"{output}\"], outputs: [p, q]}\n"),
            "x.yaml:3: stage a: run mentions {output}, but a task has 2 outputs; use {outputs}");
}

TEST(job_file, one_input_is_not_many) {
  EXPECT_EQ(fault_of_stages("  a: {for-each: three/*, run: [x, \"{output}\"]}\n"
                            "  b: {after: [a], run: [x, \"in={input}\"]}\n"),
            "x.yaml:4: stage b: run mentions {input}, but a task has 3 inputs; use {inputs}");
}

TEST(job_file, inputs_that_no_command_can_take_are_refused_before_a_task_has_run) {
  const auto stages = [](const std::string& count, const std::string& word) {
    return "  a: {tasks: " + count +
           ", run: [x, \"{output}\"], outputs: ['a-rather-long-name-for-an-output-{partition}']}\n" +
           "  b: {after: [a], run: [x, \"" + word + "\"]}\n";
  };
  EXPECT_THAT(
      fault_of_stages(stages("100000", "{inputs}")),
      AllOf(HasSubstr("x.yaml:4: stage b: the 100000 inputs of a task take "),
            HasSubstr(" KiB as arguments, which is more than the system allows; write {inputs-file} in place")));
  EXPECT_THAT(fault_of_stages(stages("4000", "of {inputs}")), HasSubstr("the 4000 inputs of a task take "));
  EXPECT_EQ(fault_of_stages(stages("4000", "{inputs}")), "(no error)");
  EXPECT_EQ(fault_of_stages(stages("100000", "{inputs-file}")), "(no error)");
  EXPECT_THAT(fault_of_stages("  a: {run: [x, '{inputs-file}']}\n"),
              HasSubstr("run mentions {inputs-file}, but its tasks"));
}

TEST(job_file, a_doubled_brace_is_no_placeholder) {
  const auto job = good("name: j\nstages: {a: {run: [echo, '{{input}', 'x{{output}']}}");
  EXPECT_EQ(arguments(job.stages[0], 0), command_arguments{});
  EXPECT_THAT(fault_of_stages("  a: {run: [x, '{{input}{input}']}\n"), HasSubstr("run mentions {input}"));
}

TEST(job_file, after_names_stages) {
  EXPECT_EQ(fault_of_stages("  align: {run: [x]}\n  b:\n    after: [algin]\n    run: [x]\n"),
            "x.yaml:5: stage b: there is no stage `algin`; did you mean align?");
  EXPECT_EQ(fault_of_stages("  a: {run: [x]}\n  b: {after: {a: shuffle}, run: [x]}\n"),
            "x.yaml:4: stage b: after.a must be one of all, one-to-one");
  EXPECT_EQ(fault_of_stages("  a: {run: [x]}\n  b: {after: a, run: [x]}\n"),
            "x.yaml:4: stage b: after must be a list of stages, or a map such as {a: one-to-one}");
  EXPECT_THAT(fault_of_stages("  a: {run: [x]}\n  b: {after: [a, a], run: [x]}\n"), HasSubstr("after names a twice"));
}

TEST(job_file, cycles_are_spelled_out) {
  EXPECT_EQ(fault_of_stages("  a: {after: [a], run: [x]}\n"), "x.yaml:3: the stages wait for each other: a -> a");
  EXPECT_EQ(fault_of_stages("  z: {run: [x]}\n  a: {after: [c], run: [x]}\n  b: {after: [a, z], run: [x]}\n"
                            "  c: {after: [b], run: [x]}\n  d: {after: [c], run: [x]}\n"),
            "x.yaml:4: the stages wait for each other: a -> b -> c -> a");
  // A stage that only waits for a cycle is not part of it.
  EXPECT_THAT(
      fault_of_stages("  d: {after: [c], run: [x]}\n  c: {after: [b], run: [x]}\n  b: {after: [c], run: [x]}\n"),
      ::testing::EndsWith("the stages wait for each other: c -> b -> c"));
}

TEST(job_file, files_must_be_there) {
  EXPECT_EQ(fault_of_stages("  a:\n    for-each: data/*.txt\n    run: [x]\n"),
            "x.yaml:4: stage a: for-each = data/*.txt: no file matches; looked in /jobs");
  EXPECT_THAT(fault_of_stages("  a: {for-each: [data/a.fq, none], run: [x]}\n"),
              HasSubstr("for-each = none: no file matches"));
  EXPECT_THAT(fault_of_stages("  a: {for-each: [data/*.fq, data/a.fq], run: [x]}\n"),
              HasSubstr("for-each = data/a.fq: /jobs/data/a.fq is named twice"));
  EXPECT_THAT(fault_of_stages("  a: {for-each: forbidden/*, run: [x]}\n"), HasSubstr("cannot be read"));
  EXPECT_THAT(fault_of_stages("  a: {for-each: data/**/x, run: [x]}\n"), HasSubstr("** is not supported"));
  EXPECT_THAT(fault_of_stages("  a: {for-each: {x: y}, run: [x]}\n"), HasSubstr("for-each must be a pattern"));
  EXPECT_THAT(fault_of_stages("  a: {for-each: [], run: [x]}\n"), HasSubstr("for-each is an empty list"));
  EXPECT_THAT(fault_of_stages("  a: {for-each: '', run: [x]}\n"), HasSubstr("for-each must be a pattern"));
  EXPECT_THAT(fault_of_stages("  a: {for-each: [''], run: [x]}\n"), HasSubstr("for-each holds an empty name"));
}

TEST(job_file, one_to_one_needs_equally_many_tasks) {
  EXPECT_EQ(
      fault_of_stages(
          "  a: {for-each: data/*.fq, run: [x]}\n  b: {for-each: three/*, after: {a: one-to-one}, run: [x]}\n"),
      "x.yaml:4: stage b: one-to-one needs equally many tasks on both sides, but for-each names 3 files and stage a "
      "has 2 tasks");
  EXPECT_THAT(fault_of_stages("  a: {tasks: 2, run: [x]}\n  b: {tasks: 3, after: {a: one-to-one}, run: [x]}\n"),
              HasSubstr("but tasks = 3 and stage a has 2 tasks"));
  EXPECT_THAT(
      fault_of_stages("  a: {tasks: 2, run: [x]}\n  b: {run: [x]}\n  c: {after: {a: one-to-one, b: one-to-one}, "
                      "run: [x]}\n"),
      HasSubstr("but stage a has 2 tasks and stage b has 1 tasks"));
  EXPECT_EQ(good("name: j\nstages: {a: {tasks: 2, run: [x]}, b: {after: {a: one-to-one}, run: [x]}}").stages[1].tasks,
            2u);
}

TEST(job_file, tasks_is_a_number_and_excludes_for_each) {
  EXPECT_EQ(fault_of_stages("  a: {tasks: 0, run: [x]}\n"),
            "x.yaml:3: stage a: tasks = 0: must be a whole number from 1 to 1000000");
  EXPECT_THAT(fault_of_stages("  a: {tasks: 010, run: [x]}\n"), HasSubstr("tasks = 010: must be"));
  EXPECT_THAT(fault_of_stages("  a: {tasks: 1000001, run: [x]}\n"), HasSubstr("tasks = 1000001: must be"));
  EXPECT_THAT(fault_of_stages("  a: {tasks: 2, for-each: data/*.fq, run: [x]}\n"),
              HasSubstr("tasks and for-each exclude each other"));
}

TEST(job_file, outputs_stay_in_their_directory_and_differ) {
  for (const std::string bad : {"/etc/x", "../x", "a/../../x", "./x", "a//../x", "x/", "a/./b"}) {
    EXPECT_EQ(fault_of_stages("  a: {run: [x], outputs: ['" + bad + "']}\n"),
              "x.yaml:3: stage a: outputs = " + bad +
                  ": must be a relative path that stays below the stage's output directory");
  }
  EXPECT_THAT(fault_of_stages("  a: {run: [x], outputs: [stdout]}\n"), HasSubstr("choose another name"));
  EXPECT_THAT(fault_of_stages("  a: {run: [x], outputs: [.troupe-x]}\n"), HasSubstr("that Troupe uses itself; choose"));
  EXPECT_THAT(fault_of_stages("  a: {run: [x], outputs: ['']}\n"), HasSubstr("must be a relative path"));
  EXPECT_THAT(fault_of_stages("  a: {run: [x], outputs: []}\n"), HasSubstr("outputs is an empty list"));
  EXPECT_EQ(
      fault_of_stages("  a: {run: [x], outputs: [\"{stem}\"]}\n"),
      "x.yaml:3: stage a: outputs = {stem}: its tasks have no input of their own that {stem} could come from; use "
      "{partition}");
  EXPECT_THAT(fault_of_stages("  a: {run: [x], outputs: [\"{part}\"]}\n"),
              HasSubstr("there is no placeholder {part}; valid here: {stem}, {name}, {partition}"));
  EXPECT_THAT(fault_of_stages("  a: {run: [x], outputs: ['a{']}\n"), HasSubstr("there is no placeholder {;"));
  EXPECT_EQ(
      fault_of_stages("  a: {for-each: same/*, run: [x, \"{output}\"]}\n"),
      "x.yaml:3: stage a: the output x would be published by task 0 and by task 1; give outputs that differ, such as "
      "[\"{stem}-{partition}\"]");
  EXPECT_THAT(fault_of_stages("  a: {run: [x], outputs: [y, y]}\n"),
              HasSubstr("the output y would be published by task 0"));
  EXPECT_THAT(fault_of_stages("  a: {tasks: 2, run: [x], outputs: [y]}\n"), HasSubstr("by task 0 and by task 1"));
}

TEST(job_file, environment_is_checked) {
  EXPECT_THAT(fault_of_stages("  a: {run: [x], environment: [A]}\n"), HasSubstr("environment must be a map"));
  EXPECT_THAT(fault_of_stages("  a: {run: [x], environment: {A=B: c}}\n"),
              HasSubstr("environment.A=B: a variable's name is made of"));
  EXPECT_THAT(fault_of_stages("  a: {run: [x], environment: {1A: c}}\n"), HasSubstr("a variable's name"));
  EXPECT_THAT(fault_of_stages("  a: {run: [x], environment: {TROUPE_ATTEMPT: c}}\n"), HasSubstr("is set by Troupe"));
  EXPECT_THAT(fault_of_stages("  a: {run: [x], environment: {CUDA_VISIBLE_DEVICES: c}}\n"),
              HasSubstr("is set by Troupe"));
  EXPECT_THAT(fault_of_stages("  a: {run: [x], environment: {PWD: /data}}\n"),
              HasSubstr("environment.PWD: a command starts in a directory of its own"));
  EXPECT_THAT(fault_of_stages("  a: {run: [x], environment: {A: $TROUPE_TEST_NOT_SET}}\n"),
              HasSubstr("environment.A = $TROUPE_TEST_NOT_SET: the variable TROUPE_TEST_NOT_SET is not set"));
  EXPECT_THAT(fault_of_stages("  a: {run: [x], environment: {A: [c]}}\n"), HasSubstr("environment.A must be a text"));
}

TEST(job_file, a_stage_that_would_multiply_names_is_refused) {
  EXPECT_THAT(
      fault_of_stages("  a: {tasks: 20000, run: [x, \"{output}\"]}\n  b: {tasks: 20000, after: [a], run: [x]}\n"),
      HasSubstr("x.yaml:4: stage b: each of its 20000 tasks would be given all 20000 outputs"));
}

class job_files : public ::testing::Test {
protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "troupe-job-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
    directory_ /= "odd [name]*";
    std::filesystem::create_directories(directory_ / "data");
    for (const auto* file : {"b.fq", "a.fq", "[x].fq", ".hidden.fq", "c.txt"})
      std::ofstream{directory_ / "data" / file};
  }
  void TearDown() override { std::filesystem::remove_all(directory_.parent_path()); }

  std::string file(const std::string& name) const { return (directory_ / "data" / name).string(); }

  std::filesystem::path directory_;
};

TEST_F(job_files, patterns_are_found_beside_the_file_in_byte_order) {
  const auto find = system_path_finder();
  const auto directory = directory_.string();
  EXPECT_THAT(*find(directory, "data/*.fq"), ElementsAre(file("[x].fq"), file("a.fq"), file("b.fq")));
  EXPECT_THAT(*find(directory, "data/../data/a.fq"), ElementsAre(file("a.fq")));
  EXPECT_THAT(*find(directory, "data/[x].fq"), ElementsAre(file("[x].fq")));
  EXPECT_THAT(*find(directory, "data/[ab].fq"), ElementsAre(file("a.fq"), file("b.fq")));
  EXPECT_THAT(*find("/", "/etc/host?"), ElementsAre("/etc/hosts"));
  EXPECT_THAT(*find(directory, "data/none"), IsEmpty());
  // `glob` itself takes what it cannot look at for what is not there, and the job would go without it.
  std::filesystem::create_directory(directory_ / "day");
  std::filesystem::create_symlink("endless", directory_ / "day/endless");
  const auto missed = find(directory, "day/*/a.fq");
  ASSERT_FALSE(missed);
  EXPECT_THAT(missed.error().message, HasSubstr("/day/endless': Too many levels of symbolic links"));
}

/// As a project that lies on another disk, and is reached by a link in the user's home.
TEST_F(job_files, that_are_reached_by_a_link_have_the_paths_that_the_system_has) {
  const auto beside = directory_.parent_path() / "elsewhere/deep";
  std::filesystem::create_directories(beside / "project");
  std::filesystem::create_directories(beside / "data");
  std::ofstream{beside / "data/a.fq"} << "the right one";
  std::filesystem::create_directory_symlink(beside / "project", directory_ / "project");
  std::ofstream{beside / "project/job.yaml"}
      << "name: j\noutput: ../out\nstages: {a: {for-each: ../data/a.fq, run: [x, '{input}']}, b: {for-each: "
         "'../data/*.fq', run: [x, '{input}']}}\n";
  const auto job = load_job((directory_ / "project/job.yaml").string(), {});
  ASSERT_TRUE(job) << job.error().message;
  const auto real = std::filesystem::canonical(beside);
  EXPECT_EQ(program(job->stages[0]).output_directory, (real / "out/a").string());
  for (const auto& stage : job->stages) {
    ASSERT_EQ(stage.tasks, 1u);
    EXPECT_THAT(decode_command_arguments((*stage.arguments)[0])->inputs, ElementsAre((real / "data/a.fq").string()));
  }
}

TEST_F(job_files, have_paths_as_people_write_them) {
  ::setenv("TROUPE_TEST_PLACE", directory_.c_str(), 1);
  const auto loaded = [&](const std::string& text) {
    const auto path = (directory_ / "job.yaml").string();
    std::ofstream{path} << text;
    return load_job(path, {});
  };
  const auto job = loaded("name: j\noutput: ${TROUPE_TEST_PLACE}/results\nstages: {a: {for-each: "
                          "$TROUPE_TEST_PLACE/data/*.fq, run: [x, '{input}']}}\n");
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(program(job->stages[0]).output_directory, (directory_ / "results/a").string());
  EXPECT_EQ(job->stages[0].tasks, 3u);
  const auto told = loaded("name: j\nstages: {a: {run: [x], environment: {D: '/x:$TROUPE_TEST_PLACE', M: a$$b}}}\n");
  ASSERT_TRUE(told) << told.error().message;
  EXPECT_EQ(program(told->stages[0]).environment,
            (std::map<std::string, std::string>{{"D", "/x:" + directory_.string()}, {"M", "a$b"}}));
  // A file that is called so comes first.
  std::ofstream{directory_ / "$TROUPE_TEST_PLACE"} << "x";
  EXPECT_EQ(
      arguments(loaded("name: j\nstages: {a: {for-each: $TROUPE_TEST_PLACE, run: [x, '{input}']}}\n")->stages[0], 0)
          .inputs,
      texts{directory_.string() + "/$TROUPE_TEST_PLACE"});
  ::unsetenv("TROUPE_TEST_PLACE");
  EXPECT_THAT(message_of(loaded("name: j\noutput: $TROUPE_TEST_PLACE/o\nstages: {a: {run: [x]}}\n")),
              HasSubstr("job.yaml:2: output = $TROUPE_TEST_PLACE/o: the variable TROUPE_TEST_PLACE is not set"));
  EXPECT_THAT(message_of(loaded("name: j\nstages: {a: {for-each: ~you/x, run: [x]}}\n")), HasSubstr("./~you/x"));
  EXPECT_THAT(message_of(loaded("name: j\nstages: {a: {run: [x], outputs: ['~/x']}}\n")),
              HasSubstr("a path with ~ or $NAME is for output:"));
  EXPECT_THAT(message_of(loaded("name: j\nstages: {a: {run: [~/x]}}\n")), HasSubstr("no shell expands it"));
}

TEST_F(job_files, are_loaded_with_their_own_directory) {
  const auto path = (directory_ / "job.yaml").string();
  std::ofstream{path} << "name: j\nstages: {a: {for-each: data/*.fq, run: [x, '{input}']}}\n";
  const auto job = load_job(path, {7});
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->max_task_failures, 7u);
  EXPECT_EQ(job->stages[0].tasks, 3u);
  EXPECT_EQ(program(job->stages[0]).directory, directory_.string());
  EXPECT_THAT(message_of(load_job((directory_ / "none.yaml").string(), {4})), HasSubstr("cannot open"));
}

TEST(job_file, a_stage_may_say_where_its_tasks_would_rather_run) {
  const auto job = good("name: x\nstages:\n  a: {run: [true], prefer: [node1, node2/7]}\n  b: {run: [true]}\n");
  ASSERT_NE(job.stages[0].locations, nullptr);
  EXPECT_EQ((*job.stages[0].locations)[0], "node1\nnode2/7");
  EXPECT_EQ(job.stages[1].locations, nullptr);
  EXPECT_THAT(fault("name: x\nstages:\n  a: {run: [true], prefer: node1}\n"),
              HasSubstr("prefer must be a list of hosts, such as [node1]"));
  EXPECT_THAT(fault("name: x\nstages:\n  a: {run: [true], prefer: [no host]}\n"),
              HasSubstr("prefer: `no host` is no location; write a host, such as node1"));
}

TEST(job_file, stages_may_have_time_outs) {
  const auto job = good("name: x\nstages:\n  a: {run: [true], timeout: 5min, task-timeout: 10s}\n  b: {run: [true]}\n"
                        "  c: {run: [true], timeout: never}\n");
  EXPECT_EQ(job.stages[0].timeout, std::chrono::minutes{5});
  EXPECT_EQ(job.stages[0].task_timeout, std::chrono::seconds{10});
  EXPECT_EQ(job.stages[1].timeout, never);
  auto parsed =
      parse_yaml("name: x\nstages:\n  a: {run: [true], timeout: 5min}\n  b: {run: [true]}\n  c: {run: [true], "
                 "timeout: never}\n",
                 "x.yaml");
  const auto filled = read_job(*parsed, "/jobs", {4, "etl", std::chrono::hours{1}, std::chrono::hours{2}}, reads());
  ASSERT_TRUE(filled) << filled.error().message;
  EXPECT_EQ(filled->pool, "etl");
  EXPECT_EQ(filled->stages[0].timeout, std::chrono::minutes{5}) << "its own counts";
  EXPECT_EQ(filled->stages[1].timeout, std::chrono::hours{1});
  EXPECT_EQ(filled->stages[1].task_timeout, std::chrono::hours{2});
  EXPECT_EQ(filled->stages[2].timeout, never) << "said so";
  EXPECT_THAT(message_of(job_of("name: x\nstages: {a: {run: [true], timeout: 0}}\n")), HasSubstr("from 1ms"));
  EXPECT_THAT(message_of(job_of("name: x\nstages: {a: {run: [true], timeout: 5}}\n")),
              HasSubstr("x.yaml:2: stage a: timeout = 5: must be a time such as 500ms, 10s or 5min"));
}

TEST(job_file, stages_may_be_gangs) {
  const std::string text =
      "name: x\nstages:\n  a: {run: [true], barrier: true, sync-timeout: 30s}\n"
      "  b: {run: [true], barrier: true}\n  c: {run: [true], indeterminate: true}\n  d: {run: [true], barrier: "
      "false}\n";
  const auto of_conf = settings_of("troupe.barrier.sync-timeout: 5s");
  ASSERT_TRUE(of_conf) << of_conf.error().message;
  job_defaults defaults;
  defaults.sync_timeout = of_conf->get(keys::barrier_sync_timeout);
  const auto parsed = parse_yaml(text, "x.yaml");
  const auto job = read_job(*parsed, "/jobs", defaults, reads());
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_TRUE(validate(*job)) << validate(*job).error().message;
  EXPECT_TRUE(job->stages[0].barrier);
  EXPECT_EQ(job->stages[0].sync_timeout, std::chrono::seconds{30});
  EXPECT_TRUE(job->stages[1].barrier);
  EXPECT_EQ(job->stages[1].sync_timeout, std::chrono::seconds{5});
  EXPECT_FALSE(job->stages[2].barrier);
  EXPECT_TRUE(job->stages[2].indeterminate);
  EXPECT_FALSE(job->stages[3].indeterminate);
  EXPECT_EQ(job->stages[2].sync_timeout, never) << "nobody waits";
  EXPECT_FALSE(job->stages[3].barrier);
  EXPECT_EQ(settings_of("{}")->get(keys::barrier_sync_timeout), std::chrono::hours{365 * 24}) << "as Spark has it";
}

TEST(job_file, says_what_is_wrong_with_a_gang) {
  EXPECT_EQ(
      fault_of_stages("  a: {run: [true], sync-timeout: 30s}\n"),
      "x.yaml:3: stage a: sync-timeout is for barrier stages, whose tasks wait for each other: add barrier: true");
  EXPECT_EQ(fault_of_stages("  a:\n    run: [true]\n    barrier: yes\n"),
            "x.yaml:5: stage a: barrier must be true or false");
  EXPECT_THAT(fault_of_stages("  a: {run: [true], barrier: true, sync-timeout: 0}\n"), HasSubstr("from 1ms"));
}

TEST(job_file, may_name_the_pool_of_the_job) {
  EXPECT_EQ(good("name: x\npool: etl\nstages: {a: {run: [true]}}\n").pool, "etl");
  EXPECT_EQ(good("name: x\nstages: {a: {run: [true]}}\n").pool, "") << "whoever submits it says which";
  EXPECT_THAT(message_of(job_of("name: x\npool: [a]\nstages: {a: {run: [true]}}\n")), HasSubstr("x.yaml:2: pool"));
}

} // namespace
} // namespace troupe::testing::job_file_tests
