#include <troupe/runtime/scheduling/job_pools.hpp>

namespace troupe {

pool_index job_pools::find(const std::string& wanted) {
  // Where pools mean nothing there is one.
  const auto name = wanted.empty() || !are_fair() ? std::string{"default"} : wanted;
  const auto [it, added] = by_name_.try_emplace(name, static_cast<pool_index>(all_.size()));
  if (added) {
    const auto configured = options_.pools.find(name);
    all_.push_back({name, configured == options_.pools.end() ? pool_options{} : configured->second});
  }
  return it->second;
}

bool job_pools::comes_before(pool_index a, pool_index b, std::optional<pool_index> freed) const noexcept {
  const auto& one = all_[a];
  const auto& other = all_[b];
  const auto slots = [&](const pool& p, pool_index i) { return p.slots - (freed == i && p.slots > 0 ? 1 : 0); };
  const auto mine = slots(one, a);
  const auto theirs = slots(other, b);
  const bool one_lacks = mine < one.options.min_share;
  const bool other_lacks = theirs < other.options.min_share;
  if (one_lacks != other_lacks) return one_lacks;
  // Fractions are compared by their products: slots and settings are far below 2^32.
  const std::uint64_t my_due = one_lacks ? one.options.min_share : one.options.weight;
  const std::uint64_t their_due = other_lacks ? other.options.min_share : other.options.weight;
  const auto left = mine * their_due;
  const auto right = theirs * my_due;
  return left != right ? left < right : one.name < other.name;
}

} // namespace troupe
