#include <troupe/runtime/api/job.hpp>

#include <algorithm>
#include <iterator>

namespace troupe {

std::pair<job_spec, std::vector<std::shared_ptr<const void>>>
job::build(const compile_options& options, std::optional<std::uint32_t> keep,
           const detail::publish_function& publish) const {
  std::pair<job_spec, std::vector<std::shared_ptr<const void>>> built;
  auto& [spec, held] = built;
  spec.name = name_;
  spec.max_task_failures = options.max_task_failures;
  spec.pool = options.pool;
  spec.profiles.emplace_back();
  for (const auto& drafted : *draft_) {
    auto stage = drafted.spec;
    auto encoded = drafted.captures(publish);
    std::move(encoded.held.begin(), encoded.held.end(), std::back_inserter(held));
    stage.profile = add_profile(spec, drafted.profile);
    stage.program = native_program{options.build_id, {{drafted.task, std::move(encoded.bytes)}}};
    stage.keep_results = keep == spec.stages.size();
    stage.timeout = options.stage_timeout;
    stage.task_timeout = options.task_timeout;
    if (stage.barrier) stage.sync_timeout = options.sync_timeout;
    spec.stages.push_back(std::move(stage));
  }
  return built;
}

} // namespace troupe
