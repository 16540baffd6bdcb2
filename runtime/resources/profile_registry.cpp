#include <troupe/runtime/resources/profile_registry.hpp>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace troupe {

profile_registry::profile_registry(resource_profile defaults, overhead_rule overhead) : overhead_(overhead) {
  if (auto ok = validate(defaults); !ok) throw std::invalid_argument("default profile: " + ok.error().message);
  for (const auto name : {resource_names::cores, resource_names::memory})
    if (defaults.executor_amount(name) == 0)
      throw std::invalid_argument("default profile: executor resource " + std::string{name} + " is missing");
  if (defaults.task_amount(resource_names::cpus).is_zero())
    throw std::invalid_argument("default profile: task resource cpus is missing");
  // Cannot fail: valid, and the first.
  static_cast<void>(intern(std::move(defaults), {}));
}

result<profile_registration> profile_registry::register_profile(const resource_profile& profile) {
  // As written first, so that the message speaks of what the author wrote.
  if (auto ok = validate(profile); !ok) return ok.error();
  auto content = complete(profile, profiles_.front().content, overhead_);
  if (auto ok = validate(content); !ok)
    return make_error(ok.error().code, ok.error().message + " (parts that the profile leaves out are the default's: " +
                                           to_string(profiles_.front().content) + ")");
  return intern(std::move(content), suspicions_about(profile));
}

result<profile_registration> profile_registry::merge(profile_id a, profile_id b) {
  for (const auto id : {a, b})
    if (find(id) == nullptr) return make_error(ec::not_found, "no profile has id " + std::to_string(id.value));
  // By id, so that ties between scripts and vendors do not depend on who asks.
  const auto [first, second] = std::minmax(a, b);
  const auto& a_content = find(first)->content;
  const auto& b_content = find(second)->content;
  auto ok = check_merge(a_content, b_content);
  auto content = ok ? troupe::merge(a_content, b_content) : resource_profile{};
  if (ok) ok = validate(content);
  if (!ok)
    return make_error(ok.error().code, "merging profiles " + std::to_string(first.value) + " and " +
                                           std::to_string(second.value) + ": " + ok.error().message);
  return intern(std::move(content), {});
}

const registered_profile* profile_registry::find(profile_id id) const noexcept {
  return id.value < profiles_.size() ? &profiles_[id.value] : nullptr;
}

const resource_profile* profile_registry::find_shape(shape_id id) const noexcept {
  if (id.value == 0 || id.value > first_of_shape_.size()) return nullptr;
  return &profiles_[first_of_shape_[id.value - 1].value].content;
}

result<profile_registration> profile_registry::intern(resource_profile content, std::vector<std::string> notes) {
  const auto known = by_content_.find(content);
  const bool is_new = known == by_content_.end();
  if (is_new) {
    if (profiles_.size() >= max_profiles)
      return make_error(ec::overloaded, "there are " + std::to_string(max_profiles) +
                                            " different profiles already; use one of them, or a new session");
    const profile_id id{profiles_.size()};
    const auto [half, new_shape] =
        by_executor_half_.try_emplace(content.executor, shape_id{first_of_shape_.size() + 1});
    if (new_shape) first_of_shape_.push_back(id);
    by_content_.emplace(content, id);
    profiles_.push_back({id, half->second, content, slots_of(content), idle_amounts_of(content)});
  }
  const auto& entry = profiles_[is_new ? profiles_.size() - 1 : known->second.value];
  for (const auto& idle : entry.idle)
    notes.push_back(to_string(idle) + ": an executor of this profile runs " + std::to_string(entry.slots.slots) +
                    " tasks at once, limited by " + entry.slots.limiting_resource);
  return profile_registration{entry.profile, entry.shape, entry.content, is_new, std::move(notes)};
}

} // namespace troupe
