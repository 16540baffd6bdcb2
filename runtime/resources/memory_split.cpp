#include <troupe/runtime/resources/memory_split.hpp>

#include <algorithm>

namespace troupe {

namespace {

constexpr std::uint64_t least_for_task = 1 << 20;

std::uint64_t part_of(std::uint64_t bytes, share part) {
  return static_cast<std::uint64_t>(int128{bytes} * part.units / share::units_per_whole);
}

/// What the executor half names; a gibibyte where it names nothing, as for tasks that run on any executor.
std::uint64_t memory_of(const resource_profile& profile) {
  std::uint64_t bytes = 0;
  for (const auto name : {resource_names::memory, resource_names::off_heap})
    if (const auto it = profile.executor.find(std::string{name}); it != profile.executor.end())
      bytes += static_cast<std::uint64_t>(std::max<std::int64_t>(0, it->second.amount));
  return bytes == 0 ? std::uint64_t{1} << 30 : bytes;
}

} // namespace

std::uint64_t memory_split::for_blocks(const resource_profile& profile) const {
  return part_of(part_of(memory_of(profile), usable), blocks);
}

std::uint64_t memory_split::for_task(const resource_profile& executor, std::int64_t cores, share cpus) const {
  const auto all = part_of(memory_of(executor), usable);
  const auto rest = all - part_of(all, blocks);
  const auto units = std::clamp<std::int64_t>(cpus.units, 0, std::max<std::int64_t>(1, cores) * share::units_per_whole);
  const auto part = int128{rest} * units / std::max<std::int64_t>(1, cores) / share::units_per_whole;
  return std::max(least_for_task, static_cast<std::uint64_t>(part));
}

} // namespace troupe
