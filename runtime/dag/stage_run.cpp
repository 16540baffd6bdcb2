#include <troupe/runtime/dag/stage_run.hpp>

#include <algorithm>
#include <set>

namespace troupe {

namespace {

std::uint32_t most_arguments_in_batch(const stage_spec& what) {
  constexpr std::uint64_t batch_bytes = 1 << 20;
  std::uint64_t largest = 1;
  if (what.arguments)
    for (std::uint64_t begin = 0; const std::uint64_t end : what.arguments->ends) {
      largest = std::max(largest, end - begin);
      begin = end;
    }
  return static_cast<std::uint32_t>(std::max<std::uint64_t>(1, batch_bytes / largest));
}

} // namespace

stage_run::stage_run(stage_id stage, job_id of_job, std::uint32_t position, const stage_spec& what,
                     std::vector<demand_index> of_demands)
  : id(stage), job(of_job), index(position), spec(&what), tasks(what.tasks), order(position), line(position),
    placed_(what.tasks) {
  if (what.is_shuffle_map()) bucket_sizes_of_map.resize(what.tasks);
  lanes[0].demands = std::move(of_demands);
  program = std::make_shared<const std::variant<native_program, command_program>>(what.program);
  most_in_batch = most_arguments_in_batch(what);
  if (what.locations && !what.barrier) {
    std::vector<std::string_view> locations;
    for (std::size_t i = 0; i < what.locations->size(); ++i) locations.push_back((*what.locations)[i]);
    tasks.locate(std::make_unique<located_tasks>(locations, what.tasks));
  }
}

std::vector<resolved_profile> escalations_of(const resolved_profile& profile) {
  auto most = profile.escalations.size();
  for (const auto& alternative : profile.alternatives) most = std::max(most, alternative.escalations.size());
  const auto at = [](const resolved_profile& choice, std::size_t step) {
    auto now = choice.escalations.empty() ? choice : choice.escalations[std::min(step, choice.escalations.size() - 1)];
    now.alternatives.clear();
    now.escalations.clear();
    return now;
  };
  std::vector<resolved_profile> steps;
  for (std::size_t i = 0; i < most; ++i) {
    steps.push_back(at(profile, i));
    for (const auto& alternative : profile.alternatives) steps[i].alternatives.push_back(at(alternative, i));
  }
  return steps;
}

std::uint32_t task_lane::pending() const noexcept {
  return stage->tasks.pending(number) + static_cast<std::uint32_t>(stage->tasks.wanted_copies(number).size());
}

std::uint32_t task_lane::preference_of(demand_index d) const noexcept {
  return static_cast<std::uint32_t>(std::find(demands.begin(), demands.end(), d) - demands.begin());
}

void stage_run::measure(const outcome_batch& batch) {
  run_nanoseconds += batch.run_nanoseconds;
  cpu_nanoseconds += batch.cpu_nanoseconds;
  peak_memory = std::max(peak_memory, batch.peak_memory);
  output_bytes += batch.output_bytes;
  if (left.empty()) left = batch.left;
  const auto ran = batch.count - static_cast<std::uint32_t>(
                                     std::count(batch.statuses.begin(), batch.statuses.end(), task_status::given_back));
  if (ran == 0) return;
  if (durations) {
    const auto well = batch.statuses.empty()
                          ? ran
                          : static_cast<std::uint32_t>(
                                std::count(batch.statuses.begin(), batch.statuses.end(), task_status::succeeded));
    durations->add(duration{static_cast<std::int64_t>(std::min<std::uint64_t>(batch.run_nanoseconds, INT64_MAX)) / ran},
                   well);
  }
  // A large batch says more than a single task. What an executor claims is capped so that no sum can overflow.
  constexpr std::uint64_t longest = 1'000'000'000'000'000; // eleven days
  constexpr std::uint64_t memory = 3;
  const auto mean = std::clamp<std::uint64_t>(batch.run_nanoseconds / ran, 1, longest);
  const auto weight = std::min<std::uint64_t>(ran, 256);
  mean_nanoseconds = mean_nanoseconds == 0
                         ? mean
                         : std::max<std::uint64_t>(1, (memory * mean_nanoseconds + weight * mean) / (memory + weight));
}

void stage_run::placed(partition_index partition, lease_record& lease, const executor_info& info) {
  if (lease.placed_in != id) {
    lease.placed_in = id;
    lease.place = place_of_lease_.find(lease.id);
    if (lease.place == place_of_lease_.none) {
      lease.place = static_cast<std::uint32_t>(places_.size());
      places_.push_back({info.executor, info.host, lease.holding});
      place_of_lease_.insert(lease.id, lease.place);
    }
  }
  placed_[partition] = lease.place + 1;
}

stage_placements stage_run::placements() const {
  stage_placements out{id, places_};
  for (partition_index p = 0; p < placed_.size(); ++p)
    if (placed_[p] != 0 && tasks.status_of(p) == task_set::status::done)
      out.add(p, tasks.attempt_of(p), placed_[p] - 1);
  return out;
}

void stage_placements::add(partition_index partition, attempt_number attempt, std::uint32_t position) {
  if (!runs_.empty()) {
    auto& last = runs_.back();
    if (last.first + last.count == partition && last.attempt == attempt && last.position == position) {
      ++last.count;
      return;
    }
  }
  runs_.push_back({partition, 1, attempt, position});
}

void stage_placements::append_to(std::vector<task_placement>& out) const {
  for (const auto& r : runs_) {
    const auto& where = places_[r.position];
    out.push_back({stage_, r.first, r.count, r.attempt, where.executor, where.host, where.holding});
  }
}

std::uint32_t stage_run::executors_used() const {
  auto used = failed_on_;
  for (const auto& p : places_) used.insert(p.executor);
  return static_cast<std::uint32_t>(used.size());
}

void stage_run::keep(partition_index partition, const std::shared_ptr<const outcome_batch>& batch,
                     std::uint32_t entry) {
  if (values_.empty()) values_.resize(tasks.size());
  if (batches_.empty() || batches_.back() != batch) batches_.push_back(batch);
  value_bytes_ += batch->results[entry].size() - 1; // without the tag
  values_[partition] = {static_cast<std::uint32_t>(batches_.size()), entry};
}

void stage_run::drop_values() {
  batches_.clear();
  values_.clear();
  elsewhere_.clear();
  value_bytes_ = 0;
}

std::shared_ptr<const job_results> stage_run::take_results() {
  auto out = std::make_shared<job_results>();
  out->values.ends.reserve(tasks.size());
  std::size_t total = 0;
  for (const auto& v : values_)
    if (v.batch != 0) total += batches_[v.batch - 1]->results[v.entry].size();
  out->values.data.reserve(total);
  for (partition_index p = 0; p < tasks.size(); ++p) {
    const auto ref = values_.empty() ? value_ref{} : values_[p];
    if (elsewhere_.contains(p) || ref.batch == 0)
      out->values.push_back({});
    else
      out->values.push_back(batches_[ref.batch - 1]->results[ref.entry].substr(1)); // without the tag
  }
  for (const auto& [p, location] : elsewhere_) out->elsewhere.push_back(location);
  batches_.clear();
  values_.clear();
  return out;
}

} // namespace troupe
