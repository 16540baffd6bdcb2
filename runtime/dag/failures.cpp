// Failures of attempts: each is published as an event, and noted for who asks for its job later.

#include <utility>

#include <troupe/runtime/dag/dag_scheduler.hpp>

namespace troupe {

void dag_scheduler::tell_failure(stage_run& stage, events::task_failed what, std::string why, effects::list& out) {
  if (what.status != task_status::killed) {
    const auto e = pool_.find(what.executor);
    find_job(stage.job)->failures.add({stage.index, false, what.partition, what.attempt, what.executor,
                                       e == no_executor ? std::string{} : pool_[e].info.host, std::move(why)});
  }
  out.push_back(effects::publish{std::move(what)});
}

void dag_scheduler::keep_printed(const job_run& job, const stage_run& stage, partition_index partition,
                                 attempt_number attempt, effects::list& out) {
  if (const auto* command = std::get_if<command_program>(&*stage.program))
    out.push_back(effects::keep_printed{job.id, stage.id, partition, attempt, command->output_directory});
}

job_explanation dag_scheduler::explain_ended(job_id id, const ended_job& job) {
  const auto& p = job.progress;
  job_explanation all{id, p.name, p.state, job.failure.message, {}, job.failures.all(), job.failures.left_out()};
  for (const auto& s : p.stages)
    all.stages.push_back({s.stage,
                          static_cast<std::uint32_t>(all.stages.size()),
                          s.name,
                          s.state,
                          s.tasks,
                          s.tasks - s.done,
                          0,
                          s.done,
                          {},
                          {}});
  return all;
}

} // namespace troupe
