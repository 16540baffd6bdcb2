#pragma once

/// The roots below which an executor's attempts leave their outputs (see staged_outputs.hpp): made when the first
/// attempt of a stage begins, so that the end of an attempt can tell from a missing one that the job is over.

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <troupe/runtime/execution/staged_outputs.hpp>
#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/result.hpp>

namespace troupe {

/// A root that an executor has made, or found.
struct made_root {
  std::string root;
  std::vector<std::string> folders; ///< that were missing for it
  bool operator==(const made_root&) const = default;
};

/// Any thread.
class staging_roots {
public:
  struct options {
    std::string session; ///< may be part of a file's name
    executor_id executor;
    std::string journal = {}; ///< file that all is noted in before it is made (staging_journal.hpp); "": none
  };
  explicit staging_roots(options opts) : options_(std::move(opts)) {}

  /// Makes a stage known, once or again. Nothing is made of its root yet.
  void install(stage_id stage, const std::string& output_directory);
  /// The stage's root, which exists; the first call makes it (see make_root). Error cancelled: the stage is not known,
  /// or is forgotten meanwhile; nothing of its root is left by this call.
  result<std::string> root_of(stage_id stage);
  /// Where the outputs of an attempt are to wait; errors of `root_of`.
  result<staging_place> place_for(stage_id stage, partition_index partition, attempt_number attempt);
  /// From now on the stage has no root here. @returns the one that was made
  std::optional<made_root> forget(stage_id stage);

private:
  struct known_stage {
    std::string output_directory;
    bool made = false;
    std::vector<std::string> folders = {}; ///< see made_root
  };
  result<std::string> make(stage_id stage, const std::string& output_directory);

  const options options_;
  std::mutex mutex_;
  std::map<stage_id, known_stage> stages_;
};

} // namespace troupe
