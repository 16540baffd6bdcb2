// Executors: what they are, and how they live.

#include <troupe/messages/wire_parts.hpp>

namespace troupe::wire {

void write(const executor_info& in, pb::ExecutorInfo& out, const place& at) {
  out.set_executor(in.executor.value);
  out.set_epoch(in.epoch);
  out.set_request(in.request.value);
  out.set_host(at.name("host", in.host));
  out.set_pid(in.pid);
  write(in.profile, *out.mutable_profile(), place{at, "profile"});
  write(in.capacity, *out.mutable_capacity(), place{at, "capacity"});
  out.set_slots(at.amount("slots", in.slots));
  out.set_native(in.native);
  out.set_in_process(in.in_process);
  out.set_build_id(at.name("build_id", in.build_id));
  write(in.blocks, *out.mutable_blocks(), place{at, "blocks"});
  out.set_log_file(at.text("log_file", in.log_file));
  out.set_shape(in.shape.value);
  out.set_shuffle_service(in.shuffle_service);
}

void read(const pb::ExecutorInfo& in, executor_info& out, const place& at) {
  out.executor.value = in.executor();
  out.epoch = in.epoch();
  out.request.value = in.request();
  out.host = at.name("host", in.host());
  out.pid = in.pid();
  read(in.profile(), out.profile, place{at, "profile"});
  read(in.capacity(), out.capacity, place{at, "capacity"});
  out.slots = at.amount("slots", in.slots());
  out.native = in.native();
  out.in_process = in.in_process();
  out.build_id = at.name("build_id", in.build_id());
  read(in.blocks(), out.blocks, place{at, "blocks"});
  out.log_file = at.text("log_file", in.log_file());
  out.shape.value = in.shape();
  out.shuffle_service = in.shuffle_service();
}

static void write(const running_attempt& in, pb::RunningAttempt& out, const place&) {
  write_attempt(in.stage, in.partition, in.attempt, *out.mutable_attempt());
  out.set_lease(in.lease.value);
}

static void read(const pb::RunningAttempt& in, running_attempt& out, const place&) {
  read_attempt(in.attempt(), {out.stage, out.partition, out.attempt});
  out.lease.value = in.lease();
}

static void write(const executor_registration& in, pb::ExecutorRegistration& out, const place& at) {
  write(in.proof, *out.mutable_proof(), place{at, "proof"});
  write(in.info, *out.mutable_info(), place{at, "info"});
  out.set_session_id(at.name("session_id", in.session_id));
  write_list(in.running, *out.mutable_running(), at, "running");
  write_list(in.blocks, *out.mutable_blocks(), at, "blocks");
}

static void read(const pb::ExecutorRegistration& in, executor_registration& out, const place& at) {
  read(in.proof(), out.proof, place{at, "proof"});
  read(in.info(), out.info, place{at, "info"});
  out.session_id = at.name("session_id", in.session_id());
  read_list(in.running(), out.running, at, "running");
  read_list(in.blocks(), out.blocks, at, "blocks");
}

static void write(const executor_heartbeat& in, pb::ExecutorHeartbeat& out, const place&) {
  out.set_executor(in.executor.value);
  out.set_epoch(in.epoch);
  out.set_number(in.number);
  out.set_orders_seen(in.orders_seen);
  out.set_running(in.running);
  out.set_queued(in.queued);
  out.set_block_bytes(in.block_bytes);
  out.set_reports_sent(in.reports_sent);
}

static void read(const pb::ExecutorHeartbeat& in, executor_heartbeat& out, const place&) {
  out.executor.value = in.executor();
  out.epoch = in.epoch();
  out.number = in.number();
  out.orders_seen = in.orders_seen();
  out.running = in.running();
  out.queued = in.queued();
  out.block_bytes = in.block_bytes();
  out.reports_sent = in.reports_sent();
}

static void write(const driver_heartbeat& in, pb::DriverHeartbeat& out, const place&) {
  out.set_number(in.number);
  out.set_heard(in.heard);
}

static void read(const pb::DriverHeartbeat& in, driver_heartbeat& out, const place&) {
  out.number = in.number();
  out.heard = in.heard();
}

void write(const executor_exit& in, pb::ExecutorExit& out, const place&) {
  out.set_cause(static_cast<pb::ExitCause>(in.cause));
  out.set_exit_code(in.exit_code);
  out.set_signal(in.signal);
  out.set_memory_limit(in.memory_limit);
  out.set_peak_memory(in.peak_memory);
}

void read(const pb::ExecutorExit& in, executor_exit& out, const place& at) {
  out.cause = at.enumerator("cause", in.cause(), exit_cause::no_memory);
  out.exit_code = in.exit_code();
  out.signal = in.signal();
  out.memory_limit = in.memory_limit();
  out.peak_memory = in.peak_memory();
}

} // namespace troupe::wire

TROUPE_WIRE_FORM(executor_info, ExecutorInfo)
TROUPE_WIRE_FORM(executor_registration, ExecutorRegistration)
TROUPE_WIRE_FORM(executor_heartbeat, ExecutorHeartbeat)
TROUPE_WIRE_FORM(driver_heartbeat, DriverHeartbeat)
