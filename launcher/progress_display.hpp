#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <troupe/runtime/scheduling/job_status.hpp>

namespace troupe {

enum class progress_mode { none, plain, bar };

/// True for a terminal that can move its cursor, as far as TERM tells.
bool is_screen(int fd);

/// The meaning of `troupe.progress`: `auto` is bars on such a terminal and lines elsewhere.
progress_mode progress_mode_of(std::string_view setting, bool screen);

/// Shows jobs of this process on a terminal or in a log: bars that are drawn over, or lines; a summary at the end of
/// each job. Draws on a thread of its own, so `update` and `end` never wait for a slow terminal. Make it after signals
/// were blocked.
class progress_display {
public:
  /// @param fd is written to and stays open, usually standard error
  progress_display(progress_mode mode, int fd);
  ~progress_display();
  progress_display(const progress_display&) = delete;
  progress_display& operator=(const progress_display&) = delete;

  /// A line to begin with, shown before the first job is and not without one. Before the first job.
  void introduce(std::string line);
  /// Any thread.
  void update(const job_progress& progress);
  /// Any thread.
  void end(const job_end& end);
  /// Shows what has not been shown yet, then nothing more. Repeats do nothing.
  void finish();

private:
  void draw_all();
  std::string draw_lines(const std::vector<job_end>& ends, bool pulse);
  std::string draw_bars(const std::vector<job_end>& ends);
  std::string erase();

  progress_mode mode_;
  int fd_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<job_id, job_progress> latest_;  ///< of unfinished jobs; by mutex_
  std::vector<job_end> ends_;              ///< not shown yet; by mutex_
  std::string introduction_;               ///< not shown yet; by mutex_
  bool dirty_ = false;                     ///< by mutex_
  bool over_ = false;                      ///< by mutex_
  std::map<job_id, job_progress> current_; ///< the drawing thread's copy
  std::map<job_id, job_progress> shown_;   ///< what lines have told; the drawing thread's
  std::map<job_id, std::set<std::string>>
      told_;                        ///< why jobs wait, without numbers, that stands above the bars; likewise
  std::size_t lines_on_screen_ = 0; ///< the drawing thread's
  std::thread thread_;
};

} // namespace troupe
