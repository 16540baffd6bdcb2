#pragma once

/// Numbers that tasks count beside their results:
///
///     const auto bad = session.accumulator("bad lines");
///     lines.filter(troupe::with(bad), [](const auto& bad, const std::string& line) {
///       if (!line.empty()) return true;
///       bad.add(1);
///       return false;
///     }).count();
///     std::cerr << bad.value() << " bad lines\n";
///
/// Each task of a job counts once: with its accepted attempt, however often it was tried or copied, and whatever was
/// run again since its output was lost. A job that fails counts what its tasks had counted by then. A dataset that is
/// computed twice counts twice, as Spark's do: by two jobs, or by one that reads it in two places (`d.join(d)`);
/// `persist` it where that is not meant, which helps as far as it stays kept. A job may count in `max_accumulators`,
/// and fails with ec::overloaded beyond. The numbers of a job are in `session::last_job`, too.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <troupe/runtime/api/serialize.hpp>
#include <troupe/runtime/execution/task_context.hpp>
#include <troupe/runtime/scheduling/accumulated.hpp>

namespace troupe {

class session;

namespace detail {

/// What the jobs of a session have counted. Any thread.
class accumulator_totals {
public:
  void add(std::string_view name, std::int64_t amount) {
    const std::lock_guard lock{mutex_};
    auto& total = totals_[std::string{name}];
    total = add_wrapping(total, amount);
  }
  std::int64_t of(const std::string& name) const {
    const std::lock_guard lock{mutex_};
    const auto found = totals_.find(name);
    return found == totals_.end() ? 0 : found->second;
  }

private:
  mutable std::mutex mutex_;
  std::map<std::string, std::int64_t> totals_;
};

} // namespace detail

/// A handle of an accumulator: a small value that travels with functions, in records and as an argument. Two handles of
/// one name are one accumulator of their session.
class accumulator {
public:
  /// Names none.
  accumulator() = default;

  const std::string& name() const noexcept { return name_; }

  /// In a task, on its own thread: counts for this attempt. In the program that has made the handle: adds at once, from
  /// any thread. Throws std::logic_error elsewhere, and where the handle names none; see also task_context::count.
  void add(std::int64_t amount) const {
    if (name_.empty()) throw std::logic_error("this accumulator has no name: make it by session::accumulator");
    if (auto* const task = task_context::find_current())
      task->count(name_, amount);
    else if (totals_)
      totals_->add(name_, amount);
    else
      throw std::logic_error("accumulator '" + name_ +
                             "' was added to outside a task: on a thread that a task has started, add up what it is to "
                             "count, and add that on the task's own");
  }

  /// What jobs that have ended, and the program itself, have added so far. Beyond 64 bits it wraps. Throws
  /// std::logic_error in a task, and wherever the handle was not made.
  std::int64_t value() const {
    if (!totals_ || task_context::find_current())
      throw std::logic_error("the value of accumulator '" + name_ +
                             "' can be had in the program that made it, not in a task");
    return totals_->of(name_);
  }

private:
  friend class session;
  friend struct serializer<accumulator>;
  accumulator(std::string name, std::shared_ptr<detail::accumulator_totals> totals)
    : name_(std::move(name)), totals_(std::move(totals)) {}

  std::string name_;
  std::shared_ptr<detail::accumulator_totals> totals_; ///< null where it has come with a task
};

/// Its name travels.
template <>
struct serializer<accumulator> {
  static void write(encoder& out, const accumulator& handle) { out(handle.name_); }
  static accumulator read(decoder& in) { return {serializer<std::string>::read(in), nullptr}; }
};

} // namespace troupe
