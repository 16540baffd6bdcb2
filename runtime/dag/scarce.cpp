// Executors with addresses that a task does not ask for, kept for those that do.

#include <algorithm>
#include <vector>

#include <troupe/runtime/dag/dag_scheduler.hpp>

namespace troupe {

void dag_scheduler::count_asks(stage_run& stage, bool unfinished) {
  if (stage.is_counted_asking == unfinished) return;
  stage.is_counted_asking = unfinished;
  for (const auto& name : stage.asks) {
    if (unfinished)
      ++asking_[name];
    else if (--asking_.find(name)->second == 0)
      asking_.erase(name);
  }
  scarce_due_ = scarce_due_ || !stage.asks.empty();
}

/// Whether an unfinished stage of any job asks for it. Those that come after this one in its own job do not count: they
/// cannot run before it has ended, and keeping executors idle for them would only put that off.
bool dag_scheduler::is_asked_by_others(const stage_run& stage, const std::string& resource) const {
  const auto known = asking_.find(resource);
  if (known == asking_.end()) return false;
  auto others = known->second;
  const auto& all = jobs_.at(stage.job).stages;
  std::vector<bool> seen(all.size());
  std::vector<std::uint32_t> to_visit{stage.index};
  seen[stage.index] = true;
  while (!to_visit.empty()) {
    const auto& one = all[to_visit.back()];
    to_visit.pop_back();
    if (one.is_counted_asking && one.asks.contains(resource)) --others;
    for (const auto child : one.children)
      if (!seen[child]) {
        seen[child] = true;
        to_visit.push_back(child);
      }
  }
  return others > 0;
}

/// Decides for each demand that waits, by its first stage. Under `exact` an executor runs what it was started for.
void dag_scheduler::keep_scarce(time_point now) {
  if (!scarce_due_) return;
  scarce_due_ = false;
  const auto wait = options_.scarce_resource_wait;
  if (options_.matching == profile_matching::exact || wait == duration::zero()) return;
  for (const auto& [d, stages] : ready_) {
    auto& stage = *stages.begin()->second;
    std::set<std::string, std::less<>> kept;
    if (!asking_.empty()) {
      if (wait != never && now - stage.served >= wait) stage.takes_scarce = true;
      if (!stage.takes_scarce)
        for (const auto& [name, stages_asking] : asking_)
          if (!pool_.demand_of(d).content->task.contains(name) && is_asked_by_others(stage, name)) kept.insert(name);
    }
    pool_.keep_from(d, std::move(kept));
  }
}

} // namespace troupe
