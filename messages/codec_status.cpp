// How jobs and the cluster stand.

#include <troupe/messages/wire_parts.hpp>

namespace troupe::wire {

static void write(const stage_progress& in, pb::StageProgress& out, const place& at) {
  out.set_stage(in.stage.value);
  out.set_name(at.name("name", in.name));
  out.set_profile(at.text("profile", in.profile));
  out.set_profile_number(in.profile_number.value);
  out.set_state(static_cast<pb::StageState>(in.state));
  out.set_attempt(in.attempt);
  out.set_tasks(in.tasks);
  out.set_running(in.running);
  out.set_done(in.done);
  out.set_failures(in.failures);
  out.set_executors(in.executors);
  out.set_run_nanoseconds(in.run_nanoseconds);
  out.set_cpu_nanoseconds(in.cpu_nanoseconds);
  out.set_peak_memory(in.peak_memory);
  out.set_output_bytes(in.output_bytes);
  out.set_wall_nanoseconds(in.wall_nanoseconds);
  if (!in.left.empty()) out.set_left(at.text("left", in.left));
}

static void read(const pb::StageProgress& in, stage_progress& out, const place& at) {
  out.stage.value = in.stage();
  out.name = at.name("name", in.name());
  out.profile = at.text("profile", in.profile());
  out.profile_number.value = in.profile_number();
  out.state = at.enumerator("state", in.state(), stage_state::failed);
  out.attempt = in.attempt();
  out.tasks = in.tasks();
  out.running = in.running();
  out.done = in.done();
  out.failures = in.failures();
  out.executors = in.executors();
  out.run_nanoseconds = in.run_nanoseconds();
  out.cpu_nanoseconds = in.cpu_nanoseconds();
  out.peak_memory = in.peak_memory();
  out.output_bytes = in.output_bytes();
  out.wall_nanoseconds = in.wall_nanoseconds();
  out.left = at.text("left", in.left());
}

static void write(const accumulated& in, pb::Accumulated& out, const place& at) {
  out.set_accumulator(at.name("accumulator", in.accumulator));
  out.set_amount(in.amount);
}

static void read(const pb::Accumulated& in, accumulated& out, const place& at) {
  out.accumulator = at.name("accumulator", in.accumulator());
  out.amount = in.amount();
}

static void write(const job_progress& in, pb::JobProgress& out, const place& at) {
  out.set_job(in.job.value);
  out.set_name(at.name("name", in.name));
  out.set_state(static_cast<pb::JobState>(in.state));
  write_list(in.stages, *out.mutable_stages(), at, "stages");
  out.set_wall_nanoseconds(in.wall_nanoseconds);
  out.set_waiting_for(at.text("waiting_for", in.waiting_for));
  out.set_group(at.name("group", in.group));
  write_list(in.counted, *out.mutable_counted(), at, "counted");
}

static void read(const pb::JobProgress& in, job_progress& out, const place& at) {
  out.job.value = in.job();
  out.name = at.name("name", in.name());
  out.state = at.enumerator("state", in.state(), job_state::cancelled);
  read_list(in.stages(), out.stages, at, "stages");
  out.wall_nanoseconds = in.wall_nanoseconds();
  out.waiting_for = at.text("waiting_for", in.waiting_for());
  out.group = at.name("group", in.group());
  read_list(in.counted(), out.counted, at, "counted");
}

static void write(const result_location& in, pb::ResultLocation& out, const place& at) {
  write_attempt(in.stage, in.partition, in.attempt, *out.mutable_attempt());
  write(in.endpoint, *out.mutable_endpoint(), place{at, "endpoint"});
  out.set_bytes(in.bytes);
}

static void read(const pb::ResultLocation& in, result_location& out, const place& at) {
  read_attempt(in.attempt(), {out.stage, out.partition, out.attempt});
  read(in.endpoint(), out.endpoint, place{at, "endpoint"});
  out.bytes = in.bytes();
}

static void check_elsewhere(const job_results& results, const place& at) {
  const result_location* previous = nullptr;
  for (const auto& location : results.elsewhere) {
    if (location.partition >= results.values.size())
      return at.fail("elsewhere", "names partition " + std::to_string(location.partition) + " of " +
                                      std::to_string(results.values.size()));
    if (previous && previous->partition >= location.partition) return at.fail("elsewhere", "is not in order");
    previous = &location;
  }
}

static void write(const job_results& in, pb::JobResults& out, const place& at) {
  check_elsewhere(in, at);
  write(in.values, *out.mutable_values(), place{at, "values"});
  write_list(in.elsewhere, *out.mutable_elsewhere(), at, "elsewhere");
}

static void read(const pb::JobResults& in, job_results& out, const place& at) {
  read(in.values(), out.values, place{at, "values"});
  read_list(in.elsewhere(), out.elsewhere, at, "elsewhere");
  check_elsewhere(out, at);
}

static void write(const job_end& in, pb::JobEnd& out, const place& at) {
  out.set_job(in.job.value);
  write(in.failure, *out.mutable_failure(), place{at, "failure"});
  write(in.progress, *out.mutable_progress(), place{at, "progress"});
  if (in.results) write(*in.results, *out.mutable_results(), place{at, "results"});
  out.set_result_bytes(in.result_bytes);
}

static void read(const pb::JobEnd& in, job_end& out, const place& at) {
  out.job.value = in.job();
  read(in.failure(), out.failure, place{at, "failure"});
  read(in.progress(), out.progress, place{at, "progress"});
  if (in.has_results()) {
    auto results = std::make_shared<job_results>();
    read(in.results(), *results, place{at, "results"});
    out.results = std::move(results);
  }
  out.result_bytes = in.result_bytes();
}

static void check_range(const task_placement& placement, const place& at) {
  if (std::uint64_t{placement.partition} + placement.count > max_tasks_per_stage)
    at.fail("count", "reaches beyond the largest possible stage");
}

static void write(const task_placement& in, pb::TaskPlacement& out, const place& at) {
  check_range(in, at);
  write_attempt(in.stage, in.partition, in.attempt, *out.mutable_attempt());
  out.set_count(in.count);
  out.set_executor(in.executor.value);
  out.set_host(at.name("host", in.host));
  write(in.holding, *out.mutable_holding(), place{at, "holding"});
}

static void read(const pb::TaskPlacement& in, task_placement& out, const place& at) {
  read_attempt(in.attempt(), {out.stage, out.partition, out.attempt});
  out.count = in.count();
  out.executor.value = in.executor();
  out.host = at.name("host", in.host());
  read(in.holding(), out.holding, place{at, "holding"});
  check_range(out, at);
}

static void write(const release_results& in, pb::ReleaseResults& out, const place&) { out.set_job(in.job.value); }

static void read(const pb::ReleaseResults& in, release_results& out, const place&) { out.job.value = in.job(); }

static void write(const withdraw_broadcast& in, pb::WithdrawBroadcast& out, const place& at) {
  write(in.broadcast, *out.mutable_broadcast(), place{at, "broadcast"});
}

static void read(const pb::WithdrawBroadcast& in, withdraw_broadcast& out, const place& at) {
  read(in.broadcast(), out.broadcast, place{at, "broadcast"});
}

static void write(const placement_query& in, pb::PlacementQuery& out, const place&) { out.set_job(in.job.value); }

static void read(const pb::PlacementQuery& in, placement_query& out, const place&) { out.job.value = in.job(); }

static void write(const placement_answer& in, pb::PlacementAnswer& out, const place& at) {
  write_list(in.placements, *out.mutable_placements(), at, "placements");
}

static void read(const pb::PlacementAnswer& in, placement_answer& out, const place& at) {
  read_list(in.placements(), out.placements, at, "placements");
}

static void write(const executor_status& in, pb::ExecutorStatus& out, const place& at) {
  write(in.info, *out.mutable_info(), place{at, "info"});
  out.set_state(at.name("state", in.state));
  out.set_leases(in.leases);
  out.set_running(in.running);
  out.set_tasks_done(in.tasks_done);
  out.set_block_bytes(in.block_bytes);
  out.set_kept(in.kept);
}

static void read(const pb::ExecutorStatus& in, executor_status& out, const place& at) {
  read(in.info(), out.info, place{at, "info"});
  out.state = at.name("state", in.state());
  out.leases = in.leases();
  out.running = in.running();
  out.tasks_done = in.tasks_done();
  out.block_bytes = in.block_bytes();
  out.kept = in.kept();
}

static void write(const status_query& in, pb::StatusQuery& out, const place&) {
  out.set_jobs(in.jobs);
  out.set_executors(in.executors);
}

static void read(const pb::StatusQuery& in, status_query& out, const place&) {
  out.jobs = in.jobs();
  out.executors = in.executors();
}

static void write(const cluster_status& in, pb::ClusterStatus& out, const place& at) {
  out.set_cluster_id(at.name("cluster_id", in.cluster_id));
  out.set_session_id(at.name("session_id", in.session_id));
  out.set_master(at.name("master", in.master));
  write_list(in.executors, *out.mutable_executors(), at, "executors");
  write_list(in.jobs, *out.mutable_jobs(), at, "jobs");
  out.set_dropped_messages(in.dropped_messages);
}

static void read(const pb::ClusterStatus& in, cluster_status& out, const place& at) {
  out.cluster_id = at.name("cluster_id", in.cluster_id());
  out.session_id = at.name("session_id", in.session_id());
  out.master = at.name("master", in.master());
  read_list(in.executors(), out.executors, at, "executors");
  read_list(in.jobs(), out.jobs, at, "jobs");
  out.dropped_messages = in.dropped_messages();
}

} // namespace troupe::wire

TROUPE_WIRE_FORM(job_progress, JobProgress)
TROUPE_WIRE_FORM(job_end, JobEnd)
TROUPE_WIRE_FORM(release_results, ReleaseResults)
TROUPE_WIRE_FORM(withdraw_broadcast, WithdrawBroadcast)
TROUPE_WIRE_FORM(placement_query, PlacementQuery)
TROUPE_WIRE_FORM(placement_answer, PlacementAnswer)
TROUPE_WIRE_FORM(status_query, StatusQuery)
TROUPE_WIRE_FORM(cluster_status, ClusterStatus)
