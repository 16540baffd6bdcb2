// What makes a job valid, and how it says that it is not.

#include <functional>
#include <string>

#include <gtest/gtest.h>

#include <troupe/runtime/dag/job_spec.hpp>

namespace troupe {
namespace {

/// Map, reduce, and a command beside each reduce task.
job_spec good_job() {
  job_spec job;
  job.name = "reads";
  job.profiles.resize(2);
  stage_spec map;
  map.name = "map";
  map.tasks = 3;
  map.buckets = 2;
  map.program = native_program{"b", {{1, ""}}};
  stage_spec reduce;
  reduce.name = "reduce";
  reduce.tasks = 2;
  reduce.profile = 1;
  reduce.dependencies = {{0, dependency_kind::shuffle}};
  reduce.program = native_program{"b", {{2, ""}}};
  stage_spec report;
  report.tasks = 2;
  report.dependencies = {{1, dependency_kind::one_to_one}, {0, dependency_kind::all}};
  report.program = command_program{{"./report", "{input}"}, {{"LANG", ""}}, "/data", "/data/out"};
  job.stages = {map, reduce, report};
  return job;
}

packed_column column_of(std::uint32_t entries) {
  packed_column column;
  for (std::uint32_t i = 0; i < entries; ++i) column.push_back("x");
  return column;
}

command_program& command(job_spec& job) { return std::get<command_program>(job.stages[2].program); }

TEST(job_validation, takes_a_good_job) {
  auto job = good_job();
  EXPECT_TRUE(validate(job));
  job.stages[0].arguments = std::make_shared<const packed_column>(column_of(3));
  job.stages[1].arguments = std::make_shared<const packed_column>();
  command(job).directory.clear();
  command(job).output_directory.clear();
  EXPECT_TRUE(validate(job));
}

struct fault {
  std::string sentence;
  std::function<void(job_spec&)> make;
};

TEST(job_validation, names_the_stage_and_the_fault) {
  const std::vector<fault> faults{
      {"no profile; entry 0 must be the default one", [](job_spec& j) { j.profiles.clear(); }},
      {"no stage; a job needs at least one", [](job_spec& j) { j.stages.clear(); }},
      {"max_task_failures is 0, needs at least 1", [](job_spec& j) { j.max_task_failures = 0; }},
      {"stage 0 (map) has 0 tasks, needs at least 1", [](job_spec& j) { j.stages[0].tasks = 0; }},
      {"stage 0 (map) has 100000001 tasks, at most 100000000 are allowed",
       [](job_spec& j) { j.stages[0].tasks = 100'000'001; }},
      {"its stages have 100000001 tasks together, at most 100000000 are allowed: give each task more to do, or make "
       "several jobs",
       [](job_spec& j) {
         j.stages.resize(2);
         j.stages[0].tasks = 99'999'999;
       }},
      {"stage 0 (map) has 100000001 shuffle buckets, at most 100000000 are allowed",
       [](job_spec& j) { j.stages[0].buckets = 100'000'001; }},
      {"stage 1 (reduce) uses profile number 2, but the job has only 2 (numbers 0 to 1)",
       [](job_spec& j) { j.stages[1].profile = 2; }},
      {"stage 2 (" + std::string(64, 'n') + "...) has a name of 1025 bytes, at most 1024 are allowed",
       [](job_spec& j) { j.stages[2].name.assign(1025, 'n'); }},
      {"stage 0 (map) has a sync-timeout and is no barrier stage: only the tasks of a barrier stage wait for each "
       "other",
       [](job_spec& j) { j.stages[0].sync_timeout = std::chrono::seconds{1}; }},
      {"stage 0 (map) has 2 task arguments for 3 tasks; give one for each task or none at all",
       [](job_spec& j) { j.stages[0].arguments = std::make_shared<const packed_column>(column_of(2)); }},
      {"stage 0 (map) has an argument column whose ends do not fit its data",
       [](job_spec& j) {
         auto column = column_of(3);
         column.ends[1] = 4;
         j.stages[0].arguments = std::make_shared<const packed_column>(column);
       }},
      {"stage 0 (map) has 2 locations for 3 tasks; give one for each task, one for all of them, or none",
       [](job_spec& j) { j.stages[0].locations = std::make_shared<const packed_column>(column_of(2)); }},
      {"stage 0 (map) partition 0 has a location that is none: `no host` is no location; write a host, such as node1, "
       "or "
       "an executor on it, such as node1/7",
       [](job_spec& j) {
         packed_column column;
         column.push_back("no host");
         j.stages[0].locations = std::make_shared<const packed_column>(column);
       }},
      {"stage 0 (map) has a native program without operations",
       [](job_spec& j) {
         j.stages[0].program = native_program{"b", {}};
       }},
      {"stage 2 has no program to run", [](job_spec& j) { command(j).words.clear(); }},
      {"stage 2 has no program to run", [](job_spec& j) { command(j).words.front().clear(); }},
      {"stage 2 has a command word with a NUL byte, which no program can be given",
       [](job_spec& j) { command(j).words.back().push_back('\0'); }},
      {"stage 2 sets the environment variable `A=B`: a name must not be empty nor hold `=` or a NUL byte",
       [](job_spec& j) { command(j).environment["A=B"] = "x"; }},
      {"stage 2 sets the environment variable `A` to a value with a NUL byte",
       [](job_spec& j) { command(j).environment["A"] = std::string(1, '\0'); }},
      {"stage 2 has the directory `data`, which is not an absolute path",
       [](job_spec& j) { command(j).directory = "data"; }},
      {"stage 2 has the output directory `./out`, which is not an absolute path",
       [](job_spec& j) { command(j).output_directory = "./out"; }},
      {"stage 1 (reduce) depends on stage 1 (reduce), which does not come before it; list parents first",
       [](job_spec& j) { j.stages[1].dependencies[0].stage = 1; }},
      {"stage 1 (reduce) depends on stage 2, which does not come before it; list parents first",
       [](job_spec& j) { j.stages[1].dependencies[0].stage = 2; }},
      {"stage 1 (reduce) depends on stage number 3, but the job has only 3 stages",
       [](job_spec& j) { j.stages[1].dependencies[0].stage = 3; }},
      {"stage 1 (reduce) has 2 tasks, but stage 0 (map) writes 4 shuffle buckets; the numbers must be equal",
       [](job_spec& j) { j.stages[0].buckets = 4; }},
      {"stage 1 (reduce) reads the shuffle of stage 0 (map), which writes none (it has 0 buckets)",
       [](job_spec& j) { j.stages[0].buckets = 0; }},
      {"stage 2 depends one-to-one on stage 1 (reduce), but has 5 tasks where that has 2",
       [](job_spec& j) { j.stages[2].tasks = 5; }},
      {"stage 2 is a command and cannot read the shuffle of stage 0 (map)",
       [](job_spec& j) {
         j.stages[2].dependencies = {{0, dependency_kind::shuffle}};
       }},
      {"stage 2 is a command and cannot write shuffle buckets", [](job_spec& j) { j.stages[2].buckets = 1; }},
      {"stage 0 (map) has an argument of 16777217 bytes for partition 1, at most 16777216 are allowed: let the task "
       "read its data from files or a dataset",
       [](job_spec& j) {
         packed_column column;
         for (const std::size_t size : {1, 16'777'217, 1}) column.push_back(std::string(size, 'x'));
         j.stages[0].arguments = std::make_shared<const packed_column>(std::move(column));
       }},
      {"stage 1 (reduce) has captures of 67108865 bytes, at most 67108864 are allowed: let its tasks read that data "
       "from "
       "files or a dataset",
       [](job_spec& j) {
         j.stages[1].program = native_program{"b", {{1, std::string(67'108'865, 'c')}}};
       }},
      {"stage 2 has a command word of 131072 bytes, at most 131071 can be given to a program",
       [](job_spec& j) { std::get<command_program>(j.stages[2].program).words.push_back(std::string(131'072, 'w')); }},
      {"stage 2 sets the environment variable `BIG` to a value of 131072 bytes, which no program can be given",
       [](job_spec& j) { std::get<command_program>(j.stages[2].program).environment["BIG"].assign(131'072, 'v'); }},
      {"stage 2 depends on stage 1 (reduce) in an unknown way (3)",
       [](job_spec& j) { j.stages[2].dependencies[0].kind = dependency_kind{3}; }},
  };
  for (const auto& f : faults) {
    auto job = good_job();
    f.make(job);
    const auto checked = validate(job);
    ASSERT_FALSE(checked) << f.sentence;
    EXPECT_EQ(checked.error().code, ec::invalid_argument);
    EXPECT_EQ(checked.error().message, "job `reads`: " + f.sentence);
  }
}

TEST(job_validation, refuses_names_that_nobody_can_read) {
  auto job = good_job();
  job.name.assign(1025, 'n');
  EXPECT_EQ(validate(job).error().message,
            "job `" + std::string(64, 'n') + "...`: the name has 1025 bytes, at most 1024 are allowed");
  job.name = std::string("a\0b", 3);
  EXPECT_EQ(validate(job).error().message, "job `a...`: the name holds a NUL byte");
}

TEST(packed_column, is_well_formed_when_its_ends_rise_to_its_size) {
  EXPECT_TRUE(packed_column{}.is_well_formed());
  EXPECT_TRUE((packed_column{{0, 0, 2, 2}, "ab"}.is_well_formed()));
  EXPECT_FALSE((packed_column{{}, "ab"}.is_well_formed()));
  EXPECT_FALSE((packed_column{{1}, "ab"}.is_well_formed()));
  EXPECT_FALSE((packed_column{{3}, "ab"}.is_well_formed()));
  EXPECT_FALSE((packed_column{{2, 1, 2}, "ab"}.is_well_formed()));
}

TEST(stage_spec, compares_arguments_by_content) {
  const auto with = [](std::shared_ptr<const packed_column> arguments) {
    auto stage = good_job().stages[0];
    stage.arguments = std::move(arguments);
    return stage;
  };
  EXPECT_TRUE(with(std::make_shared<const packed_column>(column_of(3))) ==
              with(std::make_shared<const packed_column>(column_of(3))));
  EXPECT_FALSE(with(std::make_shared<const packed_column>(column_of(3))) ==
               with(std::make_shared<const packed_column>(column_of(2))));
  EXPECT_FALSE(with(std::make_shared<const packed_column>(column_of(3))) == with(nullptr));
  EXPECT_TRUE(with(nullptr) == with(nullptr));
}

} // namespace
} // namespace troupe
