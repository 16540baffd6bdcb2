#pragma once

/// How jobs stand and end, as text. Pure; any thread.

#include <cstddef>
#include <string>
#include <vector>

#include <troupe/runtime/scheduling/job_status.hpp>

namespace troupe {

/// One line per stage that has work or is next, each at most `width` columns wide:
/// `count  [#####=====          ]  5/20  10 running, 1 failed`; `#` is done, `=` running. A line more says what a job
/// waits for. At most `height` lines: ended and waiting stages are left out first.
std::string progress_bars(const job_progress& job, std::size_t width, std::size_t height);
/// What a job waits for as a whole line, where `progress_bars` has to cut it; else "".
std::string whole_wait(const job_progress& job, std::size_t width);

/// One line for everything that `now` says and `before` did not: a stage that began, ended, was put back or failed
/// attempts, what a job waits for. "" when that is nothing. `before` is a default value at first.
std::string progress_lines(const job_progress& before, const job_progress& now);
/// The same for a job that makes progress inside of its stages only, to show that it lives.
std::string progress_pulse(const job_progress& now);

/// What the job did, stage by stage: profile, executors, tasks, time, bytes. Ends with a line feed.
std::string job_summary(const job_end& end);

/// A sentence for each stage whose commands have left files where they started, which go with that (see outcome_batch).
std::vector<std::string> left_files(const job_progress& job);

} // namespace troupe
