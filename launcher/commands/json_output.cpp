#include <troupe/launcher/commands/json_output.hpp>

#include <iostream>

namespace troupe::commands {

json_value json_of(const job_progress& job) {
  json_value out = {{"job", job.job.value}, {"name", job.name}, {"state", to_string(job.state)}};
  if (!job.group.empty()) out["group"] = job.group;
  out["wall-nanoseconds"] = job.wall_nanoseconds;
  if (!job.waiting_for.empty()) out["waiting-for"] = job.waiting_for;
  if (!job.counted.empty()) {
    auto& counted = out["accumulators"] = json_value::object();
    for (const auto& [name, amount] : job.counted) counted[name] = amount;
  }
  out["stages"] = json_value::array();
  // Numbered as in messages about them: from 0 within the job.
  for (const auto& s : job.stages)
    out["stages"].push_back({{"stage", out["stages"].size()},
                             {"name", s.name},
                             {"profile", s.profile},
                             {"state", to_string(s.state)},
                             {"attempt", s.attempt},
                             {"tasks", s.tasks},
                             {"running", s.running},
                             {"done", s.done},
                             {"failed-attempts", s.failures},
                             {"executors", s.executors},
                             {"wall-nanoseconds", s.wall_nanoseconds},
                             {"run-nanoseconds", s.run_nanoseconds},
                             {"cpu-nanoseconds", s.cpu_nanoseconds},
                             {"peak-memory", s.peak_memory},
                             {"output-bytes", s.output_bytes},
                             {"left-file", s.left}});
  return out;
}

json_value json_of(const executor_status& executor) {
  const auto& info = executor.info;
  json_value resources = json_value::object();
  for (const auto& [name, pool] : info.capacity.custom)
    resources[name] = {{"amount", pool.amount}, {"addresses", pool.addresses}, {"counted", pool.counted}};
  return {{"executor", info.executor.value},
          {"state", executor.state},
          {"host", info.host},
          {"pid", info.pid},
          {"profile", to_string(info.profile)},
          {"cores", info.capacity.cores},
          {"memory", info.capacity.memory},
          {"resources", resources},
          {"slots", info.slots},
          {"native", info.native},
          {"running", executor.running},
          {"tasks-done", executor.tasks_done},
          {"block-bytes", executor.block_bytes},
          {"log-file", info.log_file}};
}

json_value json_of(const session_record& session) {
  return {{"name", session.name},
          {"address", session.address},
          {"cluster", session.cluster_id},
          {"session", session.session_id},
          {"pid", session.pid},
          {"secret-file", session.secret_file},
          {"config-file", session.config_file},
          {"directory", session.directory}};
}

json_value json_of(const error& why) { return {{"kind", to_string(why.code)}, {"message", why.message}}; }

void print_json(const json_value& document) {
  std::cout << document.dump(2, ' ', false, json_value::error_handler_t::replace) << '\n';
}

} // namespace troupe::commands
