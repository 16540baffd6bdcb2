#include <algorithm>
#include <charconv>
#include <iostream>

#include <troupe/launcher/commands/cluster_choice.hpp>
#include <troupe/launcher/commands/json_output.hpp>
#include <troupe/launcher/text_table.hpp>

namespace troupe::commands {
namespace {

using side = text_table::side;

struct connected {
  chosen_cluster cluster;
  std::unique_ptr<application> app;
  troupe::cluster_status status;
};

result<connected> look(const cluster_flags& flags, const std::string& name) {
  auto cluster = choose_cluster(flags);
  if (!cluster) return cluster.error();
  auto app = connect_to(*cluster, name);
  if (!app) return app.error();
  auto status = (*app)->jobs()->status();
  if (!status) return status.error();
  return connected{std::move(*cluster), std::move(*app), std::move(*status)};
}

std::string custom_resources(const executor_info& info) {
  std::string out;
  for (const auto& [name, pool] : info.capacity.custom) {
    out += (out.empty() ? "" : " ") + printable(name) + "=";
    if (pool.addresses.empty()) out += amount_to_string(pool.amount, pool.counted);
    for (std::size_t i = 0; i < pool.addresses.size(); ++i) out += (i > 0 ? "," : "") + printable(pool.addresses[i]);
  }
  return out;
}

void print_executors(const troupe::cluster_status& status) {
  text_table table{{{"EXECUTOR", side::right},
                    {"STATE"},
                    {"HOST"},
                    {"PID", side::right},
                    {"CORES", side::right},
                    {"MEMORY", side::right},
                    {"RESOURCES"},
                    {"SLOTS", side::right},
                    {"RUNNING", side::right},
                    {"DONE", side::right}}};
  for (const auto& e : status.executors)
    table.add({std::to_string(e.info.executor.value), e.state, printable(e.info.host), std::to_string(e.info.pid),
               std::to_string(e.info.capacity.cores), memory_to_string(e.info.capacity.memory),
               custom_resources(e.info), std::to_string(e.info.slots), std::to_string(e.running),
               std::to_string(e.tasks_done)});
  std::cout << table.text();
}

void print_jobs(const troupe::cluster_status& status) {
  std::vector<text_table::column> columns{{"JOB", side::right},     {"STATE"},
                                          {"STAGES", side::right},  {"TASKS", side::right},
                                          {"RUNNING", side::right}, {"FAILED", side::right},
                                          {"TIME", side::right},    {"NAME"}};
  const bool groups =
      std::any_of(status.jobs.begin(), status.jobs.end(), [](const job_progress& job) { return !job.group.empty(); });
  if (groups) columns.push_back({"GROUP"});
  text_table table{std::move(columns)};
  for (const auto& job : status.jobs) {
    std::uint64_t tasks = 0, done = 0, running = 0, failures = 0, complete = 0;
    for (const auto& s : job.stages) {
      tasks += s.tasks;
      done += s.done;
      running += s.running;
      failures += s.failures;
      complete += s.state == stage_state::complete;
    }
    std::vector<std::string> row{std::to_string(job.job.value),
                                 std::string{to_string(job.state)},
                                 std::to_string(complete) + "/" + std::to_string(job.stages.size()),
                                 std::to_string(done) + "/" + std::to_string(tasks),
                                 std::to_string(running),
                                 std::to_string(failures),
                                 time_for_people(job.wall_nanoseconds),
                                 printable(job.name)};
    if (groups) row.push_back(printable(job.group));
    table.add(std::move(row));
  }
  std::cout << table.text();
}

} // namespace

int cluster_status(const cluster_flags& flags) {
  const auto at = look(flags, "status");
  if (!at) return complain(at.error(), flags.json);
  const auto& status = at->status;
  const auto& record = at->cluster.record;
  if (flags.json) {
    nlohmann::ordered_json out;
    if (record) out = json_of(*record);
    out["address"] = to_string(*at->app->address());
    out["cluster"] = status.cluster_id;
    out["session"] = status.session_id;
    out["master"] = status.master;
    out["dropped-messages"] = status.dropped_messages;
    out["executors"] = nlohmann::ordered_json::array();
    for (const auto& e : status.executors) out["executors"].push_back(json_of(e));
    out["jobs"] = nlohmann::ordered_json::array();
    for (const auto& job : status.jobs) out["jobs"].push_back(json_of(job));
    print_json(out);
    return 0;
  }
  const auto open = std::count_if(status.jobs.begin(), status.jobs.end(), [](const job_progress& job) {
    return job.state == job_state::accepted || job.state == job_state::running;
  });
  std::cout << "cluster " << (record ? record->name : status.cluster_id) << " at " << to_string(*at->app->address())
            << ": " << printable(status.master) << ", " << status.executors.size()
            << (status.executors.size() == 1 ? " executor, " : " executors, ") << open
            << (open == 1 ? " unfinished job\n" : " unfinished jobs\n");
  if (!status.executors.empty()) print_executors(status);
  return 0;
}

int jobs(const cluster_flags& flags) {
  const auto at = look(flags, "jobs");
  if (!at) return complain(at.error(), flags.json);
  if (flags.json) {
    auto out = nlohmann::ordered_json::array();
    for (const auto& job : at->status.jobs) out.push_back(json_of(job));
    print_json(out);
  } else if (at->status.jobs.empty()) {
    std::cout << "no jobs\n";
  } else {
    print_jobs(at->status);
  }
  return 0;
}

result<job_id> parse_job(const std::string& text) {
  const auto number = parse_number(text);
  if (!number)
    return make_error(ec::invalid_argument, "'" + printable(text) + "' is no job: `troupe jobs` lists their numbers");
  return job_id{*number};
}

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc{} || end != text.data() + text.size()) return {};
  return number;
}

result<const job_progress*> find_job(const troupe::cluster_status& status, job_id job) {
  for (const auto& known : status.jobs)
    if (known.job == job) return &known;
  return make_error(ec::not_found, "the cluster knows no job " + std::to_string(job.value) +
                                       ": `troupe jobs` lists those that it remembers");
}

} // namespace troupe::commands
