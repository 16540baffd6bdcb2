#include <troupe/runtime/api/job.hpp>

#include <algorithm>

namespace troupe {

job_spec job::build(const compile_options& options, std::optional<std::uint32_t> keep) const {
  job_spec spec;
  spec.name = name_;
  spec.max_task_failures = options.max_task_failures;
  spec.pool = options.pool;
  spec.profiles.emplace_back();
  for (const auto& drafted : *draft_) {
    auto stage = drafted.spec;
    stage.profile = add_profile(spec, drafted.profile);
    stage.program = native_program{options.build_id, {drafted.task}};
    stage.keep_results = keep == spec.stages.size();
    stage.timeout = options.stage_timeout;
    stage.task_timeout = options.task_timeout;
    if (stage.barrier) stage.sync_timeout = options.sync_timeout;
    spec.stages.push_back(std::move(stage));
  }
  return spec;
}

} // namespace troupe
