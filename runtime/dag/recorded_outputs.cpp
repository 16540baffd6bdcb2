// What a task that is done has made, and what of it the scheduler remembers.

#include <algorithm>
#include <utility>

#include <troupe/runtime/dag/dag_scheduler.hpp>
#include <troupe/runtime/scheduling/bucket_sizes.hpp>
#include <troupe/runtime/scheduling/result_entry.hpp>

namespace troupe {

/// What the task has made, where the batch says it well.
result<result_entry> dag_scheduler::entry_of(const outcome_batch& batch, std::uint32_t i) {
  const auto& column = batch.results;
  const auto begin = i == 0 || i > column.size() ? 0 : column.ends[i - 1];
  const bool present = i < column.size() && begin <= column.ends[i] && column.ends[i] <= column.data.size();
  return decode_result_entry(present ? column[i] : std::string_view{});
}

/// Remembers what a task that is done has made, and where it lies.
/// @param e that has made it; no_executor where it is gone, and nothing of it stayed there
void dag_scheduler::record_output(job_run& job, stage_run& stage, executor_index e,
                                  const std::shared_ptr<const outcome_batch>& batch, std::uint32_t i,
                                  const result_entry& entry, time_point now, effects::list& out) {
  const auto p = batch->partition(i);
  if (stage.hands_on) { // of an earlier attempt
    stage.handed.erase(p);
    stage.in_place.erase(p);
  }
  if (stage.keeps) {
    stage.from_cache[p] = false; // of what was there before it was lost
    stage.stays[p] = entry.kind == result_kind::kept_output && on_kept(stage, p, e);
  }
  if (entry.is_map_output()) {
    pool_[e].kept[stage.id].add(p);
    stage.bucket_sizes_of_map[p] = entry.buckets;
  } else if (entry.kind == result_kind::block && stage.hands_on) {
    pool_[e].kept[stage.id].add(p);
    stage.handed[p] = entry.bytes;
  } else if (entry.kind == result_kind::files) {
    stage.in_place[p] = entry.bytes;
  } else if (!stage.keeps_values) {
    // Nobody asks for it: what the executor still stores of it is worth nothing and goes with the stage.
  } else if (entry.kind == result_kind::block) {
    pool_[e].kept[stage.id].add(p);
    result_location where;
    where.partition = p;
    where.attempt = batch->attempt(i);
    where.stage = stage.id;
    where.endpoint = endpoint_of(pool_[e].info);
    where.bytes = entry.bytes;
    stage.keep(std::move(where));
  } else {
    stage.keep(p, batch, i);
    // Beyond 4 GiB the packed column could not name its ends.
    const auto limit = std::min<std::uint64_t>(options_.max_result_bytes, 0xffff'ffff);
    if (stage.value_bytes() > limit)
      fail(job,
           make_error(ec::overloaded, "stage " + std::to_string(stage.index) + " (" + stage.spec->name +
                                          "): its results are larger than " + std::to_string(limit) +
                                          " bytes in total; save them from the tasks, reduce them first, or raise "
                                          "troupe.driver.max-result-size"),
           now, out);
  }
}

} // namespace troupe
