#pragma once

/// How much memory may be taken for one purpose, and how much of it is.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace troupe {

/// Bytes, counted when they are taken and given back. Any thread. Its shares may outlive it.
class memory_budget {
public:
  explicit memory_budget(std::uint64_t limit) : limit_(limit) {}
  memory_budget(const memory_budget&) = delete;
  memory_budget& operator=(const memory_budget&) = delete;

  /// Bytes that are given back with the object.
  class share {
  public:
    share() = default;
    share(share&& other) noexcept : used_(std::move(other.used_)), bytes_(std::exchange(other.bytes_, 0)) {}
    share& operator=(share&& other) noexcept {
      std::swap(used_, other.used_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~share() {
      if (used_) used_->fetch_sub(bytes_, std::memory_order_relaxed);
    }
    std::uint64_t bytes() const noexcept { return bytes_; }

  private:
    friend class memory_budget;
    share(std::shared_ptr<std::atomic<std::uint64_t>> used, std::uint64_t bytes) noexcept
      : used_(std::move(used)), bytes_(bytes) {}
    std::shared_ptr<std::atomic<std::uint64_t>> used_; ///< of the budget
    std::uint64_t bytes_ = 0;
  };

  /// Nothing where it would be more than the limit.
  std::optional<share> take(std::uint64_t bytes) noexcept {
    auto used = used_->load(std::memory_order_relaxed);
    do
      if (used > limit_ || bytes > limit_ - used) return std::nullopt;
    while (!used_->compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
    return share{used_, bytes};
  }
  std::uint64_t limit() const noexcept { return limit_; }
  std::uint64_t used() const noexcept { return used_->load(std::memory_order_relaxed); }

private:
  const std::uint64_t limit_;
  const std::shared_ptr<std::atomic<std::uint64_t>> used_ = std::make_shared<std::atomic<std::uint64_t>>(0);
};

} // namespace troupe
