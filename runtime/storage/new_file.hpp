#pragma once

/// A file that appears whole: it gets its name when it is complete, so that nobody reads a part of it, and nothing is
/// left where this process is killed before. On a file system that knows no files without a name, such as NFS, it has
/// its own from the beginning.

#include <string>

#include <troupe/runtime/storage/descriptor.hpp>

namespace troupe {

/// Any thread, one at a time.
class new_file {
public:
  enum class naming { when_kept, at_once };

  /// Opens it for writing, of mode 0600. @param naming at_once: as where the file system leaves no choice
  explicit new_file(std::string path, naming when = naming::when_kept);
  /// It goes where it was not kept.
  ~new_file();
  new_file(const new_file&) = delete;
  new_file& operator=(const new_file&) = delete;

  /// False: it was not opened, see `error`.
  explicit operator bool() const noexcept { return static_cast<bool>(file_); }
  /// errno of opening it; EEXIST may come from `keep` as well. 0: it is open.
  int error() const noexcept { return error_; }
  /// @pre it is open
  int get() const noexcept { return file_.get(); }
  /// Gives it its name, where nothing is yet, and closes it. Once. @returns 0 or errno; nothing is left of it then
  int keep();

private:
  void remove() noexcept;

  std::string path_;
  descriptor file_;
  int error_ = 0;
  bool named_ = false;
};

} // namespace troupe
