#include <troupe/launcher/output_record.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include <troupe/launcher/output_folder.hpp>
#include <troupe/launcher/record_file.hpp>
#include <troupe/launcher/record_line.hpp>
#include <troupe/runtime/execution/made_mark.hpp>
#include <troupe/runtime/execution/staged_outputs.hpp>
#include <troupe/runtime/scheduling/command_arguments.hpp>

namespace troupe {
namespace {

namespace fs = std::filesystem;
using json_object = nlohmann::ordered_json;

/// Inputs that are looked at for one job; more would keep it waiting where files are far away.
constexpr std::size_t most_looks = 100'000;
/// Inputs of one task that are named.
constexpr std::size_t most_inputs = 1000;
/// Files that a sentence names.
constexpr std::size_t most_named = 3;
/// By which the kernel's time of a change may lag behind the clock.
constexpr std::int64_t coarseness = 20'000'000;

std::int64_t nanoseconds_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string line_of(const json_object& object) {
  return object.dump(-1, ' ', false, json_object::error_handler_t::replace);
}

/// Some of many names.
struct counted_names {
  std::size_t count = 0;
  std::set<std::string> first;
  std::set<std::string> runs;

  void add(std::string name) {
    ++count;
    first.insert(std::move(name));
    if (first.size() > most_named) first.erase(std::prev(first.end()));
  }
  std::string files() const { return std::to_string(count) + (count == 1 ? " file" : " files"); }
  std::string text() const {
    std::string text;
    for (const auto& name : first) text += (text.empty() ? "" : ", ") + name;
    if (count > first.size()) text += " and " + std::to_string(count - first.size()) + " more";
    return text;
  }
};

std::string session_of(const std::string& run) { return run.substr(0, run.rfind('-')); }

std::int64_t changed(const struct stat& status) {
  return std::int64_t{status.st_ctim.tv_sec} * 1'000'000'000 + status.st_ctim.tv_nsec;
}

} // namespace

/// What a stage has made in this run, as far as it is seen.
struct output_record::stage_outputs {
  std::vector<partition_index> recorded;  ///< tasks of which every output is there, and new
  std::unordered_set<std::string> made;   ///< by these
  std::unordered_set<std::string> others; ///< that are new as well: of tasks that were just being published
};

output_record::output_record(std::shared_ptr<const job_spec> job, std::string job_file)
  : job_(std::move(job)), job_file_(std::move(job_file)), began_(nanoseconds_now()) {
  std::unordered_set<std::string> directories;
  for (const auto& stage : job_->stages)
    if (!stage.is_native()) directories.insert(std::get<command_program>(stage.program).output_directory + "/");
  const auto is_own = [&](const std::string& input) {
    for (auto slash = input.rfind('/'); slash != input.npos && slash > 0; slash = input.rfind('/', slash - 1))
      if (directories.contains(input.substr(0, slash + 1))) return true;
    return false;
  };
  for (const auto& stage : job_->stages) {
    if (stage.is_native() || !stage.arguments) continue;
    for (std::size_t p = 0; p < stage.arguments->size() && looks_ < most_looks; ++p) {
      const auto decoded = decode_command_arguments((*stage.arguments)[p]);
      if (!decoded || decoded->outputs.empty()) continue;
      for (const auto& input : decoded->inputs) {
        if (looks_ == most_looks) break;
        if (inputs_.contains(input) || own_.contains(input)) continue;
        is_own(input) ? static_cast<void>(own_.insert(input)) : look_at(input);
      }
    }
  }
}

void output_record::look_at(const std::string& input) {
  ++looks_;
  struct stat status {};
  if (::stat(input.c_str(), &status) == 0)
    inputs_.insert_or_assign(input, file_state{static_cast<std::uint64_t>(status.st_size), status.st_mtim.tv_sec});
}

std::vector<std::string> output_record::finish(const std::string& session, const job_end& end,
                                               const std::vector<task_placement>& done) {
  const auto run = session + "-" + std::to_string(end.job.value);
  std::map<stage_id, std::size_t> index;
  for (std::size_t i = 0; i < job_->stages.size() && i < end.progress.stages.size(); ++i)
    index.emplace(end.progress.stages[i].stage, i);
  std::vector<std::vector<bool>> is_done(job_->stages.size());
  for (const auto& placement : done) {
    const auto stage = index.find(placement.stage);
    if (stage == index.end()) continue;
    const std::size_t tasks = job_->stages[stage->second].tasks;
    auto& of_stage = is_done[stage->second];
    of_stage.resize(tasks);
    for (std::size_t p = placement.partition; p < std::min<std::size_t>(tasks, placement.partition + placement.count);
         ++p)
      of_stage[p] = true;
  }
  std::vector<std::string> sentences;
  for (const auto& [stage, i] : index) {
    is_done[i].resize(job_->stages[i].tasks);
    finish_stage(run, job_->stages[i], end.progress.stages[i], is_done[i], static_cast<bool>(end.failure), sentences);
  }
  return sentences;
}

output_record::stage_outputs output_record::outputs_of(const stage_spec& stage, const std::vector<bool>& done,
                                                       const std::string& mark) const {
  stage_outputs out;
  const auto& directory = std::get<command_program>(stage.program).output_directory;
  for (std::size_t p = 0; p < done.size() && p < stage.arguments->size(); ++p) {
    const auto decoded = decode_command_arguments((*stage.arguments)[p]);
    if (!decoded || decoded->outputs.empty()) continue;
    std::vector<std::string> fresh;
    for (const auto& name : decoded->outputs) {
      struct stat status {};
      if (::lstat((directory + "/" + name).c_str(), &status) == 0 && changed(status) >= began_ - coarseness)
        fresh.push_back(name);
    }
    // Of a job that was cancelled some may be put in place without being counted; their marks tell that they are its.
    const auto is_own = [&](const std::string& name) {
      const auto made = made_by(directory, name);
      return made.by == maker::task && made.run == mark;
    };
    const bool is_whole =
        fresh.size() == decoded->outputs.size() && (done[p] || std::all_of(fresh.begin(), fresh.end(), is_own));
    if (is_whole) out.recorded.push_back(static_cast<partition_index>(p));
    (is_whole ? out.made : out.others).insert(fresh.begin(), fresh.end());
  }
  return out;
}

std::string output_record::task_line(const std::string& run, const stage_spec& stage, partition_index partition) {
  const auto decoded = decode_command_arguments((*stage.arguments)[partition]);
  auto inputs = json_object::array();
  for (const auto& input : decoded->inputs) {
    if (inputs.size() == most_inputs) break;
    // Its own ones were made before those that read them.
    if (!inputs_.contains(input) && own_.contains(input) && looks_ < most_looks) look_at(input);
    const auto state = inputs_.find(input);
    inputs.push_back({{"path", input}});
    if (state != inputs_.end())
      inputs.back().update({{"bytes", state->second.bytes}, {"modified", time_text(state->second.modified)}});
  }
  json_object line{
      {"run", run}, {"partition", partition}, {"inputs", std::move(inputs)}, {"outputs", decoded->outputs}};
  if (decoded->inputs.size() > most_inputs) line["inputs_left_out"] = decoded->inputs.size() - most_inputs;
  return line_of(line);
}

void output_record::finish_stage(const std::string& run, const stage_spec& stage, const stage_progress& progress,
                                 const std::vector<bool>& done, bool failed, std::vector<std::string>& sentences) {
  if (stage.is_native() || !stage.arguments) return;
  const auto& program = std::get<command_program>(stage.program);
  const fs::path directory{program.output_directory};
  struct stat status {};
  if (::stat(directory.c_str(), &status) != 0) return; // nothing was made, or on another machine
  const auto mark = session_of(run) + "-" + std::to_string(progress.stage.value);
  const auto own = outputs_of(stage, done, mark);
  const bool any_done = std::find(done.begin(), done.end(), true) != done.end();
  if (any_done && own.recorded.empty()) return; // what it has made is on another machine

  std::map<std::string, recorded_line> runs;
  std::unordered_map<std::string, std::string> run_of; // by output, the latest run
  std::unordered_set<std::string> there;               // outputs of earlier runs that are
  auto file = record_file::open(directory.parent_path().string(), directory.filename().string());
  const bool readable = file && file->read([&](const std::string& text) {
    auto line = parse_line(text);
    if (!line || line->run == run) return;
    if (line->outputs)
      for (const auto& name : *line->outputs) run_of.emplace(name, line->run);
    else
      runs.emplace(line->run, *std::move(line));
  });
  counted_names of_earlier_runs;
  counted_names of_nobody;
  bool any_marked = false; // of which nothing but the mark is known
  const bool all_seen = each_output_in(directory.string(), [&](std::string name) {
    if (own.made.contains(name) || own.others.contains(name)) return;
    const auto whose = run_of.find(name);
    // A run that was killed has recorded nothing, and may have replaced what another one has; its files are marked.
    const auto made = made_by(directory.string(), name);
    const bool is_marked = made.by == maker::task;
    if (whose == run_of.end() || (is_marked && session_of(made.run) != session_of(whose->second))) {
      if (!is_marked) return of_nobody.add(std::move(name));
      if (made.run == mark) return;
      any_marked = true;
      return of_earlier_runs.add(std::move(name));
    }
    of_earlier_runs.runs.insert(whose->second);
    there.insert(name);
    of_earlier_runs.add(std::move(name));
  });
  if (all_seen && of_earlier_runs.count > 0) {
    const bool is_one = of_earlier_runs.runs.size() + (any_marked ? 1 : 0) == 1;
    const auto known = of_earlier_runs.runs.empty() ? runs.end() : runs.find(*of_earlier_runs.runs.begin());
    const auto whose =
        is_one && known != runs.end() ? " (job " + known->second.job + ", " + known->second.ended + ")" : "";
    sentences.push_back(of_earlier_runs.files() + (is_one ? " of an earlier run in " : " of earlier runs in ") +
                        directory.string() + ": " + of_earlier_runs.text() + whose);
  }
  if (all_seen && of_nobody.count > 0 && (failed || !runs.empty()))
    sentences.push_back(of_nobody.files() + " in " + directory.string() +
                        " that no run has recorded: " + of_nobody.text());

  const auto complain = [&] {
    sentences.push_back("what the job has made in " + directory.string() + " could not be recorded there");
  };
  if (!file || !readable) { // what is there stays
    if (!own.recorded.empty()) complain();
    return;
  }
  if (!own.recorded.empty())
    file->add(line_of({{"run", run},
                       {"job", job_->name},
                       {"file", job_file_},
                       {"stage", stage.name},
                       {"command", program.words},
                       {"profile", progress.profile},
                       {"ended", time_text(nanoseconds_now() / 1'000'000'000)}}));
  for (const auto partition : own.recorded) file->add(task_line(run, stage, partition));
  if (!there.empty() || !all_seen)
    file->read([&](const std::string& text) {
      const auto line = parse_line(text);
      if (!line || line->run == run) return;
      const auto stays = [&](const std::string& name) {
        const bool is_there = all_seen ? there.contains(name) : !own.made.contains(name) && !own.others.contains(name);
        return is_there && run_of.at(name) == line->run;
      };
      if (line->outputs ? std::any_of(line->outputs->begin(), line->outputs->end(), stays)
                        : !all_seen || of_earlier_runs.runs.contains(line->run))
        file->add(text);
    });
  if (!file->commit()) complain();
}

} // namespace troupe
