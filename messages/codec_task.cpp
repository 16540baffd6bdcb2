// The hot path: launches and outcomes as packed columns.

#include <troupe/messages/wire_parts.hpp>

#include "troupe/messages/task.pb.h"

namespace troupe::wire {

namespace {

/// What launch and outcome have in common: which tasks, and which attempts of them.
template <class Batch>
void check_tasks(const Batch& batch, const place& at) {
  if (batch.count > wire_limits::batch)
    return at.fail("count", "is " + std::to_string(batch.count) + ", at most " + std::to_string(wire_limits::batch) +
                                " is allowed");
  if (!at.column("partitions", batch.partitions.size(), batch.count) ||
      !at.column("attempts", batch.attempts.size(), batch.count))
    return;
  const auto largest = batch.partitions.empty()
                           ? std::uint64_t{batch.first} + batch.count
                           : std::uint64_t{1} + *std::max_element(batch.partitions.begin(), batch.partitions.end());
  if (largest > max_tasks_per_stage)
    at.fail("partitions", "reach " + std::to_string(largest - 1) + ", beyond the largest possible stage");
}

void check_counted(const outcome_batch& batch, const place& at) {
  if (batch.counted.empty() && batch.accumulators.empty()) return;
  for (const auto& name : batch.accumulators)
    if (name.empty() || name.size() > max_accumulator_name)
      return at.fail("accumulators", "has a name of " + std::to_string(name.size()) + " bytes");
  const counted_amount* previous = nullptr;
  for (const auto& one : batch.counted) {
    if (one.index >= batch.count || batch.status(one.index) != task_status::succeeded)
      return at.fail("counted", "names task " + std::to_string(one.index) + ", which did not succeed");
    if (one.accumulator >= batch.accumulators.size())
      return at.fail("counted", "names accumulator " + std::to_string(one.accumulator) + " of " +
                                    std::to_string(batch.accumulators.size()));
    if (previous && std::pair{previous->index, previous->accumulator} >= std::pair{one.index, one.accumulator})
      return at.fail("counted", "is not in order");
    previous = &one;
  }
}

void check_outcomes(const outcome_batch& batch, const place& at) {
  check_tasks(batch, at);
  if (!at.column("statuses", batch.statuses.size(), batch.count) || !at.ok()) return;
  at.column("results", batch.results.size(), batch.count);
  const auto failed =
      static_cast<std::size_t>(std::count_if(batch.statuses.begin(), batch.statuses.end(),
                                             [](task_status status) { return status != task_status::succeeded; }));
  if (batch.failures.size() != failed)
    return at.fail("failures", "has " + std::to_string(batch.failures.size()) + " entries for " +
                                   std::to_string(failed) + " tasks that did not succeed");
  const auto* previous = static_cast<const task_failure*>(nullptr);
  for (const auto& failure : batch.failures) {
    if (failure.index >= batch.count || batch.status(failure.index) == task_status::succeeded)
      return at.fail("failures", "names task " + std::to_string(failure.index) + ", which did not fail");
    if (previous && previous->index >= failure.index) return at.fail("failures", "are not in order");
    previous = &failure;
  }
  check_counted(batch, at);
}

/// Copies the arguments of the batch's own tasks out of the column that it refers to.
void write_arguments(const task_batch& in, pb::PackedColumn& out, const place& at) {
  const auto& column = *in.arguments;
  const auto begin_of = [&column](std::uint64_t entry) { return entry == 0 ? 0u : column.ends[entry - 1]; };
  auto* ends = out.mutable_ends();
  ends->Reserve(static_cast<int>(in.count));
  auto* end = ends->AddNAlreadyReserved(static_cast<int>(in.count));
  if (!in.by_partition || in.partitions.empty()) { // they lie side by side
    const auto first = in.by_partition ? std::int64_t{in.first} - in.argument_offset : std::int64_t{in.argument_offset};
    if (first < 0 || static_cast<std::uint64_t>(first) + in.count > column.size())
      return at.fail("end before the batch's last task");
    const auto begin = begin_of(static_cast<std::uint64_t>(first));
    const auto* source = column.ends.data() + first;
    for (std::uint32_t i = 0; i < in.count; ++i) end[i] = source[i] - begin;
    if (begin > source[in.count - 1] || source[in.count - 1] > column.data.size())
      return at.fail("have ends that do not fit their data");
    out.set_data(column.data.data() + begin, source[in.count - 1] - begin);
    return;
  }
  auto& data = *out.mutable_data();
  for (std::uint32_t i = 0; i < in.count; ++i) {
    const auto entry = std::int64_t{in.partitions[i]} - in.argument_offset;
    if (entry < 0 || static_cast<std::uint64_t>(entry) >= column.size())
      return at.fail("end before the batch's last task");
    data.append(column[static_cast<std::size_t>(entry)]);
    end[i] = static_cast<std::uint32_t>(data.size());
  }
}

} // namespace

static void write(const lease_grant& in, pb::LeaseGrant& out, const place& at) {
  if (!in.profile) return at.fail("profile", "is missing");
  out.set_lease(in.lease.value);
  write(*in.profile, *out.mutable_profile(), place{at, "profile"});
  write(in.holding, *out.mutable_holding(), place{at, "holding"});
}

static void read(const pb::LeaseGrant& in, lease_grant& out, const place& at) {
  if (!in.has_profile()) return at.fail("profile", "is missing");
  out.lease.value = in.lease();
  auto profile = std::make_shared<resource_profile>();
  read(in.profile(), *profile, place{at, "profile"});
  out.profile = std::move(profile);
  read(in.holding(), out.holding, place{at, "holding"});
}

static void check_maps(const shuffle_input& input, const place& at) {
  if (input.endpoint_of_map.size() != input.attempt_of_map.size())
    return at.fail("attempt_of_map", "has " + std::to_string(input.attempt_of_map.size()) + " entries for " +
                                         std::to_string(input.endpoint_of_map.size()) + " map outputs");
  if (input.empty_of_map && input.empty_of_map->size() != input.endpoint_of_map.size())
    return at.fail("empty_of_map", "has " + std::to_string(input.empty_of_map->size()) + " entries for " +
                                       std::to_string(input.endpoint_of_map.size()) + " map outputs");
  for (const auto endpoint : input.endpoint_of_map)
    if (endpoint >= input.endpoints.size())
      return at.fail("endpoint_of_map",
                     "names endpoint " + std::to_string(endpoint) + " of " + std::to_string(input.endpoints.size()));
}

static void write(const shuffle_input& in, pb::ShuffleInput& out, const place& at) {
  check_maps(in, at);
  out.set_shuffle(in.shuffle.value);
  write_list(in.endpoints, *out.mutable_endpoints(), at, "endpoints");
  write_numbers(in.endpoint_of_map, *out.mutable_endpoint_of_map());
  write_numbers(in.attempt_of_map, *out.mutable_attempt_of_map());
  if (in.empty_of_map) write(*in.empty_of_map, *out.mutable_empty_of_map(), place{at, "empty_of_map"});
}

static void read(const pb::ShuffleInput& in, shuffle_input& out, const place& at) {
  out.shuffle.value = in.shuffle();
  read_list(in.endpoints(), out.endpoints, at, "endpoints");
  read_numbers(in.endpoint_of_map(), out.endpoint_of_map);
  read_numbers(in.attempt_of_map(), out.attempt_of_map);
  if (in.has_empty_of_map()) {
    auto empty = std::make_shared<packed_column>();
    read(in.empty_of_map(), *empty, place{at, "empty_of_map"});
    out.empty_of_map = std::move(empty);
  }
  check_maps(out, at);
}

static void write(const partition_inputs& in, pb::PartitionInputs& out, const place& at) {
  out.set_stage(in.stage.value);
  write_list(in.endpoints, *out.mutable_endpoints(), at, "endpoints");
  write_numbers(in.endpoint_of_task, *out.mutable_endpoint_of_task());
  write_numbers(in.attempt_of_task, *out.mutable_attempt_of_task());
  out.set_cache(in.cache.value);
}

static void read(const pb::PartitionInputs& in, partition_inputs& out, const place& at) {
  out.stage.value = in.stage();
  read_list(in.endpoints(), out.endpoints, at, "endpoints");
  read_numbers(in.endpoint_of_task(), out.endpoint_of_task);
  read_numbers(in.attempt_of_task(), out.attempt_of_task);
  out.cache.value = in.cache();
}

/// Each column has an entry for each task, and names what is there.
static void check_inputs(const task_batch& batch, const place& at) {
  for (const auto& input : batch.inputs) {
    at.column("inputs.endpoint_of_task", input.endpoint_of_task.size(), batch.count);
    at.column("inputs.attempt_of_task", input.attempt_of_task.size(), batch.count);
    if (batch.count > 0 && input.endpoint_of_task.empty()) return at.fail("inputs", "have no columns");
    if (input.endpoint_of_task.size() != input.attempt_of_task.size()) return at.fail("inputs", "differ in length");
    for (const auto number : input.endpoint_of_task)
      if (number >= input.endpoints.size() && number != partition_inputs::nowhere)
        return at.fail("inputs",
                       "name endpoint " + std::to_string(number) + " of " + std::to_string(input.endpoints.size()));
  }
}

/// Not `place::column`: a gang without any address is none.
static void check_gang(const packed_column& gang, std::uint32_t tasks, const place& at) {
  if (gang.size() != tasks)
    at.fail("gang", "has " + std::to_string(gang.size()) + " entries for " + std::to_string(tasks));
}

static void write(const stage_install& in, pb::StageInstall& out, const place& at) {
  if (!in.program) return at.fail("program", "is missing");
  out.set_stage(in.stage.value);
  out.set_stage_attempt(in.stage_attempt);
  out.set_job(in.job.value);
  out.set_name(at.name("name", in.name));
  out.set_tasks(in.tasks);
  out.set_buckets(in.buckets);
  write(*in.program, *out.mutable_program(), place{at, "program"});
  write_list(in.inputs, *out.mutable_inputs(), at, "inputs");
  out.set_task_timeout(in.task_timeout == never ? 0 : in.task_timeout.count());
  out.set_hands_on(in.hands_on);
  out.set_keeps(in.keeps.value);
  out.set_level(static_cast<std::uint32_t>(in.level));
  if (!in.gang) return;
  check_gang(*in.gang, in.tasks, at);
  write(*in.gang, *out.mutable_gang(), place{at, "gang"});
}

static void read(const pb::StageInstall& in, stage_install& out, const place& at) {
  if (const auto timeout = at.amount("task_timeout", in.task_timeout()); timeout != 0)
    out.task_timeout = duration{timeout};
  out.hands_on = in.hands_on();
  out.keeps.value = in.keeps();
  out.level = read_level(in.level(), at);
  out.stage.value = in.stage();
  out.stage_attempt = in.stage_attempt();
  out.job.value = in.job();
  out.name = at.name("name", in.name());
  out.tasks = in.tasks();
  out.buckets = in.buckets();
  auto program = std::make_shared<std::variant<native_program, command_program>>();
  read(in.program(), *program, place{at, "program"});
  out.program = std::move(program);
  read_list(in.inputs(), out.inputs, at, "inputs");
  if (!in.has_gang()) return;
  auto gang = std::make_shared<packed_column>();
  read(in.gang(), *gang, place{at, "gang"});
  check_gang(*gang, out.tasks, at);
  out.gang = std::move(gang);
}

static void write(const task_batch& in, pb::TaskBatch& out, const place& at) {
  check_tasks(in, at);
  if (!at.ok()) return;
  out.set_stage(in.stage.value);
  out.set_stage_attempt(in.stage_attempt);
  out.set_lease(in.lease.value);
  out.set_first(in.first);
  out.set_count(in.count);
  write_numbers(in.partitions, *out.mutable_partitions());
  write_numbers(in.attempts, *out.mutable_attempts());
  if (in.arguments && !in.arguments->empty() && in.count > 0)
    write_arguments(in, *out.mutable_arguments(), place{at, "arguments"});
  check_inputs(in, at);
  write_list(in.inputs, *out.mutable_inputs(), at, "inputs");
}

static void read(const pb::TaskBatch& in, task_batch& out, const place& at) {
  out.stage.value = in.stage();
  out.stage_attempt = in.stage_attempt();
  out.lease.value = in.lease();
  out.first = in.first();
  out.count = in.count();
  read_numbers(in.partitions(), out.partitions);
  read_numbers(in.attempts(), out.attempts);
  check_tasks(out, at);
  read_list(in.inputs(), out.inputs, at, "inputs");
  check_inputs(out, at);
  if (!in.has_arguments()) return;
  auto column = std::make_shared<packed_column>();
  read(in.arguments(), *column, place{at, "arguments"});
  at.column("arguments", column->size(), out.count);
  out.arguments = std::move(column);
}

static void write(const kill_task& in, pb::AttemptId& out, const place&) {
  write_attempt(in.stage, in.partition, in.attempt, out);
}

static void read(const pb::AttemptId& in, kill_task& out, const place&) {
  read_attempt(in, {out.stage, out.partition, out.attempt});
}

static void check_texts(const barrier_release& release, const place& at) {
  if (!release.texts) return;
  const auto size = release.texts->data.size();
  if (size > max_gather_size)
    return at.fail("texts", "have " + std::to_string(size) + " bytes, at most " + std::to_string(max_gather_size) +
                                " are allowed");
  for (const auto partition : release.partitions)
    if (partition >= release.texts->size())
      return at.fail("texts", "has " + std::to_string(release.texts->size()) + " entries and is for partition " +
                                  std::to_string(partition));
}

static void write(const barrier_release& in, pb::BarrierRelease& out, const place& at) {
  check_texts(in, at);
  out.set_stage(in.stage.value);
  out.set_stage_attempt(in.stage_attempt);
  out.set_round(in.round);
  write_numbers(in.partitions, *out.mutable_partitions());
  if (in.texts) write(*in.texts, *out.mutable_texts(), place{at, "texts"});
  out.set_failure(at.text("failure", in.failure));
}

static void read(const pb::BarrierRelease& in, barrier_release& out, const place& at) {
  out.stage.value = in.stage();
  out.stage_attempt = in.stage_attempt();
  out.round = in.round();
  read_numbers(in.partitions(), out.partitions);
  if (in.has_texts()) {
    auto texts = std::make_shared<packed_column>();
    read(in.texts(), *texts, place{at, "texts"});
    out.texts = std::move(texts);
  }
  out.failure = at.text("failure", in.failure());
  check_texts(out, at);
}

static void write(const block_takeover& in, pb::BlockTakeover& out, const place& at) {
  write(in.from, *out.mutable_from(), place{at, "from"});
  write_list(in.blocks, *out.mutable_blocks(), at, "blocks");
  out.set_sockets(in.sockets);
}

static void read(const pb::BlockTakeover& in, block_takeover& out, const place& at) {
  read(in.from(), out.from, place{at, "from"});
  read_list(in.blocks(), out.blocks, at, "blocks");
  out.sockets = in.sockets();
}

static void write(const publication_right& in, pb::PublicationRight& out, const place& at) {
  write_attempt(in.stage, in.partition, in.attempt, *out.mutable_attempt());
  write_texts(in.outputs, *out.mutable_outputs(), at, "outputs");
}

static void read(const pb::PublicationRight& in, publication_right& out, const place& at) {
  read_attempt(in.attempt(), {out.stage, out.partition, out.attempt});
  read_texts(in.outputs(), out.outputs, at, "outputs");
}

static void write(const executor_orders& in, pb::ExecutorOrders& out, const place& at) {
  out.set_epoch(in.epoch);
  out.set_sequence(in.sequence);
  write_ids(in.revoked, *out.mutable_revoked());
  write_ids(in.removed_stages, *out.mutable_removed_stages());
  write_list(in.kills, *out.mutable_kills(), at, "kills");
  write_ids(in.recalled, *out.mutable_recalled());
  write_ids(in.gone, *out.mutable_gone());
  write_list(in.grants, *out.mutable_grants(), at, "grants");
  write_list(in.installs, *out.mutable_installs(), at, "installs");
  write_list(in.batches, *out.mutable_batches(), at, "batches");
  write_list(in.barriers, *out.mutable_barriers(), at, "barriers");
  write_list(in.takeovers, *out.mutable_takeovers(), at, "takeovers");
  write_list(in.withdrawn, *out.mutable_withdrawn(), at, "withdrawn");
  write_list(in.consumed, *out.mutable_consumed(), at, "consumed");
  write_ids(in.unkept, *out.mutable_unkept());
  write_list(in.surplus, *out.mutable_surplus(), at, "surplus");
  write_list(in.rights, *out.mutable_rights(), at, "rights");
  write_ids(in.forgotten_jobs, *out.mutable_forgotten_jobs());
  write_ids(in.late_stages, *out.mutable_late_stages());
  out.set_stop(in.stop);
}

static void read(const pb::ExecutorOrders& in, executor_orders& out, const place& at) {
  out.epoch = in.epoch();
  out.sequence = in.sequence();
  read_ids(in.revoked(), out.revoked);
  read_ids(in.removed_stages(), out.removed_stages);
  read_list(in.kills(), out.kills, at, "kills");
  read_ids(in.recalled(), out.recalled);
  read_ids(in.gone(), out.gone);
  read_list(in.grants(), out.grants, at, "grants");
  read_list(in.installs(), out.installs, at, "installs");
  read_list(in.batches(), out.batches, at, "batches");
  read_list(in.barriers(), out.barriers, at, "barriers");
  read_list(in.takeovers(), out.takeovers, at, "takeovers");
  read_list(in.withdrawn(), out.withdrawn, at, "withdrawn");
  read_list(in.consumed(), out.consumed, at, "consumed");
  read_ids(in.unkept(), out.unkept);
  read_list(in.surplus(), out.surplus, at, "surplus");
  read_list(in.rights(), out.rights, at, "rights");
  read_ids(in.forgotten_jobs(), out.forgotten_jobs);
  read_ids(in.late_stages(), out.late_stages);
  out.stop = in.stop();
}

static void write(const task_failure& in, pb::TaskFailure& out, const place& at) {
  out.set_index(in.index);
  out.set_message(at.text("message", in.message));
  out.set_stderr_text(at.text("stderr_text", in.stderr_text));
  out.set_exit_code(in.exit_code);
  out.set_signal(in.signal);
  out.set_cause(static_cast<std::uint32_t>(in.cause));
  write_attempt(in.shuffle, in.map_partition, in.map_attempt, *out.mutable_map_output());
  out.set_map_executor(in.map_executor.value);
}

static void read(const pb::TaskFailure& in, task_failure& out, const place& at) {
  out.index = in.index();
  out.message = at.text("message", in.message());
  out.stderr_text = at.text("stderr_text", in.stderr_text());
  out.exit_code = in.exit_code();
  out.signal = in.signal();
  out.cause = at.enumerator("cause", in.cause(), failure_cause::certain);
  read_attempt(in.map_output(), {out.shuffle, out.map_partition, out.map_attempt});
  out.map_executor.value = in.map_executor();
}

static void write(const counted_amount& in, pb::CountedAmount& out, const place&) {
  out.set_index(in.index);
  out.set_accumulator(in.accumulator);
  out.set_amount(in.amount);
}

static void read(const pb::CountedAmount& in, counted_amount& out, const place&) {
  out.index = in.index();
  out.accumulator = in.accumulator();
  out.amount = in.amount();
}

static void write(const outcome_batch& in, pb::OutcomeBatch& out, const place& at) {
  check_outcomes(in, at);
  if (!at.ok()) return;
  out.set_stage(in.stage.value);
  out.set_stage_attempt(in.stage_attempt);
  out.set_lease(in.lease.value);
  out.set_count(in.count);
  out.set_first(in.first);
  write_numbers(in.partitions, *out.mutable_partitions());
  write_numbers(in.attempts, *out.mutable_attempts());
  static_assert(sizeof(task_status) == 1);
  out.set_statuses(in.statuses.data(), in.statuses.size());
  if (in.results != packed_column{}) write(in.results, *out.mutable_results(), place{at, "results"});
  write_list(in.failures, *out.mutable_failures(), at, "failures");
  out.set_run_nanoseconds(in.run_nanoseconds);
  out.set_cpu_nanoseconds(in.cpu_nanoseconds);
  out.set_peak_memory(in.peak_memory);
  out.set_output_bytes(in.output_bytes);
  for (const auto& name : in.accumulators) out.add_accumulators(name);
  write_list(in.counted, *out.mutable_counted(), at, "counted");
  if (!in.left.empty()) out.set_left(at.text("left", in.left));
}

static void read(const pb::OutcomeBatch& in, outcome_batch& out, const place& at) {
  out.stage.value = in.stage();
  out.stage_attempt = in.stage_attempt();
  out.lease.value = in.lease();
  out.count = in.count();
  out.first = in.first();
  read_numbers(in.partitions(), out.partitions);
  read_numbers(in.attempts(), out.attempts);
  out.statuses.reserve(in.statuses().size());
  for (const char status : in.statuses())
    out.statuses.push_back(at.enumerator("statuses", static_cast<unsigned char>(status), task_status::given_back));
  read(in.results(), out.results, place{at, "results"});
  read_list(in.failures(), out.failures, at, "failures");
  out.run_nanoseconds = in.run_nanoseconds();
  out.cpu_nanoseconds = in.cpu_nanoseconds();
  out.peak_memory = in.peak_memory();
  out.output_bytes = in.output_bytes();
  out.accumulators.assign(in.accumulators().begin(), in.accumulators().end());
  read_list(in.counted(), out.counted, at, "counted");
  out.left = at.text("left", in.left());
  check_outcomes(out, at);
}

static void check_refused_tasks(const refusal& refused, const place& at) {
  at.column("attempts", refused.attempts.size(), refused.partitions.size());
}

static void write(const refusal& in, pb::Refusal& out, const place& at) {
  check_refused_tasks(in, at);
  out.set_lease(in.lease.value);
  out.set_stage(in.stage.value);
  write_numbers(in.partitions, *out.mutable_partitions());
  write_numbers(in.attempts, *out.mutable_attempts());
  out.set_reason(at.text("reason", in.reason));
  out.set_build_mismatch(in.build_mismatch);
}

static void read(const pb::Refusal& in, refusal& out, const place& at) {
  out.lease.value = in.lease();
  out.stage.value = in.stage();
  read_numbers(in.partitions(), out.partitions);
  read_numbers(in.attempts(), out.attempts);
  out.reason = at.text("reason", in.reason());
  out.build_mismatch = in.build_mismatch();
  check_refused_tasks(out, at);
}

static void write(const std::shared_ptr<const outcome_batch>& in, pb::OutcomeBatch& out, const place& at) {
  if (!in) return at.fail("is missing");
  write(*in, out, at);
}

static void read(const pb::OutcomeBatch& in, std::shared_ptr<const outcome_batch>& out, const place& at) {
  auto batch = std::make_shared<outcome_batch>();
  read(in, *batch, at);
  out = std::move(batch);
}

static void write(const overdue_attempt& in, pb::OverdueAttempt& out, const place& at) {
  write_attempt(in.stage, in.partition, in.attempt, *out.mutable_attempt());
  out.set_lease(in.lease.value);
  out.set_job(in.job.value);
  out.set_stage_name(at.name("stage_name", in.stage_name));
  out.set_waited_nanoseconds(in.waited_nanoseconds);
  out.set_timed_out(in.timed_out);
}

static void read(const pb::OverdueAttempt& in, overdue_attempt& out, const place& at) {
  read_attempt(in.attempt(), {out.stage, out.partition, out.attempt});
  out.lease.value = in.lease();
  out.job.value = in.job();
  out.stage_name = at.name("stage_name", in.stage_name());
  out.waited_nanoseconds = in.waited_nanoseconds();
  out.timed_out = in.timed_out();
}

static void write(const barrier_arrival& in, pb::BarrierArrival& out, const place& at) {
  write_attempt(in.stage, in.partition, in.attempt, *out.mutable_attempt());
  out.set_stage_attempt(in.stage_attempt);
  out.set_round(in.round);
  out.set_kind(static_cast<pb::SyncKind>(in.kind));
  out.set_text(at.text("text", in.text, max_gather_text));
}

static void read(const pb::BarrierArrival& in, barrier_arrival& out, const place& at) {
  read_attempt(in.attempt(), {out.stage, out.partition, out.attempt});
  out.stage_attempt = in.stage_attempt();
  out.round = in.round();
  out.kind = at.enumerator("kind", in.kind(), sync_kind::all_gather);
  out.text = at.text("text", in.text(), max_gather_text);
}

static void write(const kept_partition& in, pb::KeptPartition& out, const place&) {
  out.set_cache(in.cache.value);
  out.set_partition(in.partition);
}

static void read(const pb::KeptPartition& in, kept_partition& out, const place&) {
  out.cache.value = in.cache();
  out.partition = in.partition();
}

static void write(const publication& in, pb::Publication& out, const place& at) {
  write_attempt(in.stage, in.partition, in.attempt, *out.mutable_attempt());
  out.set_outcome(static_cast<pb::PublicationOutcome>(in.outcome));
  out.set_reason(at.text("reason", in.reason));
}

static void read(const pb::Publication& in, publication& out, const place& at) {
  read_attempt(in.attempt(), {out.stage, out.partition, out.attempt});
  out.outcome = at.enumerator("outcome", in.outcome(), publication_outcome::failed);
  out.reason = at.text("reason", in.reason());
}

static void write(const executor_report& in, pb::ExecutorReport& out, const place& at) {
  out.set_executor(in.executor.value);
  out.set_epoch(in.epoch);
  out.set_orders_seen(in.orders_seen);
  write_list(in.refusals, *out.mutable_refusals(), at, "refusals");
  write_list(in.outcomes, *out.mutable_outcomes(), at, "outcomes");
  write_list(in.overdue, *out.mutable_overdue(), at, "overdue");
  write_list(in.arrivals, *out.mutable_arrivals(), at, "arrivals");
  write_list(in.taken_over, *out.mutable_taken_over(), at, "taken_over");
  write_list(in.evicted, *out.mutable_evicted(), at, "evicted");
  write_list(in.publications, *out.mutable_publications(), at, "publications");
}

static void read(const pb::ExecutorReport& in, executor_report& out, const place& at) {
  out.executor.value = in.executor();
  out.epoch = in.epoch();
  out.orders_seen = in.orders_seen();
  read_list(in.refusals(), out.refusals, at, "refusals");
  read_list(in.outcomes(), out.outcomes, at, "outcomes");
  read_list(in.overdue(), out.overdue, at, "overdue");
  read_list(in.arrivals(), out.arrivals, at, "arrivals");
  read_list(in.taken_over(), out.taken_over, at, "taken_over");
  read_list(in.evicted(), out.evicted, at, "evicted");
  read_list(in.publications(), out.publications, at, "publications");
}

} // namespace troupe::wire

TROUPE_WIRE_FORM(executor_orders, ExecutorOrders)
TROUPE_WIRE_FORM(outcome_batch, OutcomeBatch)
TROUPE_WIRE_FORM(executor_report, ExecutorReport)
TROUPE_WIRE_FORM(barrier_arrival, BarrierArrival)
