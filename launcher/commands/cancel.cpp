#include <algorithm>
#include <iostream>

#include <troupe/launcher/commands/cluster_choice.hpp>
#include <troupe/launcher/commands/json_output.hpp>
#include <troupe/launcher/text_table.hpp>

namespace troupe::commands {
namespace {

constexpr const char* asked = "asked for by `troupe cancel`";

bool is_open(const job_progress& job) { return job.state == job_state::accepted || job.state == job_state::running; }

int cancel_group(application& app, const cluster_flags& flags, const std::string& group) {
  const auto ended = app.jobs()->cancel_group(group, asked);
  if (!ended) return complain(ended.error(), flags.json);
  if (flags.json) {
    auto jobs = nlohmann::ordered_json::array();
    for (const auto job : *ended) jobs.push_back(job.value);
    print_json({{"group", group}, {"cancelled", jobs}});
    return 0;
  }
  for (const auto job : *ended) std::cout << "job " << job.value << " is cancelled\n";
  if (ended->empty()) std::cout << "all jobs of group " << printable(group) << " had ended already\n";
  return 0;
}

int cancel_job(application& app, const cluster_flags& flags, const job_progress& job) {
  const bool open = is_open(job);
  if (open)
    if (const auto ended = app.jobs()->cancel(job.job, "cancelled by `troupe cancel`"); !ended)
      return complain(ended.error(), flags.json);
  if (flags.json)
    print_json({{"job", job.job.value}, {"cancelled", open}});
  else if (open)
    std::cout << "job " << job.job.value << " is cancelled\n";
  else
    std::cout << "job " << job.job.value << " had ended already: " << to_string(job.state) << '\n';
  return 0;
}

int cancel_stage(application& app, const cluster_flags& flags, const job_progress& job, std::uint32_t index) {
  // Asked also where there is nothing to do: the driver knows which stages there are.
  if (const auto ended = app.jobs()->cancel_stage(job.job, index, asked); !ended)
    return complain(ended.error(), flags.json);
  const auto& stage = job.stages.at(index);
  const bool open = is_open(job) && stage.state != stage_state::complete;
  if (flags.json)
    print_json({{"job", job.job.value}, {"stage", index}, {"cancelled", open}});
  else if (open)
    std::cout << "stage " << index << " (" << printable(stage.name) << ") is cancelled, so job " << job.job.value
              << " has failed\n";
  else if (is_open(job))
    std::cout << "stage " << index << " (" << printable(stage.name) << ") was complete already\n";
  else
    std::cout << "job " << job.job.value << " had ended already: " << to_string(job.state) << '\n';
  return 0;
}

} // namespace

int cancel(const cluster_flags& flags, const cancel_flags& what) {
  const auto job = what.job.empty() ? result<job_id>{job_id{}} : parse_job(what.job);
  if (!job) return complain(job.error(), flags.json);
  const auto stage = what.stage.empty() ? std::optional<std::uint64_t>{0} : parse_number(what.stage);
  if (!stage || *stage > max_tasks_per_stage)
    return complain(make_error(ec::invalid_argument, "'" + printable(what.stage) +
                                                         "' is no stage: messages and `troupe jobs --json` number the "
                                                         "stages of a job from 0"),
                    flags.json);
  const auto cluster = choose_cluster(flags);
  if (!cluster) return complain(cluster.error(), flags.json);
  const auto app = connect_to(*cluster, "cancel");
  if (!app) return complain(app.error(), flags.json);
  if (!what.group.empty()) return cancel_group(**app, flags, what.group);
  const auto status = (*app)->jobs()->status();
  if (!status) return complain(status.error(), flags.json);
  const auto known = find_job(*status, *job);
  if (!known) return complain(known.error(), flags.json);
  if (what.stage.empty()) return cancel_job(**app, flags, **known);
  return cancel_stage(**app, flags, **known, static_cast<std::uint32_t>(*stage));
}

} // namespace troupe::commands
