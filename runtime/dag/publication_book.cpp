#include <troupe/runtime/dag/publication_book.hpp>

#include <stdexcept>
#include <utility>

namespace troupe {

accepted_attempt& publication_book::add(accepted_attempt what) {
  const auto [it, is_new] = entries_.try_emplace(what.task);
  if (!is_new) throw std::logic_error{"two attempts of one task are to be published"};
  it->second = std::move(what);
  by_executor_[it->second.executor].insert(it->first);
  return it->second;
}

accepted_attempt* publication_book::find(const stage_task& task, attempt_number attempt) {
  const auto it = entries_.find(task);
  return it == entries_.end() || it->second.attempt != attempt ? nullptr : &it->second;
}

void publication_book::remove(const stage_task& task) {
  const auto it = entries_.find(task);
  if (it == entries_.end()) return;
  const auto where = by_executor_.find(it->second.executor);
  where->second.erase(task);
  if (where->second.empty()) by_executor_.erase(where);
  entries_.erase(it);
}

void publication_book::forget(stage_id stage) {
  for (const auto& task : of_stage(stage)) remove(task);
}

std::vector<stage_task> publication_book::of_stage(stage_id stage) const {
  std::vector<stage_task> all;
  for (auto it = entries_.lower_bound({stage, 0}); it != entries_.end() && it->first.stage == stage; ++it)
    all.push_back(it->first);
  return all;
}

bool publication_book::has(stage_id stage) const {
  const auto it = entries_.lower_bound({stage, 0});
  return it != entries_.end() && it->first.stage == stage;
}

std::vector<stage_task> publication_book::of_executor(executor_id executor) const {
  const auto it = by_executor_.find(executor);
  if (it == by_executor_.end()) return {};
  return {it->second.begin(), it->second.end()};
}

std::size_t publication_book::count_of(executor_id executor) const {
  const auto it = by_executor_.find(executor);
  return it == by_executor_.end() ? 0 : it->second.size();
}

} // namespace troupe
