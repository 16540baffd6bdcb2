#pragma once

/// A stage as an executor knows it, shared by the runner and the lease threads that run its tasks.

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

#include <troupe/runtime/execution/native_plan.hpp>
#include <troupe/runtime/scheduling/orders.hpp>

namespace troupe {

/// What one installation says; immutable. A new stage attempt brings new inputs and so a new version.
struct stage_version {
  stage_install install;
  std::shared_ptr<const native_plan> plan;  ///< null for a command, and where the program cannot run here
  const command_program* command = nullptr; ///< of a command stage; owned by `install`
  error fault;                              ///< why it cannot; every task of it then fails with these words
};

class installed_stage {
public:
  explicit installed_stage(std::shared_ptr<const stage_version> version) : version_(std::move(version)) {}

  std::shared_ptr<const stage_version> version() const {
    const std::lock_guard guard{mutex_};
    return version_;
  }
  void replace(std::shared_ptr<const stage_version> version) {
    const std::lock_guard guard{mutex_};
    version_ = std::move(version);
  }

  /// Once removed, nothing of the stage starts any more, and what ends of it counts as killed.
  bool removed() const noexcept { return removed_.load(std::memory_order_acquire); }
  /// @param is_late it has run into its time-out
  void remove(bool is_late = false) noexcept {
    if (is_late) late_.store(true, std::memory_order_release);
    removed_.store(true, std::memory_order_release);
  }
  bool is_late() const noexcept { return late_.load(std::memory_order_acquire); }

private:
  mutable std::mutex mutex_;
  std::shared_ptr<const stage_version> version_;
  std::atomic<bool> removed_ = false;
  std::atomic<bool> late_ = false; ///< set before `removed_`
};

} // namespace troupe
