#include <troupe/runtime/scheduling/located_tasks.hpp>

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

namespace troupe {

result<task_location> parse_location(std::string_view text) {
  const auto bad = [&] {
    return make_error(ec::invalid_argument, "`" + std::string{text} +
                                                "` is no location; write a host, such as node1, or an executor on it, "
                                                "such as node1/7");
  };
  const auto slash = text.find('/');
  task_location out{std::string{text.substr(0, slash)}, {}};
  if (out.host.empty() || text.find_first_of(" \t\n\r") != std::string_view::npos) return bad();
  if (slash == std::string_view::npos) return out;
  const auto number = text.substr(slash + 1);
  const auto* const end = number.data() + number.size();
  const auto [stop, fault] = std::from_chars(number.data(), end, out.executor.value);
  if (fault != std::errc{} || stop != end || out.executor.value == 0) return bad();
  return out;
}

result<std::vector<task_location>> parse_locations(std::string_view text) {
  std::vector<task_location> all;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    auto one = parse_location(text.substr(0, end));
    if (!one) return one.error();
    all.push_back(*std::move(one));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return all;
}

located_tasks::located_tasks(const std::vector<std::string_view>& locations, std::uint32_t tasks)
  : tasks_(tasks), lists_(2) {
  std::map<std::string_view, std::uint32_t> known;
  for (const auto text : locations) {
    const auto [it, is_new] = known.try_emplace(text, static_cast<std::uint32_t>(sets_.size()));
    if (is_new) {
      const auto parsed = parse_locations(text);
      new_set(parsed ? *parsed : std::vector<task_location>{});
    }
    if (locations.size() > 1) set_of_.push_back(it->second);
  }
  for (partition_index p = 0; p < tasks; ++p) push(p);
}

std::uint32_t located_tasks::new_set(const std::vector<task_location>& locations) {
  std::set<list_number> lists;
  for (const auto& where : locations) {
    const auto [host, new_host] = by_host_.try_emplace(where.host);
    if (new_host) host->second = new_list();
    lists.insert(host->second);
    if (where.executor.value == 0) continue;
    const auto [executor, new_executor] = by_executor_.try_emplace(where.executor);
    if (new_executor) executor->second = new_list();
    lists.insert(executor->second);
  }
  lists.insert(lists.empty() ? 0 : 1);
  sets_.emplace_back(lists.begin(), lists.end());
  return static_cast<std::uint32_t>(sets_.size() - 1);
}

bool located_tasks::prefer(partition_index partition, const task_location& where) {
  const auto [it, is_new] = set_of_executor_.try_emplace(where.executor);
  if (is_new) it->second = new_set({where});
  if (set_of_.empty()) set_of_.resize(tasks_);
  if (std::exchange(set_of_[partition], it->second) != it->second) push(partition); // also where it does not wait
  return is_new;
}

bool located_tasks::is_in(partition_index partition, list_number number) const {
  const auto& lists = sets_[set_of_.empty() ? 0 : set_of_[partition]];
  return std::find(lists.begin(), lists.end(), number) != lists.end();
}

located_tasks::list_number located_tasks::new_list() {
  lists_.emplace_back();
  return static_cast<list_number>(lists_.size() - 1);
}

void located_tasks::push(partition_index partition) {
  for (const auto number : sets_[set_of_.empty() ? 0 : set_of_[partition]]) lists_[number].all.push_back(partition);
}

} // namespace troupe
