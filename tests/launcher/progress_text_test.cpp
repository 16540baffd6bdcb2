#include <troupe/launcher/progress_text.hpp>

#include <sstream>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/launcher/text_table.hpp>

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

stage_progress stage(std::uint64_t id, const std::string& name, stage_state state) {
  stage_progress s;
  s.stage = stage_id{id};
  s.name = name;
  s.profile = "default";
  s.state = state;
  s.tasks = 20;
  return s;
}

/// `count` half done, `report` behind it.
job_progress two_stages() {
  job_progress job;
  job.job = job_id{7};
  job.name = "words";
  job.stages = {stage(1, "count", stage_state::running), stage(2, "report", stage_state::waiting)};
  job.stages[0].done = 10;
  job.stages[0].running = 2;
  job.stages[0].failures = 1;
  return job;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in{text};
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(progress_bars, show_done_and_running_tasks_of_each_stage) {
  const auto lines = lines_of(progress_bars(two_stages(), 80, 10));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], "count   [####################====                ]  10/20  2 running, 1 failed");
  EXPECT_EQ(lines[1], "report  [                                        ]  0/20");
}

TEST(progress_bars, fit_the_terminal) {
  auto job = two_stages();
  job.stages[0].name = "a-name-that-is-much-longer-than-others";
  job.waiting_for = "an executor with gpu 1 for stage report";
  for (const std::size_t width : {30u, 60u, 100u})
    for (const auto& line : lines_of(progress_bars(job, width, 10))) EXPECT_LE(display_width(line), width) << line;
  EXPECT_EQ(lines_of(progress_bars(job, 80, 2)).size(), 2u);
  EXPECT_THAT(progress_bars(job, 80, 2), HasSubstr("waiting: an executor"));
  EXPECT_THAT(progress_bars(job, 80, 2), Not(HasSubstr("report  ["))) << "what runs is shown first";
  EXPECT_EQ(progress_bars(job, 80, 0), "");
  job = two_stages();
  job.stages[0].state = stage_state::complete;
  job.stages[1].state = stage_state::running;
  EXPECT_THAT(progress_bars(job, 80, 1), HasSubstr("report  [")) << "what has ended goes first";
}

TEST(progress_bars, that_cut_what_is_waited_for_have_it_in_whole_beside_them) {
  auto job = two_stages();
  EXPECT_EQ(whole_wait(job, 10), "");
  job.waiting_for = "room";
  EXPECT_EQ(whole_wait(job, 13), "");
  EXPECT_EQ(whole_wait(job, 12), "troupe: job 7 words: waiting: room\n");
}

TEST(progress_bars, do_not_let_names_move_the_cursor) {
  auto job = two_stages();
  job.stages[0].name = "a\x1b[2Jb";
  EXPECT_THAT(progress_bars(job, 80, 10), Not(HasSubstr("\x1b")));
}

TEST(progress_lines, tell_what_has_changed_and_nothing_else) {
  const auto now = two_stages();
  EXPECT_EQ(progress_lines({}, now), "troupe: job 7 words: stage count: 20 tasks under default\n");
  EXPECT_EQ(progress_lines(now, now), "");
  auto later = now;
  later.stages[0].failures = 2;
  later.stages[0].state = stage_state::complete;
  later.stages[0].wall_nanoseconds = 3'200'000'000;
  EXPECT_EQ(progress_lines(now, later), "troupe: job 7 words: stage count: 2 failed attempts\n"
                                        "troupe: job 7 words: stage count: complete in 3.2 s\n");
  auto back = later;
  back.stages[0].state = stage_state::waiting;
  EXPECT_THAT(progress_lines(later, back), HasSubstr("waits for inputs that were lost"));
  back.waiting_for = "room";
  EXPECT_THAT(progress_lines(later, back), HasSubstr("waiting: room"));
}

TEST(progress_pulse, names_the_stages_that_run) {
  EXPECT_EQ(progress_pulse(two_stages()), "troupe: job 7 words: count 10/20  2 running, 1 failed\n");
  EXPECT_EQ(progress_pulse({}), "");
}

TEST(left_files, are_named_with_their_stage_and_the_cure) {
  auto job = two_stages();
  EXPECT_TRUE(left_files(job).empty());
  job.stages[0].left = "result.txt";
  ASSERT_EQ(left_files(job).size(), 1u);
  EXPECT_THAT(left_files(job)[0], AllOf(HasSubstr("stage " + job.stages[0].name + ":"),
                                        HasSubstr("such as 'result.txt'"), HasSubstr("outputs:")));
}

TEST(job_summary, has_a_row_per_stage_and_says_how_it_ended) {
  job_end end;
  end.progress = two_stages();
  end.progress.wall_nanoseconds = 12'000'000;
  end.progress.stages[0].peak_memory = 15 << 20;
  EXPECT_THAT(job_summary(end), HasSubstr("job 7 words succeeded after 12 ms\n"));
  EXPECT_THAT(job_summary(end), HasSubstr("15 MiB"));
  EXPECT_EQ(lines_of(job_summary(end)).size(), 4u);
  end.failure = make_error(ec::task_failed, "x");
  EXPECT_THAT(job_summary(end), HasSubstr("failed after"));
  end.failure = make_error(ec::cancelled, "x");
  EXPECT_THAT(job_summary(end), HasSubstr("was cancelled after"));
}

} // namespace
} // namespace troupe
