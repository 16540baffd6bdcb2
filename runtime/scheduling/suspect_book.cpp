#include <troupe/runtime/scheduling/suspect_book.hpp>

namespace troupe {

void suspect_book::accuse(const std::vector<stage_task>& together) {
  if (together.empty()) return;
  const auto number = next_case_++;
  for (const auto& task : together) {
    case_of_.emplace(task, number);
    cases_[number].insert(task);
  }
}

void suspect_book::acquit(stage_task task) {
  const auto known = case_of_.find(task);
  if (known == case_of_.end()) return;
  const auto open = cases_.find(known->second);
  open->second.erase(task);
  if (open->second.empty()) cases_.erase(open);
  case_of_.erase(known);
}

std::vector<stage_task> suspect_book::convict(stage_task task) {
  std::vector<stage_task> cleared;
  const auto known = case_of_.find(task);
  if (known == case_of_.end()) return cleared;
  const auto open = cases_.find(known->second);
  for (const auto& other : open->second) {
    case_of_.erase(other);
    if (other != task) cleared.push_back(other);
  }
  cases_.erase(open);
  return cleared;
}

void suspect_book::forget(stage_id stage) {
  const auto begin = case_of_.lower_bound({stage, 0});
  std::vector<stage_task> its;
  for (auto it = begin; it != case_of_.end() && it->first.stage == stage; ++it) its.push_back(it->first);
  for (const auto& task : its) acquit(task);
}

} // namespace troupe
