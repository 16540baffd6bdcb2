#pragma once

/// Takes blocks over on a thread of its own, one executor's after another's, since whoever is asked to may not wait.

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include <troupe/runtime/scheduling/orders.hpp>

namespace troupe {

/// Any thread.
class takeover_worker {
public:
  /// Does one; asks `stop` now and then. @returns what there is now
  using action = std::function<block_takeover(const block_takeover& what, const std::function<bool()>& stop)>;

  explicit takeover_worker(action does);
  ~takeover_worker(); ///< stops and waits

  void start(block_takeover what);
  /// Those that have ended since the last call.
  std::vector<block_takeover> take_done();

private:
  void work();

  const action does_;
  std::atomic<bool> stopping_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<block_takeover> waiting_;
  std::vector<block_takeover> done_;
  std::thread thread_;
};

} // namespace troupe
