#pragma once

/// Directories of text files that jobs write: whole or not there.

#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <troupe/runtime/api/operation_entry.hpp>
#include <troupe/runtime/storage/descriptor.hpp>

namespace troupe::detail {

/// The program's side: a directory with a place apart for what is being written. Nothing stays of it unless `commit` is
/// called, or the program is killed: then the next one of this user that writes there removes what was being written,
/// where the file system is one of this machine, so that a lock tells that nobody writes. Throws job_error
/// (invalid_argument for one that is there and not empty, io).
class text_directory {
public:
  explicit text_directory(const std::string& path);
  ~text_directory();
  text_directory(const text_directory&) = delete;
  text_directory& operator=(const text_directory&) = delete;

  /// Where attempts write; absolute.
  const std::string& staging() const noexcept { return staging_; }
  /// What the accepted attempt of the next partition has written, in a file of this name, becomes its part. Throws
  /// job_error: malformed for a name that no attempt of that task gives.
  void publish(std::string_view name);
  /// All parts are there: marks that by an empty file `_SUCCESS`.
  void commit();

private:
  bool mark_as_own(std::error_code& code);
  bool take_over();
  std::string in_use() const;
  void roll_back() noexcept;
  void remove_apart() noexcept;

  std::string path_;
  std::string apart_;             ///< in it, and there as long as somebody writes
  std::string staging_;           ///< in that, under a name that no other job has
  descriptor lock_;               ///< the mark in `apart_`, locked where it can be
  std::vector<std::string> made_; ///< it and folders above it that were not there before, the innermost first
  std::uint32_t published_ = 0;
  bool committed_ = false;
};

/// The task's side: writes each record as a line. Its result is the name of the file, of its own for each attempt.
operation text_terminal(const std::string& staging);

} // namespace troupe::detail
