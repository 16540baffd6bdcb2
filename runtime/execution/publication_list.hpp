#pragma once

/// Which outputs of an attempt are to be put in place: a file beside those that wait (see staged_outputs.hpp), there
/// from before the first is moved until the last is. So who finds it, after the process that moved them was killed, can
/// move the rest. One at most for a task, since no two attempts of a task are published side by side. Functions of
/// files alone; any thread.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/runtime/execution/staged_outputs.hpp>
#include <troupe/runtime/storage/descriptor.hpp>

namespace troupe {

struct publication_list {
  std::string place;              ///< name of the attempt's place in the root
  std::vector<std::string> names; ///< of its outputs

  bool operator==(const publication_list&) const = default;
};

/// The end of the name of such a file.
inline constexpr std::string_view list_ending = ".list";

/// The list of the task that this place is of.
std::string list_of(const staging_place& place);

/// Writes it, and is sure that it is on the disk. One of an earlier attempt goes, with what waits for it. @returns 0 or
/// errno
int write_publication_list(const staging_place& place, const std::vector<std::string>& names);

/// None where there is no such file, or neither of this user nor of the output directory's owner, or it is not what
/// `write_publication_list` writes: the place lies in the root, and all names stay below it.
std::optional<publication_list> read_publication_list(const std::string& path);

/// Keeps others that complete a publication waiting; where files cannot be locked, nobody waits.
class publication_lock {
public:
  explicit publication_lock(const staging_place& place);

private:
  descriptor file_;
};

/// Removes the list unless it is of another attempt by now.
void remove_publication_list(const staging_place& place);

} // namespace troupe
