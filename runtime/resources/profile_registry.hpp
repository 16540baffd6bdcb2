#pragma once

/// The core of the resource profile manager: profiles by id, executor shapes by id. Under `compatible` equal contents
/// are one profile and equal executor halves one shape (spec section 13, items 2 and 3); under `exact` every build is a
/// profile of its own, and every full profile a shape (spec ID-1, DM-16, MP-8). A profile that is refused leaves no
/// trace (MP-4). Not thread-safe; one owner. Nothing is removed; the number of profiles is bounded.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/resources/capacity.hpp>
#include <troupe/runtime/resources/profile_notes.hpp>
#include <troupe/runtime/resources/profile_rules.hpp>
#include <troupe/runtime/resources/resolved_profile.hpp>
#include <troupe/runtime/resources/resource_profile.hpp>
#include <troupe/runtime/result.hpp>

namespace troupe {

/// Everything that is known about one registered profile.
struct registered_profile {
  profile_id profile;
  shape_id shape;
  resource_profile written;      ///< before it was completed; of a merger, what was merged
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
  bool any_executor = false;      ///< `exact`: it runs wherever its tasks fit, whatever the executor was started for
  bool is_new = false;            ///< false: it was there before
  std::vector<std::string> notes; ///< what its author should hear: probable slips of names, idle amounts
  std::vector<profile_registration> alternatives{}; ///< each a profile of its own
  std::vector<profile_registration> escalations{};  ///< each a profile of its own, with more memory than the one before

  bool operator==(const profile_registration&) const = default;
};

/// The same as everybody else sees it.
resolved_profile resolved(const profile_registration& registered);

/// One of the profiles that meet in a stage.
struct profile_use {
  profile_registration profile;
  std::string dataset; ///< that carries it, for the message

  bool operator==(const profile_use&) const = default;
};

/// Profiles and shapes of one session.
class profile_registry {
public:
  /// Registrations beyond this many distinct profiles are refused.
  static constexpr std::size_t max_profiles = 10'000;

  /// Starts with `defaults` as profile 0, of shape 1. `overhead` says what memoryOverhead profiles without one get.
  /// @pre `defaults` passes `validate` and has cores (not needed under `exact`), memory and cpus; throws
  /// std::invalid_argument otherwise.
  explicit profile_registry(resource_profile defaults, profile_rules rules = {}, overhead_rule overhead = {});

  /// The profile for `profile`, completed from the default one: under `compatible` that of equal content, under `exact`
  /// that of the same build of the same submitter, or of equal content from the session itself (submitter "", build 0),
  /// else a new one. An empty profile without a build is the default one.
  /// Refused when the profile, as written or completed, breaks a rule of `validate` or of the policy
  /// (ec::invalid_profile), or when there are too many (ec::overloaded). Alternatives are registered each by itself,
  /// and so is each step up to its `memory_ceiling`.
  result<profile_registration> register_profile(const resource_profile& profile, const std::string& submitter = {});

  /// The one profile of a stage in which several meet: they are equal, or it is an error that names the first two with
  /// their datasets, or they are merged, the larger amount of each clause. Equal means content under `compatible`,
  /// identity under `exact` (MG-2). Merged in the order of ids under `compatible`, whoever asks; in the order given,
  /// and as they were written, under `exact`, where an equivalent one that is registered is taken (MG-6).
  /// Profiles with alternatives are not merged. ec::not_found for an unknown id. @pre not empty
  result<profile_registration> profile_of_stage(const std::vector<profile_use>& uses, profile_change rule);

  const profile_rules& rules() const noexcept { return rules_; }
  /// The profile of an id, or nothing. Valid until the next registration.
  const registered_profile* find(profile_id id) const noexcept;
  /// All of them, by id. Valid until the next registration.
  const std::vector<registered_profile>& profiles() const noexcept { return profiles_; }

  /// The content that stands for a shape: of equal executor halves the first one registered; or nothing. Valid until
  /// the next registration.
  const resource_profile* find_shape(shape_id id) const noexcept;
  std::size_t shape_count() const noexcept { return first_of_shape_.size(); }

private:
  /// Who made a profile: nobody knows two of them apart.
  using origin = std::tuple<std::string, std::uint64_t, resource_profile>; ///< submitter, build, as written

  result<profile_registration> register_steps(const resource_profile& profile, const std::string& submitter);
  profile_registration with_steps(profile_registration first, const resource_profile& written,
                                  const std::string& submitter);
  result<profile_registration> register_one(const resource_profile& profile, const std::string& submitter);
  result<resource_profile> check(const resource_profile& written) const;
  result<profile_registration> merge(const std::vector<profile_use>& uses);
  error conflict(const profile_use& a, const profile_use& b, bool choices) const;
  result<profile_id> add(const resource_profile& written, resource_profile content);
  shape_id shape_for(const resource_profile& written, const resource_profile& content);
  profile_registration answer(profile_id id, bool is_new, std::vector<std::string> notes) const;
  bool runs_anywhere(const registered_profile& entry) const;

  profile_rules rules_;
  overhead_rule overhead_;
  std::vector<registered_profile> profiles_;          ///< index is the id
  std::map<resource_profile, profile_id> by_content_; ///< under `exact`: as written, the first of each
  std::map<origin, profile_id> by_origin_;            ///< `exact` only
  std::map<std::map<std::string, executor_request>, shape_id> by_executor_half_; ///< `compatible` only
  std::vector<profile_id> first_of_shape_;                                       ///< index is the shape's id less one
};

} // namespace troupe
