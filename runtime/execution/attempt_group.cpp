#include <troupe/runtime/execution/attempt_group.hpp>

namespace troupe {

namespace {

/// For processes that have been killed and hang in the kernel. Their group goes with the executor's.
constexpr duration attempt_patience = std::chrono::seconds{1};

} // namespace

attempt_group::attempt_group(const command_limits& limits, const std::string& name, std::uint64_t memory_limit)
  : executor_(limits.group) {
  if (executor_.empty()) return;
  const bool memory = memory_limit > 0 && executor_.has(cgroup_controller::memory);
  const bool processes = limits.processes > 0 && executor_.has(cgroup_controller::pids);
  if (memory || processes) {
    group_ = executor_.child("attempt-" + name);
    own_ = group_.make() && group_.limit({memory ? memory_limit : 0, 0, limits.processes});
    limits_memory_ = own_ && memory;
    // A machine that lets nobody make more groups: the executor's limits still hold.
    if (!own_) group_.remove(false, {});
  }
  if (!own_) group_ = {};
  if (!own_ && limits.shared) {
    group_ = executor_.child(commands_group);
    kills_before_ = group_.memory().kills;
  }
}

attempt_group::~attempt_group() {
  if (own_) group_.remove(true, attempt_patience);
}

attempt_group::usage attempt_group::used() const {
  usage out;
  if (group_.empty()) return out;
  const auto memory = group_.memory();
  out.killed = memory.kills > kills_before_;
  if (own_) out.peak_memory = memory.peak;
  out.at_own_limit = limits_memory_ && memory.at_limit;
  const auto limited = out.at_own_limit ? memory : executor_.memory();
  out.at_limit = limited.at_limit;
  out.limit = limited.limit;
  return out;
}

} // namespace troupe
