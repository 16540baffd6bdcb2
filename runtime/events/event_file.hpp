#pragma once

/// Writes a session's history to a file, a line of JSON for each event, on a thread of its own.

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <troupe/runtime/events/event.hpp>
#include <troupe/runtime/events/line_file.hpp>

namespace troupe::events {

/// All events are in the file, in the order of their numbers, or a line in their place says which are missing: those
/// that came while a line could not be written, or while more waited than `most_waiting`.
class event_file {
public:
  struct options {
    std::string version; ///< of Troupe, for the first line
    std::string session; ///< its id
    std::int64_t unix_nanoseconds = 0;
    std::size_t most_waiting = 65'536; ///< events that wait for the disk; as many again may be on their way
    /// Says that lines cannot be written, or which events are missing: once each time it comes to that. Called on the
    /// file's own thread.
    std::function<void(const std::string&)> on_trouble;
  };
  event_file(std::unique_ptr<line_sink> to, options opts);
  ~event_file() { close(); }
  event_file(const event_file&) = delete;
  event_file& operator=(const event_file&) = delete;

  /// Takes the next event; nothing after `close`. Any thread; never blocks for the disk.
  void append(const record& event);
  /// Writes what waits, and ends.
  void close();

private:
  void run();
  bool begin();
  void write(const record& event);
  bool write_missing(std::uint64_t until, std::int64_t unix_nanoseconds);
  bool write_line(std::string line);

  const std::unique_ptr<line_sink> to_;
  const options options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<record> waiting_;
  std::uint64_t seen_ = 0; ///< number of the last event, also where there was no room for it
  std::int64_t seen_at_ = 0;
  bool closed_ = false;
  // The thread's own.
  bool begun_ = false;     ///< the first line is written
  std::uint64_t next_ = 1; ///< number of the event that the file has to go on with
  bool in_trouble_ = false;
  std::thread thread_;
};

} // namespace troupe::events
