#pragma once

/// Short ways to write profiles, allotments and capacities in tests.

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <troupe/runtime/resources/ledger.hpp>
#include <troupe/runtime/resources/profile_registry.hpp>

namespace troupe {

inline constexpr std::int64_t mib = std::int64_t{1} << 20;
inline constexpr std::int64_t gib = std::int64_t{1} << 30;
inline constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

inline share parsed(std::string_view text) { return parse_share(text).value(); }

/// A profile straight from amounts, unchecked. Task amounts are texts.
inline resource_profile profile_of(const std::vector<std::pair<std::string, std::int64_t>>& executor,
                                   const std::vector<std::pair<std::string, std::string>>& task) {
  resource_profile p;
  for (const auto& [name, amount] : executor) p.executor[name].amount = amount;
  for (const auto& [name, amount] : task) p.task[name] = parsed(amount);
  return p;
}

/// That profile, carried by a dataset of this name.
inline profile_use use(profile_id id, std::string dataset) {
  profile_use one;
  one.profile.profile = id;
  one.dataset = std::move(dataset);
  return one;
}

inline executor_capacity capacity_with(std::int64_t cores, std::map<std::string, resource_pool> custom = {}) {
  return {cores, std::int64_t{1} << 30, 0, 0, 0, std::move(custom)};
}

/// A pool with addresses "0", "1", ….
inline resource_pool numbered(std::int64_t count) {
  resource_pool pool{count, {}};
  for (std::int64_t i = 0; i < count; ++i) pool.addresses.push_back(std::to_string(i));
  return pool;
}

} // namespace troupe
