#pragma once

/// How rows write profiles: `cores 4, memory 2g, gpu 2 ./find nvidia; cpus 1, gpu 0.5`. The executor half comes first
/// and may be empty, as may the other; script and vendor may follow an amount.

#include <string>
#include <string_view>
#include <vector>

#include <troupe/runtime/resources/ledger.hpp>
#include <troupe/runtime/resources/profile_registry.hpp>
#include <troupe/runtime/resources/profile_rules.hpp>
#include <troupe/runtime/resources/resource_profile.hpp>

namespace troupe::conformance {

/// The parts of a text between separators, without the blanks around them; none of an empty text.
std::vector<std::string> parts_of(std::string_view text, char separator);

/// The builder's answer.
result<resource_profile> built(std::string_view text);
/// The same; throws std::invalid_argument.
resource_profile profile_of(std::string_view text);
/// Cores as given, 64 GiB of memory, and custom resources with addresses `0`, `1`, …: of the executor half alone.
executor_capacity capacity_of(std::string_view text);

/// A registry whose default profile is that of `text`, completed by 1 GiB, 1 cpu and 1 core; no core where `exact` has
/// none by itself: on a local cluster without configured cores (spec DF-2).
profile_registry registry_with(std::string_view text, const profile_rules& rules);

/// The merger of registered profiles, as a stage gets it in which they meet in this order.
result<profile_registration> merge_all(profile_registry& registry, const std::vector<profile_id>& profiles);

/// `gpu 0:0.5`: what a task would hold of custom resources, `nothing` where it holds none of them, `does not fit`.
std::string to_text(const std::optional<allotment>& holding);

} // namespace troupe::conformance
