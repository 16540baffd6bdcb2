// The history of a session.

#include <troupe/messages/wire_parts.hpp>

#include "troupe/messages/events.pb.h"

namespace troupe::wire {

// -- one pair for each kind of event, and for where it stands in the record
// --------------------------------------------

static void write(const events::profile_added& in, pb::EventRecord& record, const place& at) {
  auto& out = *record.mutable_profile_added();
  out.set_profile(in.profile.value);
  write(in.content, *out.mutable_content(), place{at, "content"});
}

static void read(const pb::ProfileAdded& in, events::profile_added& out, const place& at) {
  out.profile.value = in.profile();
  read(in.content(), out.content, place{at, "content"});
}

static void write(const events::job_submitted& in, pb::EventRecord& record, const place& at) {
  auto& out = *record.mutable_job_submitted();
  out.set_job(in.job.value);
  out.set_name(at.name("name", in.name));
  out.set_stages(in.stages);
  out.set_first_stage(in.first_stage.value);
}

static void read(const pb::JobSubmitted& in, events::job_submitted& out, const place& at) {
  out.job.value = in.job();
  out.name = at.name("name", in.name());
  out.stages = in.stages();
  out.first_stage.value = in.first_stage();
}

static void write(const events::job_ended& in, pb::EventRecord& record, const place& at) {
  auto& out = *record.mutable_job_ended();
  out.set_job(in.job.value);
  out.set_state(static_cast<pb::JobState>(in.state));
  write(in.failure, *out.mutable_failure(), place{at, "failure"});
}

static void read(const pb::JobEnded& in, events::job_ended& out, const place& at) {
  out.job.value = in.job();
  out.state = at.enumerator("state", in.state(), job_state::cancelled);
  read(in.failure(), out.failure, place{at, "failure"});
}

static void write(const events::stage_submitted& in, pb::EventRecord& record, const place& at) {
  auto& out = *record.mutable_stage_submitted();
  out.set_job(in.job.value);
  out.set_stage(in.stage.value);
  out.set_attempt(in.attempt);
  out.set_name(at.name("name", in.name));
  out.set_profile(in.profile.value);
  out.set_tasks(in.tasks);
}

static void read(const pb::StageSubmitted& in, events::stage_submitted& out, const place& at) {
  out.job.value = in.job();
  out.stage.value = in.stage();
  out.attempt = in.attempt();
  out.name = at.name("name", in.name());
  out.profile.value = in.profile();
  out.tasks = in.tasks();
}

static void write(const events::stage_completed& in, pb::EventRecord& record, const place& at) {
  auto& out = *record.mutable_stage_completed();
  out.set_job(in.job.value);
  out.set_stage(in.stage.value);
  out.set_attempt(in.attempt);
  write(in.failure, *out.mutable_failure(), place{at, "failure"});
  out.set_name(at.name("name", in.name));
  out.set_profile(in.profile.value);
  out.set_tasks(in.tasks);
  out.set_nanoseconds(in.nanoseconds);
}

static void read(const pb::StageCompleted& in, events::stage_completed& out, const place& at) {
  out.job.value = in.job();
  out.stage.value = in.stage();
  out.attempt = in.attempt();
  read(in.failure(), out.failure, place{at, "failure"});
  out.name = at.name("name", in.name());
  out.profile.value = in.profile();
  out.tasks = in.tasks();
  out.nanoseconds = in.nanoseconds();
}

static void write(const events::lease_granted& in, pb::EventRecord& record, const place& at) {
  auto& out = *record.mutable_lease_granted();
  out.set_lease(in.lease.value);
  out.set_executor(in.executor.value);
  out.set_profile(in.profile.value);
  write(in.holding, *out.mutable_holding(), place{at, "holding"});
}

static void read(const pb::LeaseGranted& in, events::lease_granted& out, const place& at) {
  out.lease.value = in.lease();
  out.executor.value = in.executor();
  out.profile.value = in.profile();
  read(in.holding(), out.holding, place{at, "holding"});
}

static void write(const events::lease_released& in, pb::EventRecord& record, const place&) {
  auto& out = *record.mutable_lease_released();
  out.set_lease(in.lease.value);
  out.set_executor(in.executor.value);
}

static void read(const pb::LeaseReleased& in, events::lease_released& out, const place&) {
  out.lease.value = in.lease();
  out.executor.value = in.executor();
}

static void write(const events::lease_refused& in, pb::EventRecord& record, const place& at) {
  auto& out = *record.mutable_lease_refused();
  out.set_lease(in.lease.value);
  out.set_executor(in.executor.value);
  out.set_reason(at.text("reason", in.reason));
}

static void read(const pb::LeaseRefused& in, events::lease_refused& out, const place& at) {
  out.lease.value = in.lease();
  out.executor.value = in.executor();
  out.reason = at.text("reason", in.reason());
}

static void write(const events::tasks_succeeded& in, pb::EventRecord& record, const place&) {
  auto& out = *record.mutable_tasks_succeeded();
  out.set_stage(in.stage.value);
  out.set_lease(in.lease.value);
  out.set_executor(in.executor.value);
  out.set_count(in.count);
  out.set_first(in.first);
}

static void read(const pb::TasksSucceeded& in, events::tasks_succeeded& out, const place&) {
  out.stage.value = in.stage();
  out.lease.value = in.lease();
  out.executor.value = in.executor();
  out.count = in.count();
  out.first = in.first();
}

static void write(const events::task_failed& in, pb::EventRecord& record, const place& at) {
  auto& out = *record.mutable_task_failed();
  write_attempt(in.stage, in.partition, in.attempt, *out.mutable_attempt());
  out.set_executor(in.executor.value);
  out.set_status(static_cast<std::uint32_t>(in.status));
  out.set_cause(static_cast<std::uint32_t>(in.cause));
  out.set_message(at.text("message", in.message));
}

static void read(const pb::TaskFailed& in, events::task_failed& out, const place& at) {
  read_attempt(in.attempt(), {out.stage, out.partition, out.attempt});
  out.executor.value = in.executor();
  out.status = at.enumerator("status", in.status(), task_status::given_back);
  out.cause = at.enumerator("cause", in.cause(), failure_cause::certain);
  out.message = at.text("message", in.message());
}

static void write(const events::attempt_overdue& in, pb::EventRecord& record, const place& at) {
  auto& out = *record.mutable_attempt_overdue();
  out.set_job(in.job.value);
  write_attempt(in.stage, in.partition, in.attempt, *out.mutable_attempt());
  out.set_executor(in.executor.value);
  out.set_replaced(in.replaced);
  out.set_message(at.text("message", in.message));
}

static void read(const pb::AttemptOverdue& in, events::attempt_overdue& out, const place& at) {
  out.job.value = in.job();
  read_attempt(in.attempt(), {out.stage, out.partition, out.attempt});
  out.executor.value = in.executor();
  out.replaced = in.replaced();
  out.message = at.text("message", in.message());
}

static void write(const events::task_escalated& in, pb::EventRecord& record, const place&) {
  auto& out = *record.mutable_task_escalated();
  write_attempt(in.stage, in.partition, in.attempt, *out.mutable_attempt());
  out.set_executor(in.executor.value);
  out.set_profile(in.profile.value);
}

static void read(const pb::TaskEscalated& in, events::task_escalated& out, const place&) {
  read_attempt(in.attempt(), {out.stage, out.partition, out.attempt});
  out.executor.value = in.executor();
  out.profile.value = in.profile();
}

static void write(const events::speculative_task_submitted& in, pb::EventRecord& record, const place&) {
  auto& out = *record.mutable_speculative_task_submitted();
  write_attempt(in.stage, in.partition, in.attempt, *out.mutable_attempt());
  out.set_executor(in.executor.value);
  out.set_stage_attempt(in.stage_attempt);
}

static void read(const pb::SpeculativeTaskSubmitted& in, events::speculative_task_submitted& out, const place&) {
  read_attempt(in.attempt(), {out.stage, out.partition, out.attempt});
  out.executor.value = in.executor();
  out.stage_attempt = in.stage_attempt();
}

static void write(const events::executor_requested& in, pb::EventRecord& record, const place& at) {
  auto& out = *record.mutable_executor_requested();
  out.set_request(in.request.value);
  out.set_shape(in.shape.value);
  out.set_profile(at.text("profile", in.profile));
}

static void read(const pb::ExecutorRequested& in, events::executor_requested& out, const place& at) {
  out.request.value = in.request();
  out.shape.value = in.shape();
  out.profile = at.text("profile", in.profile());
}

static void write(const events::executor_added& in, pb::EventRecord& record, const place& at) {
  auto& out = *record.mutable_executor_added();
  write(in.info, *out.mutable_info(), place{at, "info"});
  if (in.profile) out.set_profile(in.profile->value);
}

static void read(const pb::ExecutorAdded& in, events::executor_added& out, const place& at) {
  read(in.info(), out.info, place{at, "info"});
  if (in.has_profile()) out.profile = profile_id{in.profile()};
}

static void write(const events::executor_removed& in, pb::EventRecord& record, const place& at) {
  auto& out = *record.mutable_executor_removed();
  out.set_executor(in.executor.value);
  out.set_cause(at.text("cause", in.cause));
  out.set_lost(in.lost);
  write(in.exit, *out.mutable_exit(), place{at, "exit"});
}

static void read(const pb::ExecutorRemoved& in, events::executor_removed& out, const place& at) {
  out.executor.value = in.executor();
  out.cause = at.text("cause", in.cause());
  out.lost = in.lost();
  read(in.exit(), out.exit, place{at, "exit"});
}

static void write(const events::map_output_lost& in, pb::EventRecord& record, const place&) {
  auto& out = *record.mutable_map_output_lost();
  out.set_stage(in.stage.value);
  out.set_partition(in.partition);
  out.set_executor(in.executor.value);
}

static void read(const pb::MapOutputLost& in, events::map_output_lost& out, const place&) {
  out.stage.value = in.stage();
  out.partition = in.partition();
  out.executor.value = in.executor();
}

static void write(const events::executor_excluded& in, pb::EventRecord& record, const place& at) {
  auto& out = *record.mutable_executor_excluded();
  out.set_executor(in.executor.value);
  out.set_host(at.name("host", in.host));
  out.set_profile(in.profile.value);
  out.set_failed_tasks(in.failed_tasks);
  out.set_nanoseconds(in.nanoseconds);
  out.set_failure(at.text("failure", in.failure));
}

static void read(const pb::ExecutorExcluded& in, events::executor_excluded& out, const place& at) {
  out.executor.value = in.executor();
  out.host = at.name("host", in.host());
  out.profile.value = in.profile();
  out.failed_tasks = in.failed_tasks();
  out.nanoseconds = in.nanoseconds();
  out.failure = at.text("failure", in.failure());
}

static void write(const events::executor_readmitted& in, pb::EventRecord& record, const place& at) {
  auto& out = *record.mutable_executor_readmitted();
  out.set_executor(in.executor.value);
  out.set_profile(in.profile.value);
  out.set_cause(at.text("cause", in.cause));
}

static void read(const pb::ExecutorReadmitted& in, events::executor_readmitted& out, const place& at) {
  out.executor.value = in.executor();
  out.profile.value = in.profile();
  out.cause = at.text("cause", in.cause());
}

static void write(const events::node_excluded& in, pb::EventRecord& record, const place& at) {
  auto& out = *record.mutable_node_excluded();
  out.set_host(at.name("host", in.host));
  out.set_profile(in.profile.value);
  out.set_excluded_executors(in.excluded_executors);
  out.set_nanoseconds(in.nanoseconds);
  out.set_failure(at.text("failure", in.failure));
}

static void read(const pb::NodeExcluded& in, events::node_excluded& out, const place& at) {
  out.host = at.name("host", in.host());
  out.profile.value = in.profile();
  out.excluded_executors = in.excluded_executors();
  out.nanoseconds = in.nanoseconds();
  out.failure = at.text("failure", in.failure());
}

static void write(const events::node_readmitted& in, pb::EventRecord& record, const place& at) {
  auto& out = *record.mutable_node_readmitted();
  out.set_host(at.name("host", in.host));
  out.set_profile(in.profile.value);
  out.set_cause(at.text("cause", in.cause));
}

static void read(const pb::NodeReadmitted& in, events::node_readmitted& out, const place& at) {
  out.host = at.name("host", in.host());
  out.profile.value = in.profile();
  out.cause = at.text("cause", in.cause());
}

static void write(const events::stage_unschedulable& in, pb::EventRecord& record, const place& at) {
  auto& out = *record.mutable_stage_unschedulable();
  out.set_job(in.job.value);
  out.set_stage(in.stage.value);
  out.set_profile(in.profile.value);
  out.set_reason(at.text("reason", in.reason));
  out.set_attempt(in.attempt);
}

static void read(const pb::StageUnschedulable& in, events::stage_unschedulable& out, const place& at) {
  out.job.value = in.job();
  out.stage.value = in.stage();
  out.profile.value = in.profile();
  out.reason = at.text("reason", in.reason());
  out.attempt = in.attempt();
}

static void write(const events::stage_restarted& in, pb::EventRecord& record, const place& at) {
  auto& out = *record.mutable_stage_restarted();
  out.set_job(in.job.value);
  out.set_stage(in.stage.value);
  out.set_attempt(in.attempt);
  out.set_reason(at.text("reason", in.reason));
  out.set_name(at.name("name", in.name));
  out.set_profile(in.profile.value);
  out.set_tasks(in.tasks);
  out.set_nanoseconds(in.nanoseconds);
}

static void read(const pb::StageRestarted& in, events::stage_restarted& out, const place& at) {
  out.job.value = in.job();
  out.stage.value = in.stage();
  out.attempt = in.attempt();
  out.reason = at.text("reason", in.reason());
  out.name = at.name("name", in.name());
  out.profile.value = in.profile();
  out.tasks = in.tasks();
  out.nanoseconds = in.nanoseconds();
}

// -- records
// -----------------------------------------------------------------------------------------------------------

static void write(const events::record& in, pb::EventRecord& out, const place& at) {
  out.set_number(in.number);
  out.set_unix_nanoseconds(in.unix_nanoseconds);
  std::visit([&](const auto& event) { write(event, out, place{at, events::name_of(in.content)}); }, in.content);
}

template <class Event, class Message>
static void read_content(const Message& in, events::any& out, const place& at) {
  auto& event = out.emplace<Event>();
  read(in, event, place{at, events::name_of(out)});
}

static void read(const pb::EventRecord& in, events::record& out, const place& at) {
  using namespace events;
  out.number = in.number();
  out.unix_nanoseconds = in.unix_nanoseconds();
  auto& to = out.content;
  switch (in.content_case()) {
  case pb::EventRecord::kProfileAdded: return read_content<profile_added>(in.profile_added(), to, at);
  case pb::EventRecord::kJobSubmitted: return read_content<job_submitted>(in.job_submitted(), to, at);
  case pb::EventRecord::kJobEnded: return read_content<job_ended>(in.job_ended(), to, at);
  case pb::EventRecord::kStageSubmitted: return read_content<stage_submitted>(in.stage_submitted(), to, at);
  case pb::EventRecord::kStageCompleted: return read_content<stage_completed>(in.stage_completed(), to, at);
  case pb::EventRecord::kLeaseGranted: return read_content<lease_granted>(in.lease_granted(), to, at);
  case pb::EventRecord::kLeaseReleased: return read_content<lease_released>(in.lease_released(), to, at);
  case pb::EventRecord::kLeaseRefused: return read_content<lease_refused>(in.lease_refused(), to, at);
  case pb::EventRecord::kTasksSucceeded: return read_content<tasks_succeeded>(in.tasks_succeeded(), to, at);
  case pb::EventRecord::kTaskFailed: return read_content<task_failed>(in.task_failed(), to, at);
  case pb::EventRecord::kExecutorRequested: return read_content<executor_requested>(in.executor_requested(), to, at);
  case pb::EventRecord::kExecutorAdded: return read_content<executor_added>(in.executor_added(), to, at);
  case pb::EventRecord::kExecutorRemoved: return read_content<executor_removed>(in.executor_removed(), to, at);
  case pb::EventRecord::kMapOutputLost: return read_content<map_output_lost>(in.map_output_lost(), to, at);
  case pb::EventRecord::kAttemptOverdue: return read_content<attempt_overdue>(in.attempt_overdue(), to, at);
  case pb::EventRecord::kTaskEscalated: return read_content<task_escalated>(in.task_escalated(), to, at);
  case pb::EventRecord::kSpeculativeTaskSubmitted:
    return read_content<speculative_task_submitted>(in.speculative_task_submitted(), to, at);
  case pb::EventRecord::kExecutorExcluded: return read_content<executor_excluded>(in.executor_excluded(), to, at);
  case pb::EventRecord::kExecutorReadmitted: return read_content<executor_readmitted>(in.executor_readmitted(), to, at);
  case pb::EventRecord::kNodeExcluded: return read_content<node_excluded>(in.node_excluded(), to, at);
  case pb::EventRecord::kNodeReadmitted: return read_content<node_readmitted>(in.node_readmitted(), to, at);
  case pb::EventRecord::kStageUnschedulable: return read_content<stage_unschedulable>(in.stage_unschedulable(), to, at);
  case pb::EventRecord::kStageRestarted: return read_content<stage_restarted>(in.stage_restarted(), to, at);
  case pb::EventRecord::CONTENT_NOT_SET: break;
  }
  at.fail("content", "is missing");
}

static void write(const event_batch& in, pb::EventBatch& out, const place& at) {
  write_list(in.records, *out.mutable_records(), at, "records");
  out.set_skipped(in.skipped);
}

static void read(const pb::EventBatch& in, event_batch& out, const place& at) {
  read_list(in.records(), out.records, at, "records");
  out.skipped = in.skipped();
}

static void write(const subscribe_events& in, pb::SubscribeEvents& out, const place&) {
  out.set_from(in.from);
  out.set_credit(in.credit);
}

static void read(const pb::SubscribeEvents& in, subscribe_events& out, const place&) {
  out.from = in.from();
  out.credit = in.credit();
}

static void write(const subscription_cut_off& in, pb::SubscriptionCutOff& out, const place&) { out.set_last(in.last); }

static void read(const pb::SubscriptionCutOff& in, subscription_cut_off& out, const place&) { out.last = in.last(); }

} // namespace troupe::wire

TROUPE_WIRE_FORM(event_batch, EventBatch)
TROUPE_WIRE_FORM(subscribe_events, SubscribeEvents)
TROUPE_WIRE_FORM(subscription_cut_off, SubscriptionCutOff)
