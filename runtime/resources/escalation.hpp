#pragma once

/// Profiles under which a task is tried again that ran out of memory (spec section 13, item 34).

#include <optional>
#include <vector>

#include <troupe/runtime/resources/resource_profile.hpp>

namespace troupe {

/// The profile with twice the memory, at most `memory_ceiling`: that of its task where tasks take memory, in executors
/// that have room for it; else that of its executor. The rest is as it was, but for a memoryOverhead that follows the
/// memory. Nothing where the ceiling has been reached, or there is none.
/// @param content complete
std::optional<resource_profile> escalated(const resource_profile& content);

/// The memory that `escalated` raises, in bytes.
std::int64_t escalating_memory(const resource_profile& content) noexcept;

} // namespace troupe
