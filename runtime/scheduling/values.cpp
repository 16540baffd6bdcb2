// Comparison and names of the values that cross between the dag scheduler, executors and clients.

#include <troupe/runtime/scheduling/hindrance.hpp>
#include <troupe/runtime/scheduling/job_status.hpp>
#include <troupe/runtime/scheduling/orders.hpp>
#include <troupe/runtime/scheduling/reports.hpp>

#include <algorithm>

namespace troupe {

namespace {

/// Equal content behind shared pointers; null equals null alone.
template <class T>
bool same_content(const std::shared_ptr<const T>& a, const std::shared_ptr<const T>& b) {
  return a == b || (a && b && *a == *b);
}

} // namespace

bool task_batch::operator==(const task_batch& other) const {
  if (stage != other.stage || stage_attempt != other.stage_attempt || lease != other.lease || count != other.count)
    return false;
  for (std::uint32_t i = 0; i < count; ++i)
    if (partition(i) != other.partition(i) || attempt(i) != other.attempt(i) || argument(i) != other.argument(i))
      return false;
  return true;
}

bool executor_report::operator==(const executor_report& other) const {
  return executor == other.executor && epoch == other.epoch && orders_seen == other.orders_seen &&
         refusals == other.refusals && overdue == other.overdue && arrivals == other.arrivals &&
         taken_over == other.taken_over && evicted == other.evicted &&
         std::equal(outcomes.begin(), outcomes.end(), other.outcomes.begin(), other.outcomes.end(),
                    same_content<outcome_batch>);
}

bool job_end::operator==(const job_end& other) const {
  return job == other.job && failure == other.failure && progress == other.progress &&
         same_content(results, other.results) && result_bytes == other.result_bytes;
}

bool drop_what_cannot_travel(job_end& end, std::size_t most) {
  if (!end.results) return false;
  const auto& r = *end.results;
  // On the wire a location takes at most so many bytes; a message holds a million of them at most.
  constexpr std::size_t location = 512;
  const auto bytes =
      r.values.data.size() + r.values.ends.size() * sizeof r.values.ends[0] + r.elsewhere.size() * location;
  if (bytes <= most) return false;
  end.failure = make_error(
      ec::overloaded, "the results of the job are " + std::to_string(bytes) + " bytes, and " + std::to_string(most) +
                          " bytes reach a client in another process: save them from the tasks, reduce them first, or "
                          "lower troupe.task.max-inline-result, so that each large one is fetched by itself");
  end.progress.state = job_state::failed;
  end.results = nullptr;
  return true;
}

std::string_view to_string(task_status status) noexcept {
  switch (status) {
  case task_status::succeeded: return "succeeded";
  case task_status::failed: return "failed";
  case task_status::fetch_failed: return "fetch-failed";
  case task_status::killed: return "killed";
  case task_status::lost: return "lost";
  case task_status::given_back: return "given-back";
  }
  return "unknown";
}

std::string_view to_string(failure_cause cause) noexcept {
  switch (cause) {
  case failure_cause::error: return "error";
  case failure_cause::exit_code: return "exit-code";
  case failure_cause::signal: return "signal";
  case failure_cause::memory_limit: return "memory-limit";
  case failure_cause::lost: return "lost";
  case failure_cause::time_limit: return "time-limit";
  case failure_cause::suspected: return "suspected";
  case failure_cause::certain: return "certain";
  }
  return "unknown";
}

std::string_view to_string(job_state state) noexcept {
  switch (state) {
  case job_state::accepted: return "accepted";
  case job_state::running: return "running";
  case job_state::succeeded: return "succeeded";
  case job_state::failed: return "failed";
  case job_state::cancelled: return "cancelled";
  }
  return "unknown";
}

std::string_view to_string(stage_state state) noexcept {
  switch (state) {
  case stage_state::waiting: return "waiting";
  case stage_state::running: return "running";
  case stage_state::complete: return "complete";
  case stage_state::failed: return "failed";
  }
  return "unknown";
}

std::string_view to_string(hindrance h) noexcept {
  switch (h) {
  case hindrance::none: return "free";
  case hindrance::draining: return "leaving";
  case hindrance::barred: return "of another build of the program, as it has said";
  case hindrance::other_program: return "running another program";
  case hindrance::other_profile: return "started for another profile";
  case hindrance::lacks: return "too small";
  case hindrance::excluded: return "excluded after failures";
  case hindrance::refused: return "declining it for a moment";
  case hindrance::reserved: return "kept free for others";
  case hindrance::kept: return "kept for stages that ask for what it has";
  case hindrance::busy: return "busy";
  }
  return "unknown";
}

block_endpoint endpoint_of(const executor_info& info) {
  auto endpoint = info.blocks;
  endpoint.executor = info.executor;
  endpoint.epoch = info.epoch;
  return endpoint;
}

} // namespace troupe
