#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <tuple>

#include <troupe/launcher/commands/cluster_choice.hpp>
#include <troupe/launcher/commands/json_output.hpp>
#include <troupe/launcher/executor_process.hpp>
#include <troupe/launcher/text_table.hpp>
#include <troupe/runtime/execution/attempts_directories.hpp>

namespace troupe::commands {
namespace {

namespace fs = std::filesystem;

/// What one attempt of a command wrote.
struct attempt_output {
  std::uint64_t stage = 0; ///< its id in the session; then its number within the job, as people know it
  std::uint64_t partition = 0;
  std::uint64_t attempt = 0;
  std::string stage_name;
  fs::path directory;
};

/// Reads `<stage>.<partition>.<attempt>`.
std::optional<attempt_output> parse_attempt(const fs::path& directory) {
  const auto name = directory.filename().string();
  const auto first = name.find('.');
  const auto last = name.rfind('.');
  if (first == name.npos || last == first) return {};
  const std::string_view all = name;
  const auto stage = parse_number(all.substr(0, first));
  const auto partition = parse_number(all.substr(first + 1, last - first - 1));
  const auto attempt = parse_number(all.substr(last + 1));
  if (!stage || !partition || !attempt) return {};
  return attempt_output{*stage, *partition, *attempt, {}, directory};
}

/// Directories of this machine where the cluster's executors keep what attempts wrote.
std::vector<fs::path> attempt_directories(const chosen_cluster& cluster, const troupe::cluster_status& status) {
  std::set<fs::path> parents;
  if (cluster.record) parents.insert(cluster.record->directory);
  for (const auto& e : status.executors)
    if (!e.info.log_file.empty()) parents.insert(fs::path{e.info.log_file}.parent_path());
  std::vector<fs::path> out;
  for (const auto& parent : parents) {
    const auto all = all_attempts_directories(parent.string());
    out.insert(out.end(), all.begin(), all.end());
  }
  return out;
}

std::vector<attempt_output> find_attempts(const job_progress& job, const std::vector<fs::path>& directories) {
  std::map<std::uint64_t, std::size_t> numbers; // by id
  for (const auto& stage : job.stages) numbers.emplace(stage.stage.value, numbers.size());
  std::vector<attempt_output> out;
  for (const auto& directory : directories) {
    std::error_code ec;
    for (const auto& entry : fs::directory_iterator{attempts_of(directory.string(), job.job), ec}) {
      auto attempt = parse_attempt(entry.path());
      if (!attempt || !numbers.contains(attempt->stage)) continue;
      attempt->stage = numbers.at(attempt->stage);
      attempt->stage_name = job.stages.at(attempt->stage).name;
      out.push_back(std::move(*attempt));
    }
  }
  std::sort(out.begin(), out.end(), [](const attempt_output& a, const attempt_output& b) {
    return std::tie(a.stage, a.partition, a.attempt) < std::tie(b.stage, b.partition, b.attempt);
  });
  return out;
}

/// Copies the file line by line; a terminal is not handed a task's control characters. @returns false when it is empty
/// or cannot be read
bool print_file(const fs::path& path, const std::string& title) {
  std::ifstream file{path};
  std::string line;
  bool any = false;
  while (std::getline(file, line)) {
    if (!std::exchange(any, true) && !title.empty()) std::cout << title << '\n';
    std::cout << printable(line, true) << '\n';
  }
  return any;
}

std::string title_of(const attempt_output& a, const char* stream) {
  return "== " + printable(a.stage_name) + " " + std::to_string(a.stage) + "." + std::to_string(a.partition) + "." +
         std::to_string(a.attempt) + " " + stream;
}

/// Where a program's tasks have printed: the streams of executors. @param executors those whose are kept here
void point_at_executors(const std::set<executor_id>& executors, const std::string& cluster) {
  constexpr std::size_t most = 5;
  std::cerr << "tasks of a program print where their executors do: on the streams of those that were started by hand"
            << (executors.empty() ? "\n" : ", and for others:\n");
  std::size_t told = 0;
  for (const auto executor : executors) {
    if (told++ == most) {
      std::cerr << "troupe:   and those of " << executors.size() - most << " more\n";
      break;
    }
    std::cerr << "troupe:   troupe logs --executor " << executor.value << " --stderr"
              << (cluster.empty() ? "" : " --cluster=" + printable(cluster)) << '\n';
  }
}

/// @param programs executors that may have run tasks of it which are a program's, and whether what each prints is here
/// @param cluster as it was named; "": it was not
int job_logs(const job_progress& job, const std::vector<fs::path>& directories,
             const std::map<executor_id, bool>& programs, const std::string& cluster, bool errors, bool json) {
  const auto attempts = find_attempts(job, directories);
  if (json) {
    auto out = nlohmann::ordered_json::array();
    for (const auto& a : attempts)
      out.push_back({{"stage", a.stage},
                     {"name", a.stage_name},
                     {"partition", a.partition},
                     {"attempt", a.attempt},
                     {"stdout", (a.directory / "stdout").string()},
                     {"stderr", (a.directory / "stderr").string()}});
    print_json(out);
    return 0;
  }
  bool any = false;
  for (const auto& a : attempts) {
    if (!errors) any |= print_file(a.directory / "stdout", title_of(a, "stdout"));
    any |= print_file(a.directory / "stderr", title_of(a, "stderr"));
  }
  if (attempts.empty()) {
    std::cerr << "troupe: no command of job " << job.job.value << " has run on this machine"
              << (programs.empty() ? "\n" : "; ");
    std::set<executor_id> kept;
    for (const auto& [executor, is_kept] : programs)
      if (is_kept) kept.insert(executor);
    if (!programs.empty()) point_at_executors(kept, cluster);
  } else if (!any) {
    std::cerr << "troupe: " << attempts.size() << (attempts.size() == 1 ? " attempt" : " attempts") << " of job "
              << job.job.value << " on this machine, none of which wrote anything\n";
  }
  return 0;
}

/// The log of an executor of this user's cluster that has ended, "" where there is none.
std::string log_of_ended(const session_record& session, executor_id executor) {
  std::error_code none;
  const auto name = fs::read_symlink(fs::path{session.directory} / log_link_of(executor), none).filename();
  return name.empty() ? std::string{} : (fs::path{session.directory} / name).string();
}

int executor_logs(executor_id executor, std::string path, bool errors, bool json) {
  if (errors && path.ends_with(".log")) path.replace(path.size() - 4, 4, ".err");
  if (json) {
    print_json({{"executor", executor.value}, {"file", path}});
    return 0;
  }
  std::error_code ec;
  if (path.empty() || !fs::exists(path, ec))
    return complain(make_error(ec::not_found, "executor " + std::to_string(executor.value) +
                                                  " keeps no such file on this machine: " + path),
                    false);
  print_file(path, "");
  return 0;
}

} // namespace

int logs(const cluster_flags& flags, const log_flags& what) {
  if (what.job.empty() == what.executor.empty())
    return complain(make_error(ec::invalid_argument, "say which: `troupe logs JOB`, or `troupe logs --executor N`"),
                    flags.json);
  const auto cluster = choose_cluster_of_job(flags);
  if (!cluster) return complain(cluster.error(), flags.json);
  const auto app = connect_to(*cluster, "logs");
  if (!app) return complain(app.error(), flags.json);
  const auto status = (*app)->jobs()->status();
  if (!status) return complain(status.error(), flags.json);
  if (!what.job.empty()) {
    const auto id = parse_job(what.job);
    if (!id) return complain(id.error(), flags.json);
    const auto job = find_job(*status, *id);
    if (!job) return complain(job.error(), flags.json);
    std::map<executor_id, bool> programs;
    std::error_code none;
    if (const auto ran = (*app)->jobs()->placements(*id))
      for (const auto& placement : *ran)
        programs.emplace(placement.executor,
                         cluster->record &&
                             fs::exists(printed_by(cluster->record->directory, placement.executor), none));
    for (const auto& e : status->executors)
      if (!e.info.native)
        programs.erase(e.info.executor);
      else if (const auto known = programs.find(e.info.executor); known != programs.end())
        known->second = fs::exists(fs::path{e.info.log_file}.replace_extension(".err"), none);
    return job_logs(**job, attempt_directories(*cluster, *status), programs, flags.which, what.errors, flags.json);
  }
  const auto number = parse_number(what.executor);
  if (!number)
    return complain(
        make_error(ec::invalid_argument,
                   "'" + printable(what.executor) + "' is no executor: `troupe cluster status` lists their numbers"),
        flags.json);
  const executor_id id{*number};
  for (const auto& e : status->executors)
    if (e.info.executor == id) return executor_logs(id, e.info.log_file, what.errors, flags.json);
  if (!cluster->record)
    return complain(
        make_error(ec::not_found, "the cluster runs no executor " + std::to_string(id.value) +
                                      "; the log of one that has ended is shown where the cluster was started"),
        flags.json);
  auto path = log_of_ended(*cluster->record, id);
  if (path.empty())
    return complain(make_error(ec::not_found, "the cluster runs no executor " + std::to_string(id.value) + ", and " +
                                                  cluster->record->directory +
                                                  " has no log of one that has ended: `troupe cluster status` lists "
                                                  "those that run"),
                    flags.json);
  return executor_logs(id, std::move(path), what.errors, flags.json);
}

} // namespace troupe::commands
