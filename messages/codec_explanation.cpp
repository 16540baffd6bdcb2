// Why jobs wait.

#include <troupe/messages/wire_parts.hpp>

#include "troupe/messages/explanation.pb.h"

namespace troupe::wire {

static void write(const explain_query& in, pb::ExplainQuery& out, const place&) { out.set_job(in.job.value); }

static void read(const pb::ExplainQuery& in, explain_query& out, const place&) { out.job.value = in.job(); }

static void write(const explained_clause& in, pb::ExplainedClause& out, const place& at) {
  out.set_clause(at.text("clause", in.clause));
  out.set_satisfied_by(in.satisfied_by);
}

static void read(const pb::ExplainedClause& in, explained_clause& out, const place& at) {
  out.clause = at.text("clause", in.clause());
  out.satisfied_by = in.satisfied_by();
}

static void write(const explained_hindrance& in, pb::ExplainedHindrance& out, const place& at) {
  out.set_what(static_cast<std::uint32_t>(in.what));
  out.set_executors(in.executors);
  out.set_detail(at.text("detail", in.detail));
}

static void read(const pb::ExplainedHindrance& in, explained_hindrance& out, const place& at) {
  out.what = at.enumerator("what", in.what(), hindrance::busy);
  out.executors = in.executors();
  out.detail = at.text("detail", in.detail());
}

static void write(const explained_holder& in, pb::ExplainedHolder& out, const place& at) {
  out.set_job(in.job.value);
  out.set_stage(in.stage);
  out.set_name(at.name("name", in.name));
  out.set_leases(in.leases);
}

static void read(const pb::ExplainedHolder& in, explained_holder& out, const place& at) {
  out.job.value = in.job();
  out.stage = in.stage();
  out.name = at.name("name", in.name());
  out.leases = in.leases();
}

static void write(const explained_nearest& in, pb::ExplainedNearest& out, const place& at) {
  out.set_executor(in.executor.value);
  out.set_host(at.name("host", in.host));
  write_texts(in.lacks, *out.mutable_lacks(), at, "lacks");
}

static void read(const pb::ExplainedNearest& in, explained_nearest& out, const place& at) {
  out.executor.value = in.executor();
  out.host = at.name("host", in.host());
  read_texts(in.lacks(), out.lacks, at, "lacks");
}

static void write(const explained_wait& in, pb::ExplainedWait& out, const place& at) {
  out.set_what(at.text("what", in.what));
  out.set_key(at.name("key", in.key));
  out.set_nanoseconds(in.nanoseconds);
}

static void read(const pb::ExplainedWait& in, explained_wait& out, const place& at) {
  out.what = at.text("what", in.what());
  out.key = at.name("key", in.key());
  out.nanoseconds = in.nanoseconds();
}

static void write(const explained_choice& in, pb::ExplainedChoice& out, const place& at) {
  out.set_profile(in.profile.value);
  out.set_content(at.text("content", in.content));
  out.set_asked_for(in.asked_for);
  out.set_executors(in.executors);
  out.set_fit(in.fit);
  out.set_slots(in.slots);
  out.set_free_slots(in.free_slots);
  write_list(in.clauses, *out.mutable_clauses(), at, "clauses");
  write_list(in.hindrances, *out.mutable_hindrances(), at, "hindrances");
  if (in.nearest) write(*in.nearest, *out.mutable_nearest(), place{at, "nearest"});
  write_list(in.holders, *out.mutable_holders(), at, "holders");
  out.set_allocation(at.text("allocation", in.allocation));
  out.set_edit(at.text("edit", in.edit));
}

static void read(const pb::ExplainedChoice& in, explained_choice& out, const place& at) {
  out.profile.value = in.profile();
  out.content = at.text("content", in.content());
  out.asked_for = in.asked_for();
  out.executors = in.executors();
  out.fit = in.fit();
  out.slots = in.slots();
  out.free_slots = in.free_slots();
  read_list(in.clauses(), out.clauses, at, "clauses");
  read_list(in.hindrances(), out.hindrances, at, "hindrances");
  if (in.has_nearest()) read(in.nearest(), out.nearest.emplace(), place{at, "nearest"});
  read_list(in.holders(), out.holders, at, "holders");
  out.allocation = at.text("allocation", in.allocation());
  out.edit = at.text("edit", in.edit());
}

static void write(const explained_task_set& in, pb::ExplainedTaskSet& out, const place& at) {
  out.set_conditions(at.text("conditions", in.conditions));
  out.set_pending(in.pending);
  out.set_reason(at.text("reason", in.reason));
  write_list(in.waits, *out.mutable_waits(), at, "waits");
  write_list(in.choices, *out.mutable_choices(), at, "choices");
}

static void read(const pb::ExplainedTaskSet& in, explained_task_set& out, const place& at) {
  out.conditions = at.text("conditions", in.conditions());
  out.pending = in.pending();
  out.reason = at.text("reason", in.reason());
  read_list(in.waits(), out.waits, at, "waits");
  read_list(in.choices(), out.choices, at, "choices");
}

static void write(const explained_stage& in, pb::ExplainedStage& out, const place& at) {
  out.set_stage(in.stage.value);
  out.set_index(in.index);
  out.set_name(at.name("name", in.name));
  out.set_state(static_cast<pb::StageState>(in.state));
  out.set_tasks(in.tasks);
  out.set_pending(in.pending);
  out.set_running(in.running);
  out.set_done(in.done);
  out.set_reason(at.text("reason", in.reason));
  write_list(in.task_sets, *out.mutable_task_sets(), at, "task_sets");
}

static void read(const pb::ExplainedStage& in, explained_stage& out, const place& at) {
  out.stage.value = in.stage();
  out.index = in.index();
  out.name = at.name("name", in.name());
  out.state = at.enumerator("state", in.state(), stage_state::failed);
  out.tasks = in.tasks();
  out.pending = in.pending();
  out.running = in.running();
  out.done = in.done();
  out.reason = at.text("reason", in.reason());
  read_list(in.task_sets(), out.task_sets, at, "task_sets");
}

static void write(const explained_failure& in, pb::ExplainedFailure& out, const place& at) {
  out.set_stage(in.stage);
  out.set_is_loss(in.is_loss);
  out.set_partition(in.partition);
  out.set_attempt(in.attempt);
  out.set_executor(in.executor.value);
  out.set_host(at.name("host", in.host));
  out.set_why(at.text("why", in.why));
}

static void read(const pb::ExplainedFailure& in, explained_failure& out, const place& at) {
  out.stage = in.stage();
  out.is_loss = in.is_loss();
  out.partition = in.partition();
  out.attempt = in.attempt();
  out.executor.value = in.executor();
  out.host = at.name("host", in.host());
  out.why = at.text("why", in.why());
}

static void write(const job_explanation& in, pb::JobExplanation& out, const place& at) {
  out.set_job(in.job.value);
  out.set_name(at.name("name", in.name));
  out.set_state(static_cast<pb::JobState>(in.state));
  out.set_reason(at.text("reason", in.reason));
  write_list(in.stages, *out.mutable_stages(), at, "stages");
  write_list(in.failures, *out.mutable_failures(), at, "failures");
  out.set_failures_left_out(in.failures_left_out);
}

static void read(const pb::JobExplanation& in, job_explanation& out, const place& at) {
  out.job.value = in.job();
  out.name = at.name("name", in.name());
  out.state = at.enumerator("state", in.state(), job_state::cancelled);
  out.reason = at.text("reason", in.reason());
  read_list(in.stages(), out.stages, at, "stages");
  read_list(in.failures(), out.failures, at, "failures");
  out.failures_left_out = in.failures_left_out();
}

} // namespace troupe::wire

TROUPE_WIRE_FORM(explain_query, ExplainQuery)
TROUPE_WIRE_FORM(job_explanation, JobExplanation)
