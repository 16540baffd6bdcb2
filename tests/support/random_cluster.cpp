#include <troupe/tests/support/random_cluster.hpp>

#include <algorithm>
#include <cstdint>
#include <ranges>
#include <string>

namespace troupe::testing {

using namespace std::chrono_literals;

dag_scheduler::options random_options(dice& d, profile_matching matching) {
  dag_scheduler::options o;
  o.matching = matching;
  if (matching == profile_matching::exact) o.resubmit_delay = 200ms;
  if (d.once_in(3)) o.max_batch = 4;
  if (d.once_in(4)) o.retained_jobs = 2;
  o.placement = static_cast<placement_policy>(d.between(0, 2));
  o.scarce_resource_wait = d.once_in(3) ? duration::zero() : d.once_in(3) ? never : duration{3s};
  if (d.once_in(3))
    o.sharing = {sharing_mode::fair, {{"a", {sharing_mode::fair, 3, 0}}, {"b", {sharing_mode::fifo, 1, 2}}}};
  if (d.once_in(2))
    o.speculation = {true, share{share::units_per_whole / 4}, share::whole(1), std::chrono::milliseconds{1}};
  o.max_stage_attempts = 8;
  if (d.once_in(2)) o.max_unconsumed = d.between(1, 100);
  o.infeasible_timeout = 60s;
  o.exclusion.enabled = d.once_in(2);
  o.exclusion.max_failed_tasks_per_executor = static_cast<std::uint32_t>(d.between(1, 2));
  o.exclusion.max_failed_executors_per_node = static_cast<std::uint32_t>(d.between(1, 3));
  o.exclusion.timeout = d.once_in(2) ? 3s : 1h;
  o.unschedulable_timeout = 20s;
  return o;
}

std::vector<carving_host> random_hosts(dice& d) {
  std::vector<carving_host> hosts;
  for (std::uint64_t i = 0, n = d.between(1, 3); i < n; ++i) {
    carving_host h;
    h.name = "host" + std::to_string(i);
    h.cores = static_cast<std::int64_t>(d.between(2, 4));
    h.memory = std::int64_t{64} << 30;
    if (i == 0) h.custom["gpu"] = {1, {"0"}};
    hosts.push_back(std::move(h));
  }
  return hosts;
}

allocation_policy::options random_policy(dice& d) {
  allocation_policy::options o;
  o.idle_timeout = 5s;
  o.dynamic = !d.once_in(4);
  if (d.once_in(2)) o.fixed.push_back({{{1}, default_test_profile()}, 1});
  return o;
}

job_builder random_job(dice& d, profile_matching matching) {
  job_builder job{"random"};
  auto half_gpu = make_profile({{"gpu", 1}}, {{"gpu", "0.5"}});
  if (d.once_in(4)) half_gpu.max_tasks_per_executor = 1;
  auto wide = make_profile({{"cores", 2}}, {{"cpus", "2"}});
  wide.exclusive = d.once_in(4);
  auto light = make_profile({}, {{"cpus", "0.5"}});
  if (d.once_in(4)) light.max_tasks_per_executor = d.between(1, 2);
  light.exclusive = d.once_in(6);
  if (d.once_in(3)) wide.memory_ceiling = std::int64_t{4} << 30;
  constexpr const char* pools[] = {"", "a", "b"};
  job.in_pool(pools[d.between(0, 2)]);
  job.profile(half_gpu).profile(wide).profile(light);
  const auto profiles = matching == profile_matching::exact ? 2u : 3u; // of equal executor halves one is asked for
  job.max_failures(static_cast<std::uint32_t>(d.between(2, 5)));
  const auto stages = static_cast<std::uint32_t>(d.between(1, 4));
  std::vector<std::uint32_t> tasks;
  std::vector<std::uint32_t> buckets;
  for (std::uint32_t s = 0; s < stages; ++s) {
    tasks.push_back(static_cast<std::uint32_t>(d.once_in(12) ? d.between(100, 600) : d.between(1, 12)));
    buckets.push_back(0);
  }
  // Task by task, by records or by files.
  std::vector<std::optional<std::uint32_t>> flows_from(stages);
  std::vector<bool> hands_on_files(stages);
  for (std::uint32_t s = 1; s < stages; ++s)
    if (d.once_in(2)) {
      const auto parent = static_cast<std::uint32_t>(d.between(0, s - 1));
      flows_from[s] = parent;
      tasks[s] = tasks[parent];
      if (buckets[parent] == 1 || (!hands_on_files[parent] && d.below(3) > 0))
        buckets[parent] = 1;
      else
        hands_on_files[parent] = true;
    }
  // A shuffle makes as many buckets as its reader has tasks.
  std::vector<std::vector<stage_dependency>> edges(stages);
  for (std::uint32_t s = 1; s < stages; ++s)
    for (std::uint32_t parent = 0; parent < s; ++parent) {
      if (flows_from[s] == parent) {
        edges[s].push_back({parent, dependency_kind::one_to_one});
        continue;
      }
      if (d.once_in(2)) continue;
      const bool shuffle =
          d.below(3) > 0 && !hands_on_files[parent] && (buckets[parent] == 0 || buckets[parent] == tasks[s]);
      if (shuffle) buckets[parent] = tasks[s];
      edges[s].push_back({parent, shuffle ? dependency_kind::shuffle : dependency_kind::all});
    }
  for (std::uint32_t s = 0; s < stages; ++s) {
    job.stage("s" + std::to_string(s), tasks[s]).buckets(buckets[s]);
    job.with(static_cast<std::uint32_t>(d.once_in(2) ? 0 : d.between(0, profiles)));
    if (d.once_in(6)) job.indeterminate();
    const bool reads_records = std::ranges::any_of(edges[s], [&](const stage_dependency& edge) {
      return edge.kind == dependency_kind::shuffle ||
             (edge.kind == dependency_kind::one_to_one && buckets[edge.stage] > 0);
    });
    if (buckets[s] == 0 && !reads_records && d.once_in(2)) job.outputs();
    // Stages of as many tasks keep the same. What is kept is read task by task.
    const auto reads_otherwise = [&](std::uint32_t child) {
      return std::ranges::any_of(edges[child], [&](const stage_dependency& edge) {
        return edge.stage == s && edge.kind == dependency_kind::shuffle;
      });
    };
    const auto later = std::views::iota(s + 1, stages);
    if (buckets[s] == 1 && std::ranges::none_of(later, reads_otherwise) && d.once_in(2))
      job.keeps({program_of_jobs, tasks[s]});
    if (tasks[s] <= 4 && d.once_in(2)) job.barrier(d.once_in(4) ? duration{3s} : never);
    if (d.once_in(4)) job.prefers({d.once_in(2) ? "host0" : "host1/" + std::to_string(d.between(1, 9))});
    for (const auto& edge : edges[s]) job.after(edge.stage, edge.kind);
  }
  return job;
}

} // namespace troupe::testing
