#pragma once

/// Connections to block servers that are kept for later, and whether whoever reads should go on at all. Any thread.

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include <troupe/runtime/time.hpp>
#include <troupe/runtime/transfer/block_connection.hpp>

namespace troupe {

class connection_pool {
public:
  /// An idle connection, newest first: it is the least likely to have been closed.
  std::optional<block_connection> take(const block_endpoint& endpoint);
  /// @pre reusable
  void keep(const block_endpoint& endpoint, block_connection connection);

  /// From now on everybody stops.
  void interrupt() noexcept;
  /// Nothing more comes from this executor.
  void forget(executor_id executor);
  bool is_forgotten(executor_id executor) const;
  /// Interrupted, or the calling thread's attempt was killed.
  bool stopped() const;
  /// Waits, unless it is stopped.
  void pause(duration length);

private:
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::map<block_endpoint, std::vector<block_connection>> idle_; ///< no empty list stays
  std::size_t idle_count_ = 0;
  std::set<executor_id> forgotten_;
  std::atomic<bool> interrupted_ = false;
};

} // namespace troupe
