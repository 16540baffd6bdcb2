#pragma once

/// Bytes of one block set in a file of its own: written once, mapped while somebody reads them.

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/runtime/result.hpp>

namespace troupe {

/// A file that is removed with the object. Mappings that were handed out outlive both. Any thread.
class block_file {
public:
  /// Writes `parts` one after another to a new file at `path` (mode 0600). Nothing is left on failure.
  /// @pre the parts are not all empty
  static result<std::unique_ptr<block_file>> write(std::string path, const std::vector<std::string>& parts);
  ~block_file();
  block_file(const block_file&) = delete;
  block_file& operator=(const block_file&) = delete;

  struct mapping {
    std::shared_ptr<const void> owner;
    std::string_view bytes;
  };
  /// The whole content. Readers at the same time share one mapping; without readers there is none, so that the number
  /// of files is not bounded by the number of mappings that a process may have.
  result<mapping> map() const;

private:
  block_file(std::string path, std::uint64_t size) : path_(std::move(path)), size_(size) {}

  const std::string path_;
  const std::uint64_t size_;
  mutable std::mutex mutex_;
  mutable std::weak_ptr<const void> mapped_;
};

} // namespace troupe
