#include <troupe/runtime/scheduling/exclusion_book.hpp>

#include <algorithm>
#include <iterator>

namespace troupe {

namespace {

/// What people are told of a failure, and how many executors and hosts are named to them.
constexpr std::size_t most_text = 300;
constexpr std::size_t most_named = 4;

} // namespace

std::vector<const exclusion_book::executor_record*> exclusion_book::excluded_on(profile_id profile,
                                                                                std::string_view host) const {
  std::vector<const executor_record*> found;
  for (auto it = executors_.lower_bound({profile, {}}); it != executors_.end() && it->first.first == profile; ++it)
    if (it->second.until && it->second.host == host) found.push_back(&it->second);
  return found;
}

/// Enough of its executors are excluded, and not because one task has killed each of them: whoever ran beside it there
/// has failed with it.
bool exclusion_book::is_host_to_blame(profile_id profile, std::string_view host) const {
  const auto excluded = excluded_on(profile, host);
  if (excluded.size() < rules_.max_failed_executors_per_node) return false;
  const auto& first = excluded.front()->tasks;
  return std::none_of(first.begin(), first.end(), [&](const failed_task& task) {
    return std::all_of(excluded.begin(), excluded.end(), [&](const executor_record* other) {
      return std::any_of(other->tasks.begin(), other->tasks.end(), [&](const failed_task& t) {
        return t.lost && t.stage == task.stage && t.partition == task.partition;
      });
    });
  });
}

exclusion_book::changes exclusion_book::on_failure(const failure& f, time_point now) {
  if (!rules_.enabled) return {};
  note(f, now);
  return judge(f, now);
}

exclusion_book::changes exclusion_book::on_loss(const std::vector<failure>& all, time_point now) {
  changes begun;
  if (!rules_.enabled) return begun;
  for (const auto& f : all) note(f, now);
  std::set<profile_id> judged;
  for (const auto& f : all)
    if (judged.insert(f.profile).second)
      for (auto& each : judge(f, now)) begun.push_back(std::move(each));
  return begun;
}

void exclusion_book::note(const failure& f, time_point now) {
  auto& record = executors_[{f.profile, f.executor}];
  record.host = f.host;
  last_[f.profile] = {std::string{f.text.substr(0, most_text)}, now};
  const auto known = std::find_if(record.tasks.begin(), record.tasks.end(), [&](const failed_task& t) {
    return t.stage == f.stage && t.partition == f.partition;
  });
  const auto of_stage =
      std::count_if(record.tasks.begin(), record.tasks.end(), [&](const failed_task& t) { return t.stage == f.stage; });
  if (known != record.tasks.end())
    *known = {f.stage, f.partition, f.lost, now};
  else if (f.lost || static_cast<std::uint64_t>(of_stage) < rules_.max_failed_tasks_per_executor)
    record.tasks.push_back({f.stage, f.partition, f.lost, now});
}

exclusion_book::changes exclusion_book::judge(const failure& f, time_point now) {
  changes begun;
  auto& record = executors_.at({f.profile, f.executor});
  if (!record.until) {
    std::erase_if(record.tasks, [&](const failed_task& t) { return now - t.when >= rules_.timeout; });
    if (record.tasks.size() < rules_.max_failed_tasks_per_executor) return begun;
    record.until = now + rules_.timeout;
    begun.push_back({f.profile, f.executor, record.host, static_cast<std::uint32_t>(record.tasks.size())});
  }
  if (!is_host_excluded(f.profile, f.host) && is_host_to_blame(f.profile, f.host)) {
    hosts_[{f.profile, record.host}] = now + rules_.timeout;
    begun.push_back({f.profile, {}, record.host, static_cast<std::uint32_t>(excluded_on(f.profile, f.host).size())});
  }
  return begun;
}

exclusion_book::changes exclusion_book::on_time(time_point now) {
  changes over;
  for (auto it = executors_.begin(); it != executors_.end();) {
    auto& [key, record] = *it;
    if (record.until && *record.until <= now) {
      over.push_back({key.first, key.second, record.host, 0});
      record.tasks.clear(); // it begins anew
    }
    // What has excluded it is not older than that; what came later is told of by none.
    if (!record.until)
      std::erase_if(record.tasks, [&](const failed_task& t) { return now - t.when >= rules_.timeout; });
    it = record.tasks.empty() ? executors_.erase(it) : std::next(it);
  }
  for (auto it = hosts_.begin(); it != hosts_.end();) {
    if (it->second > now) {
      ++it;
      continue;
    }
    over.push_back({it->first.first, {}, it->first.second, 0});
    it = hosts_.erase(it);
  }
  std::erase_if(last_, [&](const auto& entry) { return now - entry.second.when >= rules_.timeout; });
  return over;
}

exclusion_book::changes exclusion_book::on_stage_ended(stage_id stage) {
  changes over;
  for (auto it = executors_.begin(); it != executors_.end();) {
    auto& [key, record] = *it;
    const bool any = std::erase_if(record.tasks, [&](const failed_task& t) { return t.stage == stage; }) > 0;
    if (any && record.until && record.tasks.size() < rules_.max_failed_tasks_per_executor) {
      record.until.reset();
      over.push_back({key.first, key.second, record.host, 0});
    }
    it = record.tasks.empty() ? executors_.erase(it) : std::next(it);
  }
  const auto executors = over.size();
  for (std::size_t i = 0; i < executors; ++i) {
    const auto [profile, executor, host, count] = over[i];
    if (!is_host_excluded(profile, host) || is_host_to_blame(profile, host)) continue;
    hosts_.erase({profile, host});
    over.push_back({profile, {}, host, 0});
  }
  return over;
}

bool exclusion_book::is_host_excluded(profile_id profile, std::string_view host) const {
  return hosts_.contains({profile, std::string{host}});
}

bool exclusion_book::is_excluded(profile_id profile, executor_id executor, std::string_view host) const {
  const auto it = executors_.find({profile, executor});
  return (it != executors_.end() && it->second.until) || is_host_excluded(profile, host);
}

bool exclusion_book::concerns(profile_id profile) const {
  return std::any_of(executors_.begin(), executors_.end(),
                     [&](const auto& e) { return e.first.first == profile && e.second.until; }) ||
         std::any_of(hosts_.begin(), hosts_.end(), [&](const auto& e) { return e.first.first == profile; });
}

std::set<profile_id> exclusion_book::profiles_excluded_from(executor_id executor, std::string_view host) const {
  std::set<profile_id> profiles;
  for (const auto& [key, record] : executors_)
    if (key.second == executor && record.until) profiles.insert(key.first);
  for (const auto& [key, until] : hosts_)
    if (key.second == host) profiles.insert(key.first);
  return profiles;
}

std::string exclusion_book::describe(profile_id profile) const {
  std::vector<std::string> names;
  for (const auto& [key, until] : hosts_)
    if (key.first == profile) names.push_back("host " + key.second);
  for (auto it = executors_.lower_bound({profile, {}}); it != executors_.end() && it->first.first == profile; ++it)
    if (it->second.until)
      names.push_back("executor " + std::to_string(it->first.second.value) + " (" + it->second.host + ")");
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), most_named); ++i) text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > most_named) text += " and " + std::to_string(names.size() - most_named) + " more";
  if (const auto last = last_.find(profile); !text.empty() && last != last_.end())
    text += "; the last failure: " + last->second.text;
  return text;
}

} // namespace troupe
