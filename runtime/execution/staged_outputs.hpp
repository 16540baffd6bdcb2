#pragma once

/// The outputs of a command between its end and their place: they wait until their attempt is accepted, and are then
/// moved to where the job wants them (output_publication.hpp). Both are on the job's own file system:
///
///     TO/.troupe/SESSION-STAGE                        the root: one for a stage, made by who begins its first attempt
///     TO/.troupe/SESSION-STAGE/PARTITION.ATTEMPT-EXECUTOR    of an attempt that ended well: its output where it has
///                                                            one, else a directory with all of them
///     TO/.troupe/SESSION-STAGE/PARTITION.list         while the several outputs of an attempt are being moved: which
///
/// Only `staging_roots` makes a root. The root goes with the job, so that a late attempt finds no place to wait in.
/// Functions of files alone; any thread, any process that sees them. Symbolic links are never followed below a root.

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/result.hpp>

namespace troupe {

/// Troupe's own folder in an output directory.
inline constexpr const char* own_folder = ".troupe";

/// Where the outputs of one attempt wait.
struct staging_place {
  std::string root;
  std::string name; ///< of what waits in the root
  std::string to;   ///< where its outputs are to lie in the end: the output directory of its stage

  std::string path() const { return root + "/" + name; }
  /// Where the output `name` waits, one of `count`.
  std::string file_of(const std::string& name_of_output, std::size_t count) const {
    return count == 1 ? path() : path() + "/" + name_of_output;
  }
  bool operator==(const staging_place&) const = default;
};

/// Ends the name of a root that is being removed.
inline constexpr std::string_view over_ending = "-over";

/// The directories that `name` leads through below `base`, the outermost first.
std::vector<std::string> directories_of(const std::string& base, const std::string& name);

/// The root of a stage. @pre `session` may be part of a file's name
std::string staging_root(std::string_view session, stage_id stage, const std::string& output_directory);

/// The place of an attempt; every process derives the same. @pre `session` may be part of a file's name
staging_place place_of(std::string_view session, stage_id stage, partition_index partition, attempt_number attempt,
                       executor_id executor, const std::string& output_directory);

/// Moves `names` (see is_output_name) from the attempt's own directory to its place, all or none; copies where that is
/// another file system. Never makes the root: where the root is gone, the job is over,
/// which is error cancelled. Error not_found names an output that the command did not make; invalid_argument
/// one that is no regular file, which will be none next time; overloaded: there is no room; refused:
/// it may not, as on a file system that takes nothing.
/// @param again asked after a failure that may pass: waits, and says whether to try it once more. @returns their bytes
result<std::uint64_t> stage_outputs(
    const std::string& from, const staging_place& place, const std::vector<std::string>& names,
    const std::function<bool()>& again = [] { return false; });

/// What to wait before what has failed so, and may pass, is tried again, each in its turn.
inline constexpr std::array<std::chrono::seconds, 3> pauses_for_room{std::chrono::seconds{1}, std::chrono::seconds{5},
                                                                     std::chrono::seconds{20}};

/// True of an errno that says that something is wanting which others may give back, and of a file server that does not
/// answer.
bool may_pass(int why);

/// True of an errno that says that there is no room.
bool is_full(int why);

/// Removes what waits in the place, if anything does.
void discard_staged(const staging_place& place) noexcept;

} // namespace troupe
