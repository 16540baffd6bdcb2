#include <troupe/launcher/output_record.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <unordered_set>
#include <utility>
#include <variant>

#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include <troupe/runtime/execution/staged_outputs.hpp>
#include <troupe/runtime/scheduling/command_arguments.hpp>

namespace troupe {
namespace {

namespace fs = std::filesystem;
using json_object = nlohmann::ordered_json;

/// Inputs that are looked at for one job; more would keep it waiting where files are far away.
constexpr std::size_t most_looked_at = 100'000;
/// Inputs of one task that are named.
constexpr std::size_t most_inputs = 1000;
/// Files that a sentence names.
constexpr std::size_t most_named = 3;

std::string time_text(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts{};
  char text[32] = "";
  if (::gmtime_r(&time, &parts) != nullptr) std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string line_of(const json_object& object) {
  return object.dump(-1, ' ', false, json_object::error_handler_t::replace) + '\n';
}

/// What earlier runs have recorded. It came from a file that others may have written: what is no record is left out.
struct earlier_record {
  std::map<std::string, json_object> runs;
  std::vector<json_object> tasks;
};

std::vector<std::string> outputs_of(const json_object& task) {
  std::vector<std::string> names;
  if (const auto found = task.find("outputs"); found != task.end() && found->is_array())
    for (const auto& name : *found)
      if (name.is_string() && is_output_name(name.get_ref<const std::string&>())) names.push_back(name);
  return names;
}

std::string run_of(const json_object& line) {
  const auto found = line.find("run");
  return found != line.end() && found->is_string() ? found->get<std::string>() : "";
}

earlier_record read_record(const fs::path& file) {
  earlier_record record;
  struct stat status {};
  if (::lstat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return record;
  std::ifstream in{file};
  for (std::string text; std::getline(in, text);) {
    auto line = json_object::parse(text, nullptr, false);
    if (!line.is_object() || run_of(line).empty()) continue;
    if (line.contains("outputs"))
      record.tasks.push_back(std::move(line));
    else
      record.runs.insert_or_assign(run_of(line), std::move(line));
  }
  return record;
}

/// Whole or not at all. Where it cannot be written, what was there stays.
void write_record(const fs::path& file, const std::string& text) {
  const auto folder = file.parent_path();
  std::error_code unknown;
  if (text.empty()) {
    if (::unlink(file.c_str()) == 0) ::rmdir(folder.c_str()); // where that was all
    return;
  }
  if (::mkdir(folder.c_str(), 0777) != 0 && !fs::is_directory(fs::symlink_status(folder, unknown))) return;
  const auto beside = file.string() + "-new";
  ::unlink(beside.c_str());
  std::ofstream out{beside, std::ios::binary};
  out << text;
  out.close();
  if (!out || ::rename(beside.c_str(), file.c_str()) != 0) ::unlink(beside.c_str());
}

bool exists(const fs::path& file) {
  struct stat status {};
  return ::lstat(file.c_str(), &status) == 0;
}

/// Files below the directory, by the names that outputs have.
template <class Each>
void each_file_in(const fs::path& directory, Each each) {
  std::error_code failed;
  for (fs::recursive_directory_iterator entry{directory, failed}, end; !failed && entry != end;
       entry.increment(failed)) {
    if (entry.depth() == 0 && entry->path().filename() == own_folder) entry.disable_recursion_pending();
    std::error_code gone;
    if (entry->symlink_status(gone).type() == fs::file_type::regular)
      each(entry->path().lexically_relative(directory).string());
  }
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
  std::string text() const {
    std::string text;
    for (const auto& name : first) text += (text.empty() ? "" : ", ") + name;
    if (count > first.size()) text += " and " + std::to_string(count - first.size()) + " more";
    return text;
  }
};

std::string files(std::size_t count) { return std::to_string(count) + (count == 1 ? " file" : " files"); }

/// Sentences about what lies there and was not made now.
std::vector<std::string> describe_others(const fs::path& directory, const std::unordered_set<std::string>& made,
                                         const earlier_record& earlier) {
  std::unordered_map<std::string, std::string> known; // run by output
  for (const auto& task : earlier.tasks)
    for (auto& name : outputs_of(task)) known.insert_or_assign(std::move(name), run_of(task));
  counted_names of_earlier_runs;
  counted_names of_nobody;
  each_file_in(directory, [&](std::string name) {
    if (made.contains(name)) return;
    const auto run = known.find(name);
    if (run != known.end()) of_earlier_runs.runs.insert(run->second);
    (run != known.end() ? of_earlier_runs : of_nobody).add(std::move(name));
  });
  std::vector<std::string> sentences;
  if (of_earlier_runs.count > 0) {
    std::string whose;
    const auto run = earlier.runs.find(*of_earlier_runs.runs.begin());
    if (of_earlier_runs.runs.size() == 1 && run != earlier.runs.end())
      whose = " (job " + run->second.value("job", "") + ", " + run->second.value("ended", "") + ")";
    sentences.push_back(files(of_earlier_runs.count) + " of an earlier run in " + directory.string() + ": " +
                        of_earlier_runs.text() + whose);
  }
  if (of_nobody.count > 0)
    sentences.push_back(files(of_nobody.count) + " in " + directory.string() + " that this run has not made: " +
                        of_nobody.text());
  return sentences;
}

} // namespace

output_record::output_record(std::shared_ptr<const job_spec> job) : job_(std::move(job)) {
  for (const auto& stage : job_->stages) {
    if (stage.is_native() || !stage.arguments) continue;
    for (std::size_t p = 0; p < stage.arguments->size(); ++p) {
      const auto decoded = decode_command_arguments((*stage.arguments)[p]);
      if (!decoded) continue;
      for (const auto& input : decoded->inputs)
        if (inputs_.size() < most_looked_at) state_of(input);
    }
  }
}

const output_record::file_state* output_record::state_of(const std::string& input) {
  const auto known = inputs_.find(input);
  if (known != inputs_.end()) return &known->second;
  struct stat status {};
  if (::stat(input.c_str(), &status) != 0) return nullptr; // another stage is to make it
  return &inputs_
              .emplace(input, file_state{static_cast<std::uint64_t>(status.st_size), std::int64_t{status.st_mtim.tv_sec}})
              .first->second;
}

std::vector<std::string> output_record::finish(const std::string& session, const job_end& end,
                                               const std::vector<task_placement>& done) {
  std::vector<std::string> sentences;
  const auto run = session + "-" + std::to_string(end.job.value);
  const auto ended = time_text(std::time(nullptr));
  for (std::size_t i = 0; i < job_->stages.size() && i < end.progress.stages.size(); ++i) {
    const auto& stage = job_->stages[i];
    const auto& known = end.progress.stages[i];
    if (stage.is_native() || !stage.arguments) continue;
    const auto& program = std::get<command_program>(stage.program);
    const fs::path directory{program.output_directory};
    const auto file = directory / own_folder / "record.jsonl";
    std::unordered_set<std::string> made;
    std::string text;
    for (const auto& placement : done)
      for (auto p = placement.partition; placement.stage == known.stage && p < placement.partition + placement.count &&
                                         p < stage.arguments->size();
           ++p) {
        const auto decoded = decode_command_arguments((*stage.arguments)[p]);
        if (!decoded || decoded->outputs.empty()) continue;
        made.insert(decoded->outputs.begin(), decoded->outputs.end());
        auto inputs = json_object::array();
        for (const auto& input : decoded->inputs) {
          if (inputs.size() == most_inputs) break;
          const auto* const state = inputs_.size() < most_looked_at || inputs_.contains(input) ? state_of(input) : nullptr;
          inputs.push_back({{"path", input}});
          if (state) inputs.back().update({{"bytes", state->bytes}, {"modified", time_text(state->modified)}});
        }
        json_object task{{"run", run}, {"partition", p}, {"inputs", std::move(inputs)}, {"outputs", decoded->outputs}};
        if (decoded->inputs.size() > most_inputs) task["inputs_left_out"] = decoded->inputs.size() - most_inputs;
        text += line_of(task);
      }
    if (!text.empty())
      text = line_of({{"run", run},
                      {"job", job_->name},
                      {"stage", stage.name},
                      {"command", program.words},
                      {"profile", known.profile},
                      {"ended", ended}}) +
             text;
    const auto earlier = read_record(file);
    std::set<std::string> runs_named;
    for (const auto& task : earlier.tasks) {
      const auto names = outputs_of(task);
      const auto stays = [&](const std::string& name) { return !made.contains(name) && exists(directory / name); };
      if (run_of(task) == run || std::none_of(names.begin(), names.end(), stays)) continue;
      if (const auto its = earlier.runs.find(run_of(task)); its != earlier.runs.end() && runs_named.insert(its->first).second)
        text += line_of(its->second);
      text += line_of(task);
    }
    if (made.empty() && earlier.tasks.empty() && !exists(directory)) continue;
    for (auto& sentence : describe_others(directory, made, earlier)) sentences.push_back(std::move(sentence));
    write_record(file, text);
  }
  return sentences;
}

} // namespace troupe
