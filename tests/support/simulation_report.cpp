// What is told of a simulation, in its shortest form.

#include <algorithm>
#include <iterator>

#include <troupe/tests/support/cluster_simulator.hpp>

namespace troupe::testing {

simulation_report& simulation_report::operator+=(const simulation_report& other) {
  events += other.events;
  mishaps += other.mishaps;
  jobs += other.jobs;
  mishaps_run += other.mishaps_run;
  jobs_run += other.jobs_run;
  succeeded += other.succeeded;
  failed += other.failed;
  cancelled += other.cancelled;
  executors += other.executors;
  excluded += other.excluded;
  restarted += other.restarted;
  stale += other.stale;
  recalls += other.recalls;
  consumed += other.consumed;
  kept_read += other.kept_read;
  given_up += other.given_up;
  published += other.published;
  rights += other.rights;
  late += other.late;
  return *this;
}

std::string simulation_report::text(std::uint64_t seed) const {
  std::string all = "seed " + std::to_string(seed) + ": " + fault.value_or("no fault") + "\n";
  for (const auto& line : history) all += "  " + line + "\n";
  return all;
}

std::set<std::uint32_t> needed_to_fail(std::uint32_t count, std::uint32_t budget,
                                       const std::function<bool(const std::set<std::uint32_t>&)>& fails) {
  std::set<std::uint32_t> needed;
  for (std::uint32_t i = 0; i < count; ++i) needed.insert(needed.end(), i);
  const auto without = [&](std::size_t from, std::size_t n) {
    auto fewer = needed;
    fewer.erase(std::next(fewer.begin(), static_cast<std::ptrdiff_t>(from)),
                std::next(fewer.begin(), static_cast<std::ptrdiff_t>(std::min(from + n, needed.size()))));
    return fewer;
  };
  // Large pieces first; then smaller ones, and again, since one may have needed another.
  for (auto piece = needed.size(); piece > 0;) {
    bool any = false;
    for (std::size_t from = 0; from < needed.size() && budget > 0; --budget) {
      auto fewer = without(from, piece);
      if (fails(fewer)) {
        needed = std::move(fewer);
        any = true;
      } else {
        from += piece;
      }
    }
    if (!any || piece > 1) piece /= 2;
    if (budget == 0) break;
  }
  return needed;
}

simulation_report shrink(std::uint64_t seed, simulation_options options) {
  constexpr std::uint32_t budget = 300;
  auto shortest = simulate(seed, options);
  const auto shorten = [&](std::optional<std::set<std::uint32_t>> simulation_options::*only, std::uint32_t count) {
    options.*only = needed_to_fail(count, budget, [&](const auto& kept) {
      auto fewer = options;
      fewer.*only = kept;
      auto run = simulate(seed, fewer);
      if (!run.fault) return false;
      shortest = std::move(run);
      return true;
    });
  };
  shorten(&simulation_options::only_jobs, shortest.jobs);
  shorten(&simulation_options::only_mishaps, shortest.mishaps);
  return shortest;
}

} // namespace troupe::testing
