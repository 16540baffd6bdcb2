#include <troupe/runtime/resources/escalation.hpp>

#include <algorithm>

namespace troupe {

std::int64_t escalating_memory(const resource_profile& content) noexcept {
  const auto of_task = content.task_amount(resource_names::memory);
  return of_task.is_zero() ? content.executor_amount(resource_names::memory) : of_task.ceil();
}

std::optional<resource_profile> escalated(const resource_profile& content) {
  const auto now = escalating_memory(content);
  const auto ceiling = content.memory_ceiling;
  if (now <= 0 || now >= ceiling) return std::nullopt;
  const auto next = now > ceiling / 2 ? ceiling : 2 * now;
  auto more = content;
  const std::string memory{resource_names::memory};
  if (const auto part = more.task.find(memory); part != more.task.end()) part->second = share::whole(next);
  auto& whole = more.executor[memory].amount;
  whole = std::max(whole, next);
  return more;
}

} // namespace troupe
