#include <troupe/runtime/config/job_tasks.hpp>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <unistd.h>
#include <unordered_map>
#include <unordered_set>

namespace troupe {
namespace {

namespace fs = std::filesystem;

/// Replaces every `{name}`, `{stem}` and `{partition}`; other braces are an error that names them.
result<std::string> expand(const std::string& pattern, const std::optional<std::string>& own_input,
                           std::size_t partition) {
  std::string out;
  for (std::size_t i = 0; i < pattern.size();) {
    if (pattern[i] != '{') {
      out += pattern[i++];
      continue;
    }
    const auto close = pattern.find('}', i);
    const auto word = close == std::string::npos ? pattern.substr(i) : pattern.substr(i, close - i + 1);
    if (word == "{partition}") {
      out += std::to_string(partition);
    } else if (word == "{name}" || word == "{stem}") {
      if (!own_input)
        return make_error(ec::invalid_configuration,
                          "its tasks have no input of their own that " + word + " could come from; use {partition}");
      const fs::path path{*own_input};
      out += (word == "{name}" ? path.filename() : path.stem()).string();
    } else {
      return make_error(ec::invalid_configuration,
                        "there is no placeholder " + word + "; valid here: {stem}, {name}, {partition}");
    }
    i = close + 1;
  }
  return out;
}

/// Error unless `name` is one that may be published.
result<void> check_output_name(const std::string& name) {
  if (is_output_name(name)) return {};
  if (name == "stdout" || name == "stderr")
    return make_error(ec::invalid_configuration, "is where the command's own output is kept; choose another name");
  if (name.starts_with(".troupe"))
    return make_error(ec::invalid_configuration, "begins like the names that Troupe uses itself; choose another name");
  return make_error(ec::invalid_configuration, "must be a relative path that stays below the stage's output directory");
}

class stage_planner {
public:
  stage_planner(std::string_view file, const declared_stage& stage, const std::vector<const planned_stage*>& parents)
    : file_(file), stage_(stage), parents_(parents) {}

  result<planned_stage> plan(const std::string& directory, const std::string& output_directory,
                             const path_finder& find) {
    out_.output_directory = output_directory;
    if (auto ok = find_files(directory, find); !ok) return ok.error();
    if (auto ok = count_tasks(); !ok) return ok.error();
    if (auto ok = add_inputs(); !ok) return ok.error();
    if (auto ok = add_outputs(); !ok) return ok.error();
    if (auto ok = check_placeholders(); !ok) return ok.error();
    return std::move(out_);
  }

private:
  error fault(int line, const std::string& text) const {
    return yaml_error(file_, line, "stage " + stage_.name + ": " + text);
  }

  result<void> find_files(const std::string& directory, const path_finder& find) {
    std::unordered_set<std::string> seen;
    for (const auto& pattern : stage_.for_each) {
      const auto matches = find(directory, pattern);
      if (!matches) return fault(stage_.for_each_line, "for-each = " + pattern + ": " + matches.error().message);
      if (matches->empty())
        return fault(stage_.for_each_line, "for-each = " + pattern + ": no file matches; looked in " + directory);
      for (const auto& path : *matches) {
        if (!seen.insert(path).second)
          return fault(stage_.for_each_line, "for-each = " + pattern + ": " + path + " is named twice");
        files_.push_back(path);
      }
    }
    if (files_.size() > max_command_tasks)
      return fault(stage_.for_each_line, "for-each names " + std::to_string(files_.size()) +
                                             " files; a stage has at most " + std::to_string(max_command_tasks) +
                                             " tasks");
    return {};
  }

  result<void> count_tasks() {
    std::optional<std::size_t> count;
    std::string because;
    if (!files_.empty()) {
      count = files_.size();
      because = "for-each names " + std::to_string(*count) + " files";
    } else if (stage_.tasks) {
      count = *stage_.tasks;
      because = "tasks = " + std::to_string(*count);
    }
    for (std::size_t i = 0; i < parents_.size(); ++i) {
      const auto& dependency = stage_.after[i];
      if (!dependency.one_to_one) continue;
      const auto of_parent = parents_[i]->tasks.size();
      const auto reason = "stage " + dependency.stage + " has " + std::to_string(of_parent) + " tasks";
      if (!count) {
        count = of_parent;
        because = reason;
      } else if (*count != of_parent) {
        return fault(dependency.line,
                     "one-to-one needs equally many tasks on both sides, but " + because + " and " + reason);
      }
    }
    out_.tasks.resize(count.value_or(1));
    return {};
  }

  result<void> add_inputs() {
    for (std::size_t task = 0; task < files_.size(); ++task) out_.tasks[task].inputs.push_back(files_[task]);
    for (std::size_t i = 0; i < parents_.size(); ++i) {
      if (!stage_.after[i].one_to_one) continue;
      for (std::size_t task = 0; task < out_.tasks.size(); ++task) {
        for (const auto& output : parents_[i]->tasks[task].outputs)
          out_.tasks[task].inputs.push_back(published(*parents_[i], output));
      }
    }
    for (const auto& task : out_.tasks)
      own_inputs_.push_back(task.inputs.empty() ? std::nullopt : std::optional{task.inputs.front()});
    return add_common_inputs();
  }

