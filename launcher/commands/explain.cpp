// Why a job waits, and what has failed in it.

#include <iostream>
#include <string>

#include <troupe/launcher/commands/cluster_choice.hpp>
#include <troupe/launcher/commands/json_output.hpp>
#include <troupe/launcher/text_table.hpp>

namespace troupe::commands {
namespace {

json_value json_of(const explained_choice& c) {
  json_value out = {{"profile", c.profile.value},
                    {"content", c.content},
                    {"asked-for", c.asked_for},
                    {"executors", c.executors},
                    {"fit", c.fit},
                    {"slots", c.slots},
                    {"free-slots", c.free_slots},
                    {"clauses", json_value::array()},
                    {"hindrances", json_value::array()},
                    {"slots-taken-by", json_value::array()}};
  for (const auto& clause : c.clauses)
    out["clauses"].push_back({{"clause", clause.clause}, {"satisfied-by", clause.satisfied_by}});
  for (const auto& h : c.hindrances) {
    json_value entry = {{"state", to_string(h.what)}, {"executors", h.executors}};
    if (!h.detail.empty()) entry["detail"] = h.detail;
    out["hindrances"].push_back(std::move(entry));
  }
  for (const auto& h : c.holders) {
    json_value entry = {{"slots", h.leases}};
    if (h.job) entry.update({{"job", h.job.value}, {"stage", h.stage}, {"name", h.name}});
    out["slots-taken-by"].push_back(std::move(entry));
  }
  if (c.nearest)
    out["nearest"] = {{"executor", c.nearest->executor.value}, {"host", c.nearest->host}, {"lacks", c.nearest->lacks}};
  if (!c.allocation.empty()) out["allocator"] = c.allocation;
  if (!c.edit.empty()) out["would-help"] = c.edit;
  return out;
}

json_value json_of(const explained_task_set& t) {
  json_value out = {
      {"pending", t.pending}, {"reason", t.reason}, {"waits", json_value::array()}, {"choices", json_value::array()}};
  if (!t.conditions.empty()) out["conditions"] = t.conditions;
  for (const auto& w : t.waits) {
    json_value entry = {{"what", w.what}, {"key", w.key}};
    if (w.nanoseconds >= 0) entry["nanoseconds-left"] = w.nanoseconds;
    out["waits"].push_back(std::move(entry));
  }
  for (const auto& c : t.choices) out["choices"].push_back(json_of(c));
  return out;
}

json_value json_of(const job_explanation& all) {
  json_value out = {{"job", all.job.value}, {"name", all.name}, {"state", to_string(all.state)}};
  if (!all.reason.empty()) out["reason"] = all.reason;
  out["stages"] = json_value::array();
  for (const auto& s : all.stages) {
    json_value stage = {{"stage", s.index}, {"name", s.name},       {"state", to_string(s.state)},
                        {"tasks", s.tasks}, {"pending", s.pending}, {"running", s.running},
                        {"done", s.done}};
    if (!s.reason.empty()) stage["reason"] = s.reason;
    stage["task-sets"] = json_value::array();
    for (const auto& t : s.task_sets) stage["task-sets"].push_back(json_of(t));
    out["stages"].push_back(std::move(stage));
  }
  out["failures"] = json_value::array();
  for (const auto& f : all.failures) {
    json_value failure = json_value::object();
    if (!f.is_loss) failure = {{"stage", f.stage}, {"partition", f.partition}, {"attempt", f.attempt}};
    failure["executor"] = f.executor.value;
    if (!f.host.empty()) failure["host"] = f.host;
    failure[f.is_loss ? "lost" : "failed"] = f.why;
    out["failures"].push_back(std::move(failure));
  }
  if (all.failures_left_out > 0) out["failures-left-out"] = all.failures_left_out;
  return out;
}

/// Line by line, since the texts may hold any bytes.
void print(const std::string& text) {
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = text.find('\n', begin);
    std::cout << printable(text.substr(begin, end - begin), true) << '\n';
    begin = end == text.npos ? text.size() : end + 1;
  }
}

} // namespace

int explain(const cluster_flags& flags, const std::string& job_text, const std::string& stage_text) {
  const auto job = parse_job(job_text);
  if (!job) return complain(job.error(), flags.json);
  const auto stage = stage_text.empty() ? std::optional<std::uint64_t>{0} : parse_number(stage_text);
  if (!stage)
    return complain(make_error(ec::invalid_argument,
                               "'" + printable(stage_text) + "' is no stage: the stages of a job are numbered from 0"),
                    flags.json);
  const auto cluster = choose_cluster_of_job(flags);
  if (!cluster) return complain(cluster.error(), flags.json);
  const auto app = connect_to(*cluster, "explain");
  if (!app) return complain(app.error(), flags.json);
  auto answer = (*app)->jobs()->explain(*job);
  if (!answer && answer.error().code == ec::not_found)
    return complain(make_error(ec::not_found, answer.error().message + ": `troupe jobs` lists those that are known"),
                    flags.json);
  if (!answer) return complain(answer.error(), flags.json);
  if (!stage_text.empty() && !answer->stages.empty()) {
    if (*stage >= answer->stages.size())
      return complain(make_error(ec::not_found, "job " + std::to_string(job->value) + " has no stage " + stage_text +
                                                    ": its stages have the numbers 0 to " +
                                                    std::to_string(answer->stages.size() - 1)),
                      flags.json);
    answer->stages = {answer->stages[*stage]};
    std::erase_if(answer->failures, [&](const auto& f) { return !f.is_loss && f.stage != *stage; });
  }
  if (flags.json)
    print_json(json_of(*answer));
  else
    print(to_text(*answer));
  return 0;
}

} // namespace troupe::commands
