#pragma once

/// Which outputs of an attempt are to be put in place: a file beside those that wait (see staged_outputs.hpp), there
/// from before the first is moved until the last is. So who finds it, after the process that moved them was killed, can
/// move the rest. One at most for a task, since no two attempts of a task are published side by side. Functions of
/// files alone; any thread.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/runtime/execution/staged_outputs.hpp>
#include <troupe/runtime/storage/descriptor.hpp>

namespace troupe {

struct publication_list {
  std::string place;               ///< name of the attempt's place in the root
  std::vector<std::string> names;  ///< of its outputs
  std::vector<std::int64_t> sizes; ///< bytes of each; -1 for what did not wait when the list was written

  bool operator==(const publication_list&) const = default;
};

/// Begins the name of a place that was put aside.
inline constexpr std::string_view aside_beginning = "over-";
/// The path under which a place lies while somebody looks whether it may be removed: with a list it is brought back.
std::string aside_of(const staging_place& place);

/// The end of the name of such a file.
inline constexpr std::string_view list_ending = ".list";

/// The list of the task that this place is of.
std::string list_of(const staging_place& place);

/// Writes it, and is sure that it is on the disk. One of an earlier attempt goes, with what waits for it; EBUSY where
/// somebody is just completing that. @returns 0 or errno
int write_publication_list(const staging_place& place, const std::vector<std::string>& names);

/// None where there is no such file, or not of this user, or it is not what `write_publication_list` writes: the place
/// lies in the root, and all names stay below it.
std::optional<publication_list> read_publication_list(const std::string& path);

/// True where something that waits is shorter than it was: the machine has stopped before all of it was on the disk.
bool is_cut_short(const staging_place& place, const publication_list& list);

/// Whether the list is there and of this attempt. `unknown`: it cannot be read just now.
enum class list_state { own, none, unknown };
list_state state_of_list(const staging_place& place);

/// Keeps others that complete a publication out. They are waited for, but not for ever.
class publication_lock {
public:
  explicit publication_lock(const staging_place& place);
  /// False where another process has it. Also where there is no list, or files cannot be locked, it is held.
  bool is_held() const noexcept { return held_; }

private:
  descriptor file_;
  bool held_ = true;
};

/// Removes the list unless it is of another attempt by now.
void remove_publication_list(const staging_place& place);

} // namespace troupe
