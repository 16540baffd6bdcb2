#pragma once

/// How executors that a backend has started have ended: who hears that one is gone asks here why. Pure; one owner, the
/// allocator actor or a test.

#include <map>
#include <optional>
#include <set>
#include <vector>

#include <troupe/runtime/allocation/allocation.hpp>

namespace troupe {

class exit_book {
public:
  /// So many ends are remembered, of the latest requests.
  static constexpr std::size_t most_remembered = 1000;

  void on_snapshot(const std::vector<launch_status>& statuses);
  /// Nothing where the backend has not seen its end yet; the cause is unknown where the backend knows no such executor.
  std::optional<executor_exit> find(request_id request) const;

private:
  std::set<request_id> present_;
  std::map<request_id, executor_exit> ended_;
};

} // namespace troupe
