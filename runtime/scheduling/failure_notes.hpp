#pragma once

/// What has gone wrong in a job, for who asks later. Bounded: the first and the last of it.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include <troupe/runtime/ids.hpp>

namespace troupe {

/// An attempt that did not succeed, or an executor of the job that was lost.
struct explained_failure {
  std::uint32_t stage = 0; ///< its index in the job
  bool is_loss = false;    ///< an executor was lost: stage, partition and attempt mean nothing
  partition_index partition = 0;
  attempt_number attempt = 0;
  executor_id executor;
  std::string host; ///< "": it was gone already
  std::string why;  ///< may have several lines

  bool operator==(const explained_failure&) const = default;
};

/// Not thread-safe.
class failure_notes {
public:
  /// Notes of so many at the beginning, and as many of the last ones, are kept.
  static constexpr std::size_t most_at_each_end = 20;
  /// Bytes of what one of them says; of more the middle is left out.
  static constexpr std::size_t longest = 2048;

  void add(explained_failure note);

  /// In the order in which they were added.
  std::vector<explained_failure> all() const;
  /// Those between the first and the last ones.
  std::uint64_t left_out() const noexcept { return left_out_; }

private:
  std::vector<explained_failure> first_;
  std::deque<explained_failure> last_;
  std::uint64_t left_out_ = 0;
};

} // namespace troupe
