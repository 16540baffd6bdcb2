#include <troupe/runtime/resources/profile_registry.hpp>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

#include <troupe/runtime/resources/escalation.hpp>
#include <troupe/runtime/resources/exact_rules.hpp>

namespace troupe {

resolved_profile resolved(const profile_registration& registered) {
  resolved_profile out{registered.profile, registered.shape, registered.content, registered.any_executor, {}, {}};
  for (const auto& alternative : registered.alternatives) out.alternatives.push_back(resolved(alternative));
  for (const auto& more : registered.escalations) out.escalations.push_back(resolved(more));
  return out;
}

profile_registry::profile_registry(resource_profile defaults, profile_rules rules, overhead_rule overhead)
  : rules_(rules), overhead_(overhead) {
  const auto refuse = [](const std::string& why) { throw std::invalid_argument("default profile: " + why); };
  if (auto ok = validate(defaults); !ok) refuse(ok.error().message);
  for (const auto name : {resource_names::cores, resource_names::memory})
    if (defaults.executor_amount(name) == 0 && !(rules_.is_exact() && name == resource_names::cores))
      refuse("executor resource " + std::string{name} + " is missing");
  if (defaults.task_amount(resource_names::cpus).is_zero()) refuse("task resource cpus is missing");
  if (rules_.is_exact())
    if (auto ok = exact::check_fractions(defaults); !ok) refuse(ok.error().message);
  defaults.build = 0;
  // Cannot fail: valid, and the first.
  static_cast<void>(add(defaults, defaults));
}

result<profile_registration> profile_registry::register_profile(const resource_profile& profile,
                                                                const std::string& submitter) {
  if (profile.alternatives.empty()) return register_steps(profile, submitter);
  if (auto ok = validate(profile); !ok) return ok.error();
  auto first = register_steps(first_choice(profile), submitter);
  if (!first) return first.error();
  for (const auto& alternative : profile.alternatives) {
    auto next = register_steps(alternative, submitter);
    if (!next) return make_error(next.error().code, "alternative: " + next.error().message);
    first->alternatives.push_back(*std::move(next));
  }
  return first;
}

/// With the profiles under which its tasks are tried again. The first that breaks a rule is the end of them.
profile_registration profile_registry::with_steps(profile_registration first, const resource_profile& written,
                                                  const std::string& submitter) {
  const bool own_overhead = written.executor.contains(std::string{resource_names::memory_overhead});
  for (auto next = escalated(first.content); next;) {
    if (!own_overhead) next->executor.erase(std::string{resource_names::memory_overhead});
    next->build = written.build;
    auto more = register_one(*next, submitter);
    if (!more) {
      first.notes.push_back("its tasks are not tried again with more memory: " + more.error().message);
      break;
    }
    next = escalated(more->content);
    first.escalations.push_back(*std::move(more));
  }
  return first;
}

result<profile_registration> profile_registry::register_steps(const resource_profile& profile,
                                                              const std::string& submitter) {
  auto first = register_one(profile, submitter);
  if (!first) return first;
  return with_steps(*std::move(first), profile, submitter);
}

result<profile_registration> profile_registry::register_one(const resource_profile& profile,
                                                            const std::string& submitter) {
  if (profile.build == 0 && profile == resource_profile{}) return answer(default_profile_id, false, {});
  const origin from{submitter, profile.build, profile};
  if (rules_.is_exact())
    for (const auto& who : {from, origin{{}, 0, profile}})
      if (const auto known = by_origin_.find(who); known != by_origin_.end()) return answer(known->second, false, {});
  auto content = check(profile);
  if (!content) return content.error();
  auto notes = suspicions_about(profile);
  for (auto& note : unused_scripts_of(profile, profiles_.front().content)) notes.push_back(std::move(note));
  if (!rules_.is_exact())
    if (const auto known = by_content_.find(*content); known != by_content_.end())
      return answer(known->second, false, std::move(notes));
  const auto added = add(profile, *std::move(content));
  if (!added) return added.error();
  if (rules_.is_exact()) by_origin_.emplace(from, *added);
  return answer(*added, true, std::move(notes));
}

/// The complete content of a profile that obeys all rules.
result<resource_profile> profile_registry::check(const resource_profile& written) const {
  // As written first, so that the message speaks of what the author wrote.
  if (auto ok = validate(written); !ok) return ok.error();
  if (rules_.is_exact())
    if (auto ok = exact::check_fractions(written); !ok) return ok.error();
  if (rules_.support == support_matrix::spark)
    if (auto ok = exact::check_supported(written, rules_); !ok) return ok.error();
  const auto& defaults = profiles_.front().content;
  auto content =
      rules_.is_exact() ? exact::complete(written, defaults, rules_) : complete(written, defaults, overhead_);
  if (auto ok = validate(content); !ok)
    return make_error(ok.error().code, ok.error().message + " (parts that the profile leaves out are the default's: " +
                                           to_string(defaults) + ")");
  return content;
}

result<profile_registration> profile_registry::profile_of_stage(const std::vector<profile_use>& uses,
                                                                profile_change rule) {
  const auto same_choices = [](const profile_registration& a, const profile_registration& b) {
    return a.profile == b.profile &&
           std::equal(a.alternatives.begin(), a.alternatives.end(), b.alternatives.begin(), b.alternatives.end(),
                      [](const auto& x, const auto& y) { return x.profile == y.profile; });
  };
  std::vector<profile_use> different;
  for (const auto& use : uses) {
    const auto id = use.profile.profile;
    if (find(id) == nullptr)
      return make_error(ec::not_found, "ResourceProfileId " + std::to_string(id.value) + " not found!");
    if (std::none_of(different.begin(), different.end(),
                     [&](const auto& d) { return same_choices(d.profile, use.profile); }))
      different.push_back(use);
  }
  if (different.size() == 1) return different.front().profile;
  const bool choices =
      std::any_of(different.begin(), different.end(), [](const auto& d) { return !d.profile.alternatives.empty(); });
  if (rule != profile_change::merge || choices) return conflict(different[0], different[1], choices);
  return merge(different);
}

result<profile_registration> profile_registry::merge(const std::vector<profile_use>& uses) {
  auto order = uses;
  // So that ties between scripts and vendors do not depend on who asks.
  if (!rules_.is_exact())
    std::sort(order.begin(), order.end(),
              [](const auto& a, const auto& b) { return a.profile.profile < b.profile.profile; });
  resource_profile merged;
  std::string names;
  for (const auto& use : order) {
    const auto& entry = *find(use.profile.profile);
    names += (names.empty() ? "" : ", ") + std::to_string(entry.profile.value);
    const auto& next = rules_.is_exact() ? entry.written : entry.content;
    if (auto ok = check_merge(merged, next); !ok)
      return make_error(ok.error().code, "merging profiles " + names + ": " + ok.error().message);
    if (&use == &order.front())
      merged = next;
    else
      merged = rules_.is_exact() ? exact::merge(merged, next) : troupe::merge(merged, next);
  }
  if (const auto known = by_content_.find(merged); known != by_content_.end())
    return with_steps(answer(known->second, false, {}), merged, {});
  auto content = check(merged);
  if (!content) return make_error(content.error().code, "merging profiles " + names + ": " + content.error().message);
  const auto added = add(merged, *std::move(content));
  if (!added) return added.error();
  return with_steps(answer(*added, true, {}), merged, {});
}

error profile_registry::conflict(const profile_use& a, const profile_use& b, bool choices) const {
  const auto one_of_them = [this](const profile_use& use) {
    auto written = find(use.profile.profile)->written;
    for (const auto& other : use.profile.alternatives) written.alternatives.push_back(find(other.profile)->written);
    return "'" + use.dataset + "' has (" + to_string(written) + ")";
  };
  const std::string what = rules_.is_exact() ? "Multiple ResourceProfiles specified in the RDDs for this stage: "
                                             : "two resource profiles meet in one stage: ";
  return make_error(ec::invalid_profile,
                    what + one_of_them(a) + ", and " + one_of_them(b) +
                        ", which is computed in the same tasks. Give both one profile, or put a shuffle such as "
                        "group_by_key between them" +
                        ", or set troupe.scheduler.profile-change = cut to run it in parts, one behind the other" +
                        (choices ? "; profiles with alternatives are not merged."
                                 : ", or troupe.scheduler.profile-change = merge to run it with the larger amount of "
                                   "each."));
}

result<profile_id> profile_registry::add(const resource_profile& written, resource_profile content) {
  if (profiles_.size() >= max_profiles)
    return make_error(ec::overloaded, "there are " + std::to_string(max_profiles) +
                                          " different profiles already; use one of them, or a new session");
  const profile_id id{profiles_.size()};
  const auto shape = shape_for(written, content);
  if (shape.value > first_of_shape_.size()) first_of_shape_.push_back(id);
  by_content_.emplace(rules_.is_exact() ? written : content, id);
  registered_profile entry{id, shape, written, std::move(content), {}, {}};
  entry.slots = slots_of(entry.content);
  entry.idle = idle_amounts_of(entry.content);
  profiles_.push_back(std::move(entry));
  return id;
}

/// A known shape, or the next number.
shape_id profile_registry::shape_for(const resource_profile& written, const resource_profile& content) {
  const shape_id next{first_of_shape_.size() + 1};
  if (!rules_.is_exact()) return by_executor_half_.try_emplace(content.executor, next).first->second;
  // Without dynamic allocation a task-only profile has no executors of its own (DF-15).
  const bool has_executors = profiles_.empty() || !written.is_task_only() || rules_.is_dynamic();
  return has_executors ? next : profiles_.front().shape;
}

bool profile_registry::runs_anywhere(const registered_profile& entry) const {
  return rules_.is_exact() && !rules_.is_dynamic() && entry.written.is_task_only();
}

profile_registration profile_registry::answer(profile_id id, bool is_new, std::vector<std::string> notes) const {
  const auto& entry = *find(id);
  if (rules_.is_exact()) {
    const auto limit = exact::limit_of(entry.content, rules_);
    const auto waste = exact::waste_of(entry.content, limit);
    notes.insert(notes.end(), waste.begin(), waste.end());
  } else {
    for (const auto& idle : entry.idle)
      notes.push_back(to_string(idle) + ": an executor of this profile runs " + std::to_string(entry.slots.slots) +
                      " tasks at once, limited by " + entry.slots.limiting_resource);
  }
  return {entry.profile, entry.shape, entry.content, runs_anywhere(entry), is_new, std::move(notes), {}, {}};
}

const registered_profile* profile_registry::find(profile_id id) const noexcept {
  return id.value < profiles_.size() ? &profiles_[id.value] : nullptr;
}

const resource_profile* profile_registry::find_shape(shape_id id) const noexcept {
  if (id.value == 0 || id.value > first_of_shape_.size()) return nullptr;
  return &profiles_[first_of_shape_[id.value - 1].value].content;
}

} // namespace troupe
