#pragma once

/// The directories of a session. Its own has what is small: secret, sockets, logs; blocks and attempts are there only
/// where it has no local directories, which are made and held in the same way. Mode 0700, held by a shared flock of
/// every process of the session; the last one to leave removes it, and what was left behind is swept by the user's next
/// command.

#include <ctime>
#include <string>
#include <string_view>

#include <troupe/runtime/config/keys.hpp>
#include <troupe/runtime/result.hpp>

namespace troupe {

/// File of a session's directory that names the directories of the session's control groups, one a line. They are
/// removed along with it.
inline constexpr const char* group_list_name = "control-groups";

class run_directory {
public:
  /// Makes `<base>/<name>` and holds it. `base` is made with mode 0700 where it is missing, and refused where it
  /// belongs to another user or others may enter it. `setting` is the key that errors name; it lives for ever.
  static result<run_directory> create(const std::string& base, const std::string& name,
                                      std::string_view setting = keys::run_directory.name);
  /// Holds one that another process of the session made.
  static result<run_directory> join(const std::string& path, std::string_view setting = keys::run_directory.name);
  /// Joins `<base>/<name>`, or makes it: for processes that do not know which of them is the first.
  static result<run_directory> share(const std::string& base, const std::string& name,
                                     std::string_view setting = keys::run_directory.name);
  /// Removes directories below `base`, where that is this user's own, that nobody holds any more, with what is left in
  /// their control groups and what waits of their executors (staging_journal.hpp), their local directories, and those
  /// that somebody began to make a minute before `now` or earlier.
  static void sweep(const std::string& base, std::time_t now = std::time(nullptr));
  /// `configured`, or `troupe-<uid>` in it where it is everybody's as /tmp is. Where it is empty
  /// `$XDG_RUNTIME_DIR/troupe` if that is this user's own, else temporary_base().
  static std::string base_of(const std::string& configured);
  /// `/tmp/troupe-<uid>`, or where nothing can be made in /tmp `troupe-<uid>` in `$TMPDIR`.
  static std::string temporary_base();
  /// `troupe-<uid>`: of this user's own directory where others have theirs as well.
  static std::string private_name();

  run_directory(run_directory&& other) noexcept;
  run_directory& operator=(run_directory&& other) noexcept;
  /// Lets go; the last holder removes the directory and what waits of its executors, unless control groups are left (it
  /// may be in one): those are for the next sweep.
  ~run_directory();

  const std::string& path() const noexcept { return path_; }
  /// Path of a subdirectory of mode 0700 that is made where it is missing.
  result<std::string> subdirectory(const std::string& name) const;

private:
  run_directory(std::string path, int lock, std::string_view setting)
    : path_(std::move(path)), setting_(setting), lock_(lock) {}
  void release() noexcept;

  std::string path_;
  std::string_view setting_;
  int lock_ = -1;
};

} // namespace troupe