  /// What parents that are needed as a whole published goes to every task.
  result<void> add_common_inputs() {
    std::vector<std::string> common;
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < parents_.size(); ++i) {
      if (stage_.after[i].one_to_one) continue;
      for (const auto& task : parents_[i]->tasks) {
        for (const auto& output : task.outputs) {
          common.push_back(published(*parents_[i], output));
          bytes += common.back().size();
        }
      }
    }
    if (bytes * out_.tasks.size() > max_command_argument_bytes)
      return fault(stage_.line,
                   "each of its " + std::to_string(out_.tasks.size()) + " tasks would be given all " +
                       std::to_string(common.size()) +
                       " outputs of the stages before it, which is too much; gather them in a stage of one "
                       "task");
    for (auto& task : out_.tasks) task.inputs.insert(task.inputs.end(), common.begin(), common.end());
    return {};
  }

  result<void> add_outputs() {
    auto patterns = stage_.outputs;
    if (patterns.empty() && stage_.mentions("output"))
      patterns = {own_inputs_.front() ? "{stem}" : stage_.name + "-{partition}"};
    const int line = stage_.outputs.empty() ? stage_.run_line : stage_.outputs_line;
    std::unordered_map<std::string, std::size_t> producers;
    for (std::size_t i = 0; i < out_.tasks.size(); ++i) {
      for (const auto& pattern : patterns) {
        auto name = expand(pattern, own_inputs_[i], i);
        if (!name) return fault(line, "outputs = " + pattern + ": " + name.error().message);
        if (auto ok = check_output_name(*name); !ok)
          return fault(line, "outputs = " + pattern + (*name == pattern ? "" : ", which is " + *name) + ": " +
                                 ok.error().message);
        const auto [first, fresh] = producers.emplace(*name, i);
        if (!fresh)
          return fault(line, "the output " + *name + " would be published by task " + std::to_string(first->second) +
                                 " and by task " + std::to_string(i) +
                                 "; give outputs that differ, such as [\"{stem}-{partition}\"]");
        out_.tasks[i].outputs.push_back(std::move(*name));
      }
    }
    return {};
  }

  result<void> check_placeholders() const {
    const auto& task = out_.tasks.front();
    for (const std::string_view word : {"input", "inputs", "inputs-file"}) {
      if (stage_.mentions(word) && task.inputs.empty())
        return fault(stage_.run_line,
                     "run mentions {" + std::string{word} +
                         "}, but its tasks have no input; give for-each, or after a stage with outputs");
    }
    if (stage_.mentions("input") && task.inputs.size() > 1)
      return fault(stage_.run_line, "run mentions {input}, but a task has " + std::to_string(task.inputs.size()) +
                                        " inputs; use {inputs}");
    if (stage_.mentions("outputs") && task.outputs.empty())
      return fault(stage_.run_line, "run mentions {outputs}, but the stage declares none; add outputs: [name]");
    if (stage_.mentions("output") && task.outputs.size() > 1)
      return fault(stage_.run_line, "run mentions {output}, but a task has " + std::to_string(task.outputs.size()) +
                                        " outputs; use {outputs}");
    return check_length_of_inputs();
  }

  /// Arguments that the system does not take are known before a task has run.
  result<void> check_length_of_inputs() const {
    if (!stage_.mentions("inputs")) return {};
    // Linux: all arguments and the environment together take a quarter of the stack at most, and 6 MiB; one alone 128
    // KiB. Executors are taken to have the limits that this process has.
    const auto most_of_all =
        static_cast<std::size_t>(std::clamp(::sysconf(_SC_ARG_MAX), 1l << 20, 6l << 20) - (128 << 10));
    constexpr std::size_t most_of_one = 128 << 10;
    const bool are_one =
        std::none_of(stage_.run.begin(), stage_.run.end(), [](const auto& w) { return w == "{inputs}"; });
    for (const auto& task : out_.tasks) {
      std::size_t bytes = 0;
      for (const auto& input : task.inputs) bytes += input.size() + 1 + (are_one ? 0 : sizeof(char*));
      if (bytes <= (are_one ? most_of_one : most_of_all)) continue;
      return fault(stage_.run_line, "the " + std::to_string(task.inputs.size()) + " inputs of a task take " +
                                        std::to_string(bytes >> 10) +
                                        " KiB as arguments, which is more than the system allows; write {inputs-file} "
                                        "in place of {inputs}: a file that lists them, one a line");
    }
    return {};
  }

  static std::string published(const planned_stage& stage, const std::string& output) {
    return stage.output_directory + "/" + output;
  }

  std::string_view file_;
  const declared_stage& stage_;
  const std::vector<const planned_stage*>& parents_;
  std::vector<std::string> files_;                     ///< of for-each
  std::vector<std::optional<std::string>> own_inputs_; ///< per task: the first input that is its own
  planned_stage out_;
};

} // namespace

result<planned_stage> plan_stage(std::string_view file, const declared_stage& stage,
                                 const std::vector<const planned_stage*>& parents, const std::string& directory,
                                 const std::string& output_directory, const path_finder& find) {
  return stage_planner{file, stage, parents}.plan(directory, output_directory, find);
}

} // namespace troupe
