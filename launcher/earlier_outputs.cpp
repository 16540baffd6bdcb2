#include <troupe/launcher/earlier_outputs.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>

#include <fnmatch.h>

#include <troupe/launcher/named_paths.hpp>
#include <troupe/launcher/output_folder.hpp>
#include <troupe/runtime/config/task_variables.hpp>
#include <troupe/runtime/scheduling/command_arguments.hpp>

namespace troupe {
namespace {

namespace fs = std::filesystem;

/// Of a folder that no stage of this job has.
constexpr auto no_stage = std::numeric_limits<std::size_t>::max();

std::string real_path_of(const std::string& path) {
  std::error_code unknown;
  auto out = fs::weakly_canonical(path, unknown).string();
  return unknown ? path : out;
}

/// Variables as a command finds them, but for those that each task has values of its own for.
variable_values variables_of(const command_program& program) {
  return [&program](std::string_view name) -> std::optional<std::string> {
    if (const auto own = program.environment.find(std::string{name}); own != program.environment.end())
      return own->second;
    if (name == "PWD" || name == "OLDPWD" || name == "TMPDIR" || is_task_variable(name)) return {};
    const char* const here = std::getenv(std::string{name}.c_str());
    return here != nullptr ? std::optional<std::string>{here} : std::nullopt;
  };
}

bool matches(const std::string& pattern, const std::string& name) {
  constexpr int as_shells_do = FNM_PATHNAME | FNM_PERIOD | FNM_LEADING_DIR; // a folder is named with what is in it
  return pattern.empty() || ::fnmatch(pattern.c_str(), name.c_str(), as_shells_do) == 0;
}

/// Where a stage puts outputs, or where one has that is no more.
struct stage_folder {
  std::size_t stage;
  std::string path;
  std::optional<std::vector<std::string>> left = {}; ///< in it by other runs, once it was looked at
};

class reader_check {
public:
  explicit reader_check(const job_spec& job) : job_(job) {
    std::unordered_set<std::string> parents;
    for (std::size_t i = 0; i < job.stages.size(); ++i) {
      const auto& stage = job.stages[i];
      if (stage.is_native() || !stage.arguments) continue;
      const auto& program = std::get<command_program>(stage.program);
      add(program.output_directory, i);
      // The job's own folder has more in it than outputs.
      const auto above = fs::path{program.output_directory}.parent_path().string();
      if (!(program.directory + "/").starts_with(above + "/")) parents.insert(above);
    }
    if (!folders_.empty())
      for (const auto& parent : parents) add_parent(parent);
  }

  /// What the stage would find; "" where that is nothing.
  std::string found_by(std::size_t reader) {
    if (folders_.empty() || job_.stages[reader].is_native()) return "";
    const auto& program = std::get<command_program>(job_.stages[reader].program);
    const auto variables = variables_of(program);
    for (const auto& word : program.words)
      if (auto found = found_in(reader, "run", named_paths(word, variables)); !found.empty()) return found;
    for (const auto& [variable, value] : program.environment)
      if (auto found = found_in(reader, "environment." + variable, named_paths(value, variables)); !found.empty())
        return found;
    return "";
  }

private:
  void add(const std::string& path, std::size_t stage) {
    if (std::error_code none; !fs::is_directory(path, none)) return;
    by_path_[real_path_of(path)] = folders_.size();
    folders_.push_back({stage, path});
  }

  /// A folder of outputs: its stages' parts, and those of stages that are no more.
  void add_parent(const std::string& parent) {
    std::error_code none;
    std::unordered_set<std::string> known;
    for (const auto& folder : folders_) known.insert(folder.path);
    for (fs::directory_iterator entry{parent, none}, end; !none && entry != end; entry.increment(none))
      if (!entry->path().filename().string().starts_with('.') && !known.contains(entry->path().string()))
        add(entry->path().string(), no_stage);
    auto& all = by_parent_[real_path_of(parent)];
    for (std::size_t i = 0; i < folders_.size(); ++i)
      if (fs::path{folders_[i].path}.parent_path() == parent) all.push_back(i);
  }

