#pragma once

/// The core of the resource profile manager: profiles by id, executor shapes by id. Equal contents are one profile, and
/// equal executor halves one shape (spec section 13, items 2 and 3). A profile that is refused leaves no trace. Not
/// thread-safe; one owner. Nothing is removed; the number of profiles is bounded.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/resources/capacity.hpp>
#include <troupe/runtime/resources/profile_notes.hpp>
#include <troupe/runtime/resources/resource_profile.hpp>
#include <troupe/runtime/result.hpp>

namespace troupe {

/// Everything that is known about one registered profile.
struct registered_profile {
  profile_id profile;
  shape_id shape;
  resource_profile content;      ///< complete and valid
  slot_count slots;              ///< of an executor that is exactly this profile
  std::vector<idle_amount> idle; ///< what such an executor can never use

  bool operator==(const registered_profile&) const = default;
};

/// Answer to a registration.
struct profile_registration {
  profile_id profile;
  shape_id shape;
  resource_profile content;       ///< what was registered, completed from the default profile
  bool is_new = false;            ///< false: an equal profile was there before
  std::vector<std::string> notes; ///< what its author should hear: probable slips of names, idle amounts

  bool operator==(const profile_registration&) const = default;
};

/// Profiles and shapes of one session.
class profile_registry {
public:
  /// Registrations beyond this many distinct profiles are refused.
  static constexpr std::size_t max_profiles = 10'000;

  /// Starts with `defaults` as profile 0, of shape 1. `overhead` says what memoryOverhead profiles without one get.
  /// @pre `defaults` passes `validate` and has cores, memory and cpus; throws std::invalid_argument otherwise.
  explicit profile_registry(resource_profile defaults, overhead_rule overhead = {});

  /// Interns `profile`, completed from the default profile. Refused when the profile, as written or completed, breaks a
  /// rule of `validate` (ec::invalid_profile), or when there are too many (ec::overloaded).
  result<profile_registration> register_profile(const resource_profile& profile);

  /// Interns the merger of two registered profiles: the larger amount of each clause. The order of the arguments does
  /// not matter. ec::not_found for an unknown id.
  result<profile_registration> merge(profile_id a, profile_id b);

  /// The profile of an id, or nothing. Valid until the next registration.
  const registered_profile* find(profile_id id) const noexcept;
  /// All of them, by id. Valid until the next registration.
  const std::vector<registered_profile>& profiles() const noexcept { return profiles_; }

  /// The content that stands for a shape: of equal executor halves the first one registered; or nothing. Valid until
  /// the next registration.
  const resource_profile* find_shape(shape_id id) const noexcept;
  std::size_t shape_count() const noexcept { return first_of_shape_.size(); }

private:
  result<profile_registration> intern(resource_profile content, std::vector<std::string> notes);

  overhead_rule overhead_;
  std::vector<registered_profile> profiles_; ///< index is the id
  std::map<resource_profile, profile_id> by_content_;
  std::map<std::map<std::string, executor_request>, shape_id> by_executor_half_;
  std::vector<profile_id> first_of_shape_; ///< index is the shape's id less one
};

} // namespace troupe
