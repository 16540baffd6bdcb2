#pragma once

/// A file in Troupe's own folder of a directory, `.troupe/NAME.jsonl`, held alone while it is read and written. Others
/// may be able to write to that directory: links are never followed, and what was read may say anything.

#include <functional>
#include <optional>
#include <string>

#include <troupe/runtime/storage/descriptor.hpp>

namespace troupe {

/// One thread.
class record_file {
public:
  /// None where there is no such directory, its folder cannot be made, or another process holds it for long.
  /// @param name a part of a path
  static std::optional<record_file> open(const std::string& directory, const std::string& name);

  /// For `read` alone: nothing is made and nobody kept waiting, since a new file comes whole. None where there is no
  /// such folder.
  static std::optional<record_file> look_at(const std::string& directory, const std::string& name);

  /// Calls `each` for every line, without its end; a line of more than 4 MiB is left out. @returns false where there is
  /// a file that cannot be read to its end
  bool read(const std::function<void(const std::string& line)>& each) const;

  /// What follows becomes the file, whole or not at all.
  void add(const std::string& line);
  /// @returns false where it could not be written: the file is as it was. Without any line the file goes.
  bool commit();

private:
  record_file(const std::string& directory, const std::string& name, descriptor folder);
  bool begin();
  bool flush();

  std::string path_; ///< of the folder
  std::string name_; ///< of the file
  descriptor folder_;
  std::string new_name_; ///< of the new file; "": not begun
  descriptor out_;
  std::string buffer_;
  bool failed_ = false;
};

} // namespace troupe
