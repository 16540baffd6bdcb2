// Demand and supply of executors.

#include <troupe/messages/wire_parts.hpp>

namespace troupe::wire {

static void write(const executor_shape& in, pb::ExecutorShape& out, const place& at) {
  out.set_shape(in.shape.value);
  write(in.profile, *out.mutable_profile(), place{at, "profile"});
}

static void read(const pb::ExecutorShape& in, executor_shape& out, const place& at) {
  out.shape.value = in.shape();
  read(in.profile(), out.profile, place{at, "profile"});
}

static void write(const shape_load& in, pb::ShapeLoad& out, const place&) {
  out.set_shape(in.shape.value);
  out.set_waiting_tasks(in.waiting_tasks);
  out.set_executors_wanted(in.executors_wanted);
  out.set_satisfied_by_none(in.satisfied_by_none);
}

static void read(const pb::ShapeLoad& in, shape_load& out, const place&) {
  out.shape.value = in.shape();
  out.waiting_tasks = in.waiting_tasks();
  out.executors_wanted = in.executors_wanted();
  out.satisfied_by_none = in.satisfied_by_none();
}

static void write(const idle_executor& in, pb::IdleExecutor& out, const place&) {
  out.set_executor(in.executor.value);
  out.set_request(in.request.value);
  out.set_idle_nanoseconds(in.idle_nanoseconds);
  out.set_serving(in.serving);
  out.set_draining(in.draining);
  out.set_keeping(in.keeping);
}

static void read(const pb::IdleExecutor& in, idle_executor& out, const place&) {
  out.executor.value = in.executor();
  out.request.value = in.request();
  out.idle_nanoseconds = in.idle_nanoseconds();
  out.serving = in.serving();
  out.draining = in.draining();
  out.keeping = in.keeping();
}

static void write(const load_report& in, pb::LoadReport& out, const place& at) {
  out.set_number(in.number);
  write_list(in.new_shapes, *out.mutable_new_shapes(), at, "new_shapes");
  write_list(in.loads, *out.mutable_loads(), at, "loads");
  write_list(in.idle, *out.mutable_idle(), at, "idle");
  write_ids(in.present, *out.mutable_present());
}

static void read(const pb::LoadReport& in, load_report& out, const place& at) {
  out.number = in.number();
  read_list(in.new_shapes(), out.new_shapes, at, "new_shapes");
  read_list(in.loads(), out.loads, at, "loads");
  read_list(in.idle(), out.idle, at, "idle");
  read_ids(in.present(), out.present);
}

static void write(const launch_status& in, pb::LaunchStatus& out, const place& at) {
  out.set_request(in.request.value);
  out.set_shape(in.shape.value);
  out.set_state(static_cast<pb::LaunchState>(in.state));
  out.set_detail(at.text("detail", in.detail));
  write(in.exit, *out.mutable_exit(), place{at, "exit"});
}

static void read(const pb::LaunchStatus& in, launch_status& out, const place& at) {
  out.request.value = in.request();
  out.shape.value = in.shape();
  out.state = at.enumerator("state", in.state(), launch_state::refused);
  out.detail = at.text("detail", in.detail());
  read(in.exit(), out.exit, place{at, "exit"});
}

static void write(const launch_report& in, pb::LaunchReport& out, const place& at) {
  write_list(in.statuses, *out.mutable_statuses(), at, "statuses");
}

static void read(const pb::LaunchReport& in, launch_report& out, const place& at) {
  read_list(in.statuses(), out.statuses, at, "statuses");
}

static void write(const shape_status& in, pb::ShapeStatus& out, const place&) {
  out.set_shape(in.shape.value);
  out.set_starting(in.starting);
  out.set_missing(in.missing);
  out.set_why(static_cast<std::uint32_t>(in.why));
}

static void read(const pb::ShapeStatus& in, shape_status& out, const place& at) {
  out.shape.value = in.shape();
  out.starting = in.starting();
  out.missing = in.missing();
  out.why = at.enumerator("why", in.why(), allocation_obstacle::room);
}

static void write(const allocation_report& in, pb::AllocationReport& out, const place& at) {
  write_list(in.shapes, *out.mutable_shapes(), at, "shapes");
}

static void read(const pb::AllocationReport& in, allocation_report& out, const place& at) {
  read_list(in.shapes(), out.shapes, at, "shapes");
}

static void write(const feasibility_query& in, pb::FeasibilityQuery& out, const place& at) {
  write_list(in.shapes, *out.mutable_shapes(), at, "shapes");
}

static void read(const pb::FeasibilityQuery& in, feasibility_query& out, const place& at) {
  read_list(in.shapes(), out.shapes, at, "shapes");
}

static void write(const feasibility& in, pb::Feasibility& out, const place& at) {
  out.set_feasible(in.feasible);
  out.set_fixed(in.fixed);
  out.set_most(in.most);
  out.set_sentence(at.text("sentence", in.sentence));
}

static void read(const pb::Feasibility& in, feasibility& out, const place& at) {
  out.feasible = in.feasible();
  out.fixed = in.fixed();
  out.most = in.most();
  out.sentence = at.text("sentence", in.sentence());
}

static void write(const feasibility_answer& in, pb::FeasibilityAnswer& out, const place& at) {
  write_list(in.answers, *out.mutable_answers(), at, "answers");
}

static void read(const pb::FeasibilityAnswer& in, feasibility_answer& out, const place& at) {
  read_list(in.answers(), out.answers, at, "answers");
}

static void write(const release_request& in, pb::ReleaseRequest& out, const place&) {
  out.set_executor(in.executor.value);
}

static void read(const pb::ReleaseRequest& in, release_request& out, const place&) {
  out.executor.value = in.executor();
}

static void write(const release_answer& in, pb::ReleaseAnswer& out, const place& at) {
  out.set_executor(in.executor.value);
  out.set_granted(in.granted);
  out.set_serving(in.serving);
  out.set_reason(at.text("reason", in.reason));
}

static void read(const pb::ReleaseAnswer& in, release_answer& out, const place& at) {
  out.executor.value = in.executor();
  out.granted = in.granted();
  out.serving = in.serving();
  out.reason = at.text("reason", in.reason());
}

static void write(const exit_query& in, pb::ExitQuery& out, const place&) { out.set_request(in.request.value); }

static void read(const pb::ExitQuery& in, exit_query& out, const place&) { out.request.value = in.request(); }

static void write(const exit_answer& in, pb::ExitAnswer& out, const place& at) {
  out.set_request(in.request.value);
  write(in.exit, *out.mutable_exit(), place{at, "exit"});
}

static void read(const pb::ExitAnswer& in, exit_answer& out, const place& at) {
  out.request.value = in.request();
  read(in.exit(), out.exit, place{at, "exit"});
}

} // namespace troupe::wire

TROUPE_WIRE_FORM(load_report, LoadReport)
TROUPE_WIRE_FORM(launch_report, LaunchReport)
TROUPE_WIRE_FORM(allocation_report, AllocationReport)
TROUPE_WIRE_FORM(feasibility_query, FeasibilityQuery)
TROUPE_WIRE_FORM(feasibility_answer, FeasibilityAnswer)
TROUPE_WIRE_FORM(release_request, ReleaseRequest)
TROUPE_WIRE_FORM(release_answer, ReleaseAnswer)
TROUPE_WIRE_FORM(exit_query, ExitQuery)
TROUPE_WIRE_FORM(exit_answer, ExitAnswer)
