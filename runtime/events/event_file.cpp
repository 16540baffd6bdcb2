#include <troupe/runtime/events/event_file.hpp>

#include <utility>

#include <troupe/runtime/events/event_json.hpp>

namespace troupe::events {

event_file::event_file(std::unique_ptr<line_sink> to, options opts)
  : to_(std::move(to)), options_(std::move(opts)), thread_([this] { run(); }) {}

void event_file::append(const record& event) {
  {
    const std::lock_guard lock{mutex_};
    if (closed_) return;
    seen_ = event.number;
    seen_at_ = event.unix_nanoseconds;
    if (waiting_.size() < options_.most_waiting) waiting_.push_back(event);
  }
  changed_.notify_one();
}

void event_file::close() {
  {
    const std::lock_guard lock{mutex_};
    closed_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void event_file::run() {
  begin();
  std::vector<record> now;
  std::unique_lock lock{mutex_};
  while (true) {
    changed_.wait(lock, [this] { return closed_ || !waiting_.empty(); });
    if (waiting_.empty()) break;
    std::swap(now, waiting_);
    lock.unlock();
    for (const auto& event : now) write(event);
    now.clear();
    lock.lock();
  }
  lock.unlock(); // nothing is taken any more
  if (begin()) write_missing(seen_ + 1, seen_at_);
}

/// The first line, once. @returns whether it is there
bool event_file::begin() {
  if (!begun_) begun_ = write_line(log_start_to_json(options_.version, options_.session, options_.unix_nanoseconds));
  return begun_;
}

void event_file::write(const record& event) {
  if (begin() && write_missing(event.number, event.unix_nanoseconds) && write_line(to_json(event)))
    next_ = event.number + 1;
}

/// Says which events before number `until` are not in the file. @returns whether the file can go on with that one
bool event_file::write_missing(std::uint64_t until, std::int64_t unix_nanoseconds) {
  if (until <= next_) return true;
  if (!write_line(missing_to_json(next_, until - 1, unix_nanoseconds))) return false;
  if (options_.on_trouble)
    options_.on_trouble("the events " + std::to_string(next_) + " to " + std::to_string(until - 1) +
                        " are missing in the event file: it could not be written as fast as they came, or not at all");
  next_ = until;
  return true;
}

bool event_file::write_line(std::string line) {
  line += '\n';
  const auto written = to_->append(line);
  if (!written && !std::exchange(in_trouble_, true) && options_.on_trouble)
    options_.on_trouble("cannot write the event file: " + written.error().message +
                        "; the session goes on, and a line will say which events are missing");
  if (written) in_trouble_ = false;
  return written.has_value();
}

} // namespace troupe::events
