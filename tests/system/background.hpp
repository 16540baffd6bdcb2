#pragma once

/// A job that runs while the test does something to its cluster.

#include <chrono>
#include <functional>
#include <future>
#include <stdexcept>
#include <utility>

#include <troupe/tests/support/test_cluster.hpp>

namespace troupe::system_tests {

/// Runs `work` on a thread of its own. Cancels the cluster's jobs when it goes out of scope before the end, so that a
/// failing test does not hang.
template <class T>
class background {
public:
  background(const test_cluster& cluster, std::function<T()> work)
    : jobs_(cluster.app().jobs()), future_(std::async(std::launch::async, std::move(work))) {}
  ~background() {
    if (future_.valid() && future_.wait_for(std::chrono::seconds{0}) != std::future_status::ready)
      jobs_->cancel_all("the test is over");
  }
  background(const background&) = delete;
  background& operator=(const background&) = delete;

  bool is_over() const { return future_.wait_for(std::chrono::seconds{0}) == std::future_status::ready; }
  /// The result, or the exception of `work`. Throws where there is none before the deadline.
  T get(duration deadline = testing::patience()) {
    if (future_.wait_for(deadline) != std::future_status::ready) {
      jobs_->cancel_all("the test waited too long");
      future_.wait_for(testing::patience());
      throw test_cluster_error("the job did not end in time");
    }
    return future_.get();
  }

private:
  std::shared_ptr<cluster_jobs> jobs_;
  std::future<T> future_;
};

} // namespace troupe::system_tests
