#pragma once

/// Publishes and discards staged outputs (see staged_outputs.hpp) on threads of its own, since an actor that accepts an
/// attempt may not wait for a file system. The driver has one for the outputs that it sees, an executor one for those
/// that it is given the right to.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <troupe/runtime/execution/output_publication.hpp>
#include <troupe/runtime/execution/staged_outputs.hpp>
#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/scheduling/publication.hpp>
#include <troupe/runtime/time.hpp>

namespace troupe {

/// Outputs of one attempt.
struct publication_task {
  stage_id stage;
  partition_index partition = 0;
  attempt_number attempt = 0;
  executor_id executor; ///< that made them
  std::string output_directory;
  std::vector<std::string> outputs; ///< names; none where they are to be discarded
};

/// Any thread. Methods never wait for a file.
class output_publisher {
public:
  /// Publishes one. Several threads at once.
  using action = std::function<published(const staging_place& place, const std::vector<std::string>& outputs)>;

  struct options {
    std::string session; ///< may be part of a file's name
    std::uint32_t threads = 4;
    /// Asked before each publication, under a lock: it must be quick. While it says no, publications wait for `wake`.
    /// Empty: always yes.
    std::function<bool()> may_begin;
    duration patience = std::chrono::seconds{10}; ///< with what does not end while something is closed
    action publishes = publish_staged;
    /// Before a publication that has failed and may pass (see `published`) is tried again, each in its turn.
    std::vector<duration> pauses{pauses_for_room.begin(), pauses_for_room.end()};

    // These are called on the threads, several at once, and never within the publisher's lock.
    std::function<void(publications)> on_ends;
    /// The end of `close`. `clean`: nothing of the job is moved any more, and its roots are gone where this process may
    /// remove them. Else the patience is over: what was in hand then may still appear, and the roots are removed when
    /// it has ended, which is not told.
    std::function<void(job_id, bool clean)> on_closed;
    std::function<void(bool clean)> on_ended; ///< the end of `end`, likewise
  };

  explicit output_publisher(options opts);
  /// Drops publications that have not begun, waits for those in hand, and removes what is to be removed. Nothing more
  /// is told than what is being told.
  ~output_publisher();
  output_publisher(const output_publisher&) = delete;
  output_publisher& operator=(const output_publisher&) = delete;

  /// Answered by `on_ends`, unless its stage is closed or forgotten first. @pre no other of the same task is under way
  void publish(publication_task what);
  /// Removes what waits of an attempt that was not accepted.
  void discard(publication_task what);
  /// Runs something that takes its time with files, one at a time and after everything else. The publisher does not end
  /// before it has.
  void later(std::function<void()> what);
  /// Drops what has not begun of the stage, waits for what is in hand, and calls `remove` on a thread.
  void forget(stage_id stage, std::function<void()> remove);
  /// Drops what has not begun of these stages, waits for what is in hand, and removes their roots; then calls
  /// `on_closed`. Each stage comes with its output directory. @pre the job is over
  void close(job_id job, std::vector<std::pair<stage_id, std::string>> stages);
  /// Drops all publications that have not begun, those to come as well. Calls `on_ended` when what is in hand has ended
  /// and was told. Once.
  void end();
  /// To be called when `may_begin` may say yes again.
  void wake();

private:
  using guard = std::unique_lock<std::mutex>;

  /// One that has failed and may pass.
  struct retry {
    publication_task what;
    std::size_t tries = 0; ///< that have failed
    time_point at;
    bool begun = false; ///< see `published`
    std::string reason; ///< of the last failure
  };

  /// Stages that nothing more is begun of.
  struct closing {
    std::vector<stage_id> stages;
    std::function<void()> remove;         ///< once nothing of it is in hand
    std::function<void(bool clean)> tell; ///< empty where nobody is to be told, or was told
    bool all = false;                     ///< every stage
    time_point deadline = {};
    bool removing = false;
  };

  // All of them: @pre locked
  void start(closing what);
  bool is_closing(stage_id stage) const;
  bool is_in_hand(const closing& what) const;
  void remove_what_is_ready();
  void add_chore(std::function<void()> chore);
  void ensure_thread();
  bool has_due() const;
  void publish_next(guard& lock);                  ///< lets go of the lock meanwhile
  void publish_now(guard& lock, retry now);        ///< likewise
  void wait_for_work(guard& lock, bool may_begin); ///< likewise
  void tell_ends(guard& lock);                     ///< likewise

  void finish(std::list<closing>::iterator which); ///< @pre not locked
  void work();
  void keep_time();

  const options options_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable timer_;
  std::deque<publication_task> waiting_;
  std::vector<retry> retries_;
  std::deque<std::function<void()>> chores_;    ///< what goes before publications, and never waits for `may_begin`
  std::deque<std::function<void()>> leisurely_; ///< see `later`
  bool at_leisure_ = false;                     ///< a thread is at one of them
  std::map<stage_id, std::uint32_t> in_hand_;   ///< only where not 0
  publications ends_;                           ///< that have not been told
  std::uint32_t telling_ = 0;                   ///< threads that tell some
  std::list<closing> closings_;                 ///< that have not ended
  bool ending_ = false;                         ///< `end` was called
  bool stopping_ = false;
  std::uint32_t idle_ = 0; ///< threads that wait
  std::vector<std::thread> threads_;
  std::thread timekeeper_; ///< started for the first closing
};

} // namespace troupe
