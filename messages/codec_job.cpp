// Jobs on their way to the dag scheduler.

#include <troupe/messages/wire_parts.hpp>

namespace troupe::wire {

static void write(const stage_dependency& in, pb::StageDependency& out, const place&) {
  out.set_stage(in.stage);
  out.set_kind(static_cast<pb::DependencyKind>(in.kind));
}

static void read(const pb::StageDependency& in, stage_dependency& out, const place& at) {
  out.stage = in.stage();
  out.kind = at.enumerator("kind", in.kind(), dependency_kind::one_to_one);
}

static void write(const operation& in, pb::Operation& out, const place&) {
  out.set_function(in.function);
  out.set_arguments(in.arguments); // captures: as large as the message may be
}

static void read(const pb::Operation& in, operation& out, const place&) {
  out.function = in.function();
  out.arguments = in.arguments();
}

static void write(const native_program& in, pb::NativeProgram& out, const place& at) {
  out.set_build_id(at.name("build_id", in.build_id));
  write_list(in.operations, *out.mutable_operations(), at, "operations");
}

static void read(const pb::NativeProgram& in, native_program& out, const place& at) {
  out.build_id = at.name("build_id", in.build_id());
  read_list(in.operations(), out.operations, at, "operations");
}

static void write(const command_program& in, pb::CommandProgram& out, const place& at) {
  write_texts(in.words, *out.mutable_words(), at, "words");
  for (const auto& [name, value] : in.environment) {
    const place here{at, "environment"};
    auto& variable = *out.add_environment();
    variable.set_name(here.name("name", name));
    variable.set_value(here.text("value", value));
  }
  out.set_directory(at.text("directory", in.directory));
  out.set_output_directory(at.text("output_directory", in.output_directory));
}

static void read(const pb::CommandProgram& in, command_program& out, const place& at) {
  read_texts(in.words(), out.words, at, "words");
  if (!at.fits("environment", static_cast<std::size_t>(in.environment_size()))) return;
  for (const auto& variable : in.environment()) {
    const place here{at, "environment"};
    const auto fresh =
        out.environment.try_emplace(here.name("name", variable.name()), here.text("value", variable.value())).second;
    if (!fresh) here.fail("name", "repeats an earlier one");
  }
  out.directory = at.text("directory", in.directory());
  out.output_directory = at.text("output_directory", in.output_directory());
}

void write(const std::variant<native_program, command_program>& in, pb::Program& out, const place& at) {
  if (const auto* native = std::get_if<native_program>(&in))
    write(*native, *out.mutable_native(), place{at, "native"});
  else
    write(std::get<command_program>(in), *out.mutable_command(), place{at, "command"});
}

void read(const pb::Program& in, std::variant<native_program, command_program>& out, const place& at) {
  switch (in.kind_case()) {
  case pb::Program::kNative: return read(in.native(), out.emplace<native_program>(), place{at, "native"});
  case pb::Program::kCommand: return read(in.command(), out.emplace<command_program>(), place{at, "command"});
  case pb::Program::KIND_NOT_SET: break;
  }
  at.fail("is neither native nor a command");
}

/// On the wire 0 is never.
template <class Set>
static void write_timeout(duration timeout, Set set) {
  set(timeout == never ? 0 : timeout.count());
}
static duration read_timeout(std::int64_t nanoseconds) { return nanoseconds == 0 ? never : duration{nanoseconds}; }

static void write(const kept_dataset& in, pb::KeptDataset& out, const place& at) {
  write(in.id, *out.mutable_id(), place{at, "id"});
  out.set_level(static_cast<std::uint32_t>(in.level));
}

static void read(const pb::KeptDataset& in, kept_dataset& out, const place& at) {
  read(in.id(), out.id, place{at, "id"});
  out.level = read_level(in.level(), at);
}

static void write(const stage_spec& in, pb::StageSpec& out, const place& at) {
  out.set_name(at.name("name", in.name));
  out.set_profile(in.profile);
  out.set_tasks(in.tasks);
  out.set_buckets(in.buckets);
  write_list(in.dependencies, *out.mutable_dependencies(), at, "dependencies");
  write(in.program, *out.mutable_program(), place{at, "program"});
  if (in.arguments && !in.arguments->empty()) {
    at.column("arguments", in.arguments->size(), in.tasks);
    write(*in.arguments, *out.mutable_arguments(), place{at, "arguments"});
  }
  if (in.locations) write(*in.locations, *out.mutable_locations(), place{at, "locations"});
  out.set_keep_results(in.keep_results);
  write_list(in.carried, *out.mutable_carried(), at, "carried");
  write_timeout(in.timeout, [&](std::int64_t t) { out.set_timeout(t); });
  write_timeout(in.task_timeout, [&](std::int64_t t) { out.set_task_timeout(t); });
  out.set_barrier(in.barrier);
  write_timeout(in.sync_timeout, [&](std::int64_t t) { out.set_sync_timeout(t); });
  write_list(in.cut_from, *out.mutable_cut_from(), at, "cut_from");
  out.set_indeterminate(in.indeterminate);
  if (in.keeps) write(*in.keeps, *out.mutable_keeps(), place{at, "keeps"});
}

static void read(const pb::StageSpec& in, stage_spec& out, const place& at) {
  out.name = at.name("name", in.name());
  out.profile = in.profile();
  out.tasks = in.tasks();
  out.buckets = in.buckets();
  read_list(in.dependencies(), out.dependencies, at, "dependencies");
  read(in.program(), out.program, place{at, "program"});
  if (in.has_arguments()) {
    auto column = std::make_shared<packed_column>();
    read(in.arguments(), *column, place{at, "arguments"});
    at.column("arguments", column->size(), out.tasks);
    if (!column->empty()) out.arguments = std::move(column);
  }
  if (in.has_locations()) {
    auto column = std::make_shared<packed_column>();
    read(in.locations(), *column, place{at, "locations"});
    out.locations = std::move(column);
  }
  out.keep_results = in.keep_results();
  read_list(in.carried(), out.carried, at, "carried");
  out.timeout = read_timeout(at.amount("timeout", in.timeout()));
  out.task_timeout = read_timeout(at.amount("task_timeout", in.task_timeout()));
  out.barrier = in.barrier();
  out.sync_timeout = read_timeout(at.amount("sync_timeout", in.sync_timeout()));
  read_list(in.cut_from(), out.cut_from, at, "cut_from");
  out.indeterminate = in.indeterminate();
  if (in.has_keeps()) read(in.keeps(), out.keeps.emplace(), place{at, "keeps"});
}

static void write(const job_spec& in, pb::JobSpec& out, const place& at) {
  out.set_name(at.name("name", in.name));
  write_list(in.profiles, *out.mutable_profiles(), at, "profiles");
  write_list(in.stages, *out.mutable_stages(), at, "stages");
  out.set_max_task_failures(in.max_task_failures);
  out.set_pool(at.name("pool", in.pool));
  out.set_on_profile_change(static_cast<pb::ProfileChange>(in.on_profile_change));
  out.set_group(at.name("group", in.group));
}

static void read(const pb::JobSpec& in, job_spec& out, const place& at) {
  out.name = at.name("name", in.name());
  read_list(in.profiles(), out.profiles, at, "profiles");
  read_list(in.stages(), out.stages, at, "stages");
  out.max_task_failures = in.max_task_failures();
  out.pool = at.name("pool", in.pool());
  out.on_profile_change = at.enumerator("on_profile_change", in.on_profile_change(), profile_change::by_matching);
  out.group = at.name("group", in.group());
}

static void write(const job_submission& in, pb::JobSubmission& out, const place& at) {
  if (!in.job) return at.fail("job", "is missing");
  at.column("profiles", in.profiles.size(), in.job->profiles.size());
  write(*in.job, *out.mutable_job(), place{at, "job"});
  write_list(in.profiles, *out.mutable_profiles(), at, "profiles");
}

static void read(const pb::JobSubmission& in, job_submission& out, const place& at) {
  if (!in.has_job()) return at.fail("job", "is missing");
  auto job = std::make_shared<job_spec>();
  read(in.job(), *job, place{at, "job"});
  read_list(in.profiles(), out.profiles, at, "profiles");
  at.column("profiles", out.profiles.size(), job->profiles.size());
  out.job = std::move(job);
}

static void write(const job_accepted& in, pb::JobAccepted& out, const place&) { out.set_job(in.job.value); }

static void read(const pb::JobAccepted& in, job_accepted& out, const place&) { out.job.value = in.job(); }

static void write(const cancel_job& in, pb::CancelJob& out, const place& at) {
  out.set_job(in.job.value);
  out.set_reason(at.text("reason", in.reason));
}

static void read(const pb::CancelJob& in, cancel_job& out, const place& at) {
  out.job.value = in.job();
  out.reason = at.text("reason", in.reason());
}

static void write(const cancel_stage& in, pb::CancelStage& out, const place& at) {
  out.set_job(in.job.value);
  out.set_stage(in.stage);
  out.set_reason(at.text("reason", in.reason));
}

static void read(const pb::CancelStage& in, cancel_stage& out, const place& at) {
  out.job.value = in.job();
  out.stage = in.stage();
  out.reason = at.text("reason", in.reason());
}

static void write(const cancel_group& in, pb::CancelGroup& out, const place& at) {
  out.set_group(at.name("group", in.group));
  out.set_reason(at.text("reason", in.reason));
}

static void read(const pb::CancelGroup& in, cancel_group& out, const place& at) {
  out.group = at.name("group", in.group());
  out.reason = at.text("reason", in.reason());
}

static void write(const cancelled_jobs& in, pb::CancelledJobs& out, const place&) {
  for (const auto job : in.jobs) out.add_jobs(job.value);
}

static void read(const pb::CancelledJobs& in, cancelled_jobs& out, const place& at) {
  if (!at.fits("jobs", static_cast<std::size_t>(in.jobs_size()))) return;
  for (const auto job : in.jobs()) out.jobs.push_back(job_id{job});
}

} // namespace troupe::wire

TROUPE_WIRE_FORM(job_submission, JobSubmission)
TROUPE_WIRE_FORM(job_accepted, JobAccepted)
TROUPE_WIRE_FORM(cancel_job, CancelJob)
TROUPE_WIRE_FORM(cancel_stage, CancelStage)
TROUPE_WIRE_FORM(cancel_group, CancelGroup)
TROUPE_WIRE_FORM(cancelled_jobs, CancelledJobs)
