#pragma once

/// The roots below which an executor's attempts leave their outputs (see staged_outputs.hpp): made when the first
/// attempt of a stage begins, so that the end of an attempt can tell from a missing one that the job is over.

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <troupe/runtime/execution/failure_logs.hpp>
#include <troupe/runtime/execution/staged_outputs.hpp>
#include <troupe/runtime/execution/staging_root.hpp>
#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/result.hpp>

namespace troupe {

/// Any thread.
class staging_roots {
public:
  struct options {
    std::string session; ///< may be part of a file's name
    executor_id executor;
    /// Begins the name of a file that all is noted in before it is made (staging_journal.hpp); the executor's number
    /// ends it. "": none
    std::string journal = {};
    std::int64_t (*now)() = failure_logs::system_seconds; ///< seconds since 1970
  };
  explicit staging_roots(options opts);

  /// Makes a stage known, once or again. Nothing is made of its root yet.
  void install(stage_id stage, const std::string& output_directory);
  /// The stage's root, which exists; the first call makes it (see make_root), and puts in place what earlier jobs have
  /// left half published there, or removes it when it is old. Error cancelled: the stage is not known, or is forgotten
  /// meanwhile; nothing of its root is left by this call.
  result<std::string> root_of(stage_id stage);
  /// Where the outputs of an attempt are to wait; errors of `root_of`.
  result<staging_place> place_for(stage_id stage, partition_index partition, attempt_number attempt);
  /// From now on the stage has no root here. @returns the one that was made; `remove` is to follow
  std::optional<std::string> forget(stage_id stage);
  /// Removes what waits there of this executor; where the stage `is_over` the root, too, if nothing else waits there,
  /// and folders made for it that are empty. @param root that `forget` has returned
  void remove(const std::string& root, bool is_over);

private:
  struct known_stage {
    std::string output_directory;
    bool made = false;
  };
  result<std::string> make(stage_id stage, const std::string& output_directory);
  result<void> note(const std::string& root, const std::vector<made_folder>& missing);
  void note_made(const std::string& root, const std::vector<made_folder>& made, bool were_missing);
  void drop(const std::string& root);
  bool is_made(stage_id stage);
  void remove_idle_folders();
  result<void> write();

  const options options_;
  std::mutex mutex_; ///< never held while a file is looked at
  std::map<stage_id, known_stage> stages_;
  std::mutex files_mutex_;           ///< of what follows, and of the journal; taken alone
  std::vector<std::string> roots_;   ///< that this executor has not removed
  std::vector<made_folder> folders_; ///< that it has made and not removed, the latest last
};

} // namespace troupe