  /// Outputs of other runs that this one does not make.
  const std::vector<std::string>& left_in(stage_folder& folder) const {
    if (folder.left) return *folder.left;
    std::unordered_set<std::string> own;
    if (folder.stage != no_stage) {
      const auto& arguments = *job_.stages[folder.stage].arguments;
      for (std::size_t p = 0; p < arguments.size(); ++p)
        if (const auto decoded = decode_command_arguments(arguments[p]))
          own.insert(decoded->outputs.begin(), decoded->outputs.end());
    }
    auto& out = folder.left.emplace();
    const auto recorded = recorded_outputs(folder.path);
    each_output_in(folder.path, [&](std::string name) {
      if (!own.contains(name) && who_made(folder.path, name, recorded).by == maker::task)
        out.push_back(std::move(name));
    });
    std::sort(out.begin(), out.end());
    return out;
  }

  std::string found_in(std::size_t reader, const std::string& what, const std::vector<named_path>& paths) {
    for (const auto& path : paths)
      if (auto found = found_at(reader, path.word + " in " + what, real_path_of(path.fixed), path.pattern);
          !found.empty())
        return found;
    return "";
  }

  /// @param fixed the folder from where on the pattern is, or with "" for a pattern the path itself
  std::string found_at(std::size_t reader, const std::string& named, const std::string& fixed,
                       const std::string& pattern) {
    if (const auto parent = by_parent_.find(fixed); parent != by_parent_.end()) {
      const auto first = pattern.substr(0, pattern.find('/'));
      const auto rest = pattern.substr(std::min(first.size() + 1, pattern.size()));
      for (const auto number : parent->second)
        if (matches(first, fs::path{folders_[number].path}.filename().string()))
          if (auto found = left_by_others(reader, named, folders_[number], rest); !found.empty()) return found;
      return "";
    }
    for (auto end = fixed.size(); end != fixed.npos && end > 0; end = fixed.rfind('/', end - 1)) {
      const auto folder = by_path_.find(fixed.substr(0, end));
      if (folder == by_path_.end()) continue;
      if (folders_[folder->second].stage == no_stage) return ""; // of another job, and named on purpose
      auto whole = end < fixed.size() ? fixed.substr(end + 1) : "";
      if (!whole.empty() && !pattern.empty()) whole += '/';
      return left_by_others(reader, named, folders_[folder->second], whole + pattern);
    }
    return "";
  }

  std::string left_by_others(std::size_t reader, const std::string& named, stage_folder& folder,
                             const std::string& pattern) const {
    if (folder.stage == reader) return ""; // it may go on with what it has made before
    std::string first;
    std::size_t count = 0;
    for (const auto& name : left_in(folder))
      if (matches(pattern, name) && count++ == 0) first = name;
    if (count == 0) return "";
    const auto more = count == 1 ? "" : " (and " + std::to_string(count - 1) + " more)";
    const bool can_be_given = folder.stage < reader; // no_stage is not
    return "stage " + job_.stages[reader].name + ": " + named + " also finds " + folder.path + "/" + first + more +
           ", which another run has made; where that is not meant, move it to another place" +
           (can_be_given ? ", or write {inputs} with after: [" + job_.stages[folder.stage].name +
                               "], which are the files of this run"
                         : std::string{});
  }

  const job_spec& job_;
  std::vector<stage_folder> folders_;
  std::unordered_map<std::string, std::size_t> by_path_;                ///< by what their paths lead to
  std::unordered_map<std::string, std::vector<std::size_t>> by_parent_; ///< by the folder of outputs that they lie in
};

} // namespace

std::vector<std::string> what_earlier_runs_have_left(const job_spec& job) {
  std::vector<std::string> out;
  reader_check checker{job};
  for (std::size_t i = 0; i < job.stages.size(); ++i)
    if (auto found = checker.found_by(i); !found.empty()) out.push_back(std::move(found));
  return out;
}

} // namespace troupe
