#pragma once

/// Wakes a thread that waits for a child. Any thread may request; the waiting one polls the descriptor.

namespace troupe {

class stop_event {
public:
  /// Throws std::system_error when the system has no descriptor left.
  stop_event();
  ~stop_event();
  stop_event(const stop_event&) = delete;
  stop_event& operator=(const stop_event&) = delete;

  void request() noexcept;
  /// Takes requests back, for the next use.
  void clear() noexcept;
  bool requested() const noexcept;
  /// Readable once requested.
  int fd() const noexcept { return fd_; }

private:
  int fd_;
};

} // namespace troupe
