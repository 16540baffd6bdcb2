#pragma once

/// Where lines go: a small interface, and a file behind it.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <troupe/runtime/result.hpp>

namespace troupe::events {

/// Takes lines one after the other. One caller at a time.
class line_sink {
public:
  virtual ~line_sink() = default;
  /// Appends all of `line`, which ends with a line feed, or nothing of it. May block.
  virtual result<void> append(std::string_view line) = 0;
};

/// A new file. Each line is one `write`, so that whoever reads it meanwhile, or after its writer was killed, finds
/// complete lines up to the last; it is not forced to the disk.
class line_file : public line_sink {
public:
  /// Makes the file (mode 0600). One that exists is an error, never overwritten.
  static result<std::unique_ptr<line_file>> create(std::string path);
  ~line_file() override;
  line_file(const line_file&) = delete;
  line_file& operator=(const line_file&) = delete;

  result<void> append(std::string_view line) override;

private:
  line_file(std::string path, int file) : path_(std::move(path)), file_(file) {}

  const std::string path_;
  const int file_;
  std::int64_t size_ = 0; ///< bytes of complete lines
};

} // namespace troupe::events
