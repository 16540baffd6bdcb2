#pragma once

/// Waiting tasks of a stage by where they would rather run (spec TS-9). Owner: the task set. Not thread-safe; no clock.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/result.hpp>

namespace troupe {

/// How near to its data a task runs; a later level allows the earlier ones too. A task without preferences is as near
/// as can be anywhere.
enum class locality_level : std::uint8_t {
  executor = 0, ///< on an executor that it names
  host = 1,     ///< on a host that it names, or that of an executor that it names
  any = 2,
};

/// `HOST`, or `HOST/7`: executor 7 there.
struct task_location {
  std::string host;
  executor_id executor; ///< 0: any of the host
  bool operator==(const task_location&) const = default;
};
/// ec::invalid_argument where the text is no location.
result<task_location> parse_location(std::string_view text);
/// Those of one task, separated by newlines; "": no preference.
result<std::vector<task_location>> parse_locations(std::string_view text);

class located_tasks {
public:
  /// @param locations one for each task, or one for all of them. @pre they parse
  located_tasks(const std::vector<std::string_view>& locations, std::uint32_t tasks);

  /// Of tasks that do not mind yet.
  explicit located_tasks(std::uint32_t tasks) : located_tasks({std::string_view{}}, tasks) {}

  /// Where the task would rather run from now on, wherever that was before. @returns whether no task named that before
  bool prefer(partition_index partition, const task_location& where);
  /// The task waits from now on.
  void push(partition_index partition);
  /// The first task, nearest first, that may run there at this level and for which `waits` holds; it stays where it is.
  /// What does not wait any more is dropped on the way.
  template <class Waits>
  std::optional<partition_index> find(executor_id executor, const std::string& host, locality_level level, Waits waits);
  /// Whether `visit` holds for an executor that any task names.
  template <class Visit>
  bool any_executor(Visit visit) const {
    for (const auto& [executor, number] : by_executor_)
      if (visit(executor)) return true;
    return false;
  }
  /// The same for hosts.
  template <class Visit>
  bool any_host(Visit visit) const {
    for (const auto& [host, number] : by_host_)
      if (visit(host)) return true;
    return false;
  }

private:
  using list_number = std::uint32_t;
  /// First in, first out.
  struct list {
    std::vector<partition_index> all;
    std::size_t head = 0;
  };
  template <class Waits>
  std::optional<partition_index> front(list_number number, Waits waits);
  list_number new_list();
  std::uint32_t new_set(const std::vector<task_location>& locations);
  bool is_in(partition_index partition, list_number number) const;

  std::uint32_t tasks_;
  std::vector<list> lists_; ///< list 0: without preferences; list 1: all others
  std::map<executor_id, list_number> by_executor_;
  std::unordered_map<std::string, list_number> by_host_;
  std::vector<std::vector<list_number>> sets_;           ///< lists of tasks that prefer the same
  std::vector<std::uint32_t> set_of_;                    ///< by task; empty: set 0
  std::map<executor_id, std::uint32_t> set_of_executor_; ///< of those that `prefer` has named
};

template <class Waits>
std::optional<partition_index> located_tasks::front(list_number number, Waits waits) {
  auto& l = lists_[number];
  while (l.head < l.all.size() && !(waits(l.all[l.head]) && is_in(l.all[l.head], number))) ++l.head;
  if (l.head == l.all.size()) {
    l.all.clear();
    l.head = 0;
    return std::nullopt;
  }
  return l.all[l.head];
}

template <class Waits>
std::optional<partition_index> located_tasks::find(executor_id executor, const std::string& host, locality_level level,
                                                   Waits waits) {
  if (const auto its = by_executor_.find(executor); its != by_executor_.end())
    if (const auto p = front(its->second, waits)) return p;
  if (level >= locality_level::host)
    if (const auto its = by_host_.find(host); its != by_host_.end())
      if (const auto p = front(its->second, waits)) return p;
  if (const auto p = front(0, waits)) return p;
  return level == locality_level::any ? front(1, waits) : std::nullopt;
}

} // namespace troupe
