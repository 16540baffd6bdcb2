#include <troupe/runtime/dag/accumulator_book.hpp>

#include <utility>

namespace troupe {

bool accumulator_book::accept(std::uint32_t stage, partition_index partition, std::span<const counted_amount> counted,
                              const std::vector<std::string>& names) {
  if (counted.empty() && of_task_.empty()) return true; // as in nearly every job
  const auto task = std::uint64_t{stage} << 32 | partition;
  if (const auto before = of_task_.extract(task))
    for (const auto& [total, amount] : before.mapped()) *total = subtract_wrapping(*total, amount);
  if (counted.empty()) return true;
  std::vector<part> parts;
  parts.reserve(counted.size());
  bool all = true;
  for (const auto& one : counted) {
    const auto& name = names[one.accumulator];
    auto total = totals_.find(name);
    if (total == totals_.end()) {
      all = totals_.size() < max_accumulators;
      if (!all) break;
      total = totals_.emplace(name, 0).first;
    }
    total->second = add_wrapping(total->second, one.amount);
    parts.push_back({&total->second, one.amount});
  }
  of_task_.emplace(task, std::move(parts));
  return all;
}

std::vector<accumulated> accumulator_book::totals() const {
  std::vector<accumulated> all;
  all.reserve(totals_.size());
  for (const auto& [name, amount] : totals_) all.push_back({name, amount});
  return all;
}

} // namespace troupe
