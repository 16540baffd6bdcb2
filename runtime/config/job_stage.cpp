#include <troupe/runtime/config/job_stage.hpp>

#include <algorithm>
#include <cctype>
#include <functional>
#include <queue>
#include <set>
#include <tuple>

#include <troupe/runtime/config/job_file.hpp>
#include <troupe/runtime/config/keys.hpp>
#include <troupe/runtime/config/path_text.hpp>
#include <troupe/runtime/config/setting_node.hpp>
#include <troupe/runtime/config/task_variables.hpp>
#include <troupe/runtime/resources/amount.hpp>
#include <troupe/runtime/scheduling/located_tasks.hpp>
#include <troupe/runtime/spelling.hpp>

namespace troupe {
namespace {

const std::vector<std::string>& placeholders() {
  static const std::vector<std::string> names{"input",   "inputs",    "inputs-file", "output",
                                              "outputs", "partition", "attempt"};
  return names;
}

/// A stage's name is a directory of its outputs and part of file names.
bool is_stage_name(std::string_view name) {
  if (name.empty() || name.size() > 64 || !std::isalnum(static_cast<unsigned char>(name.front()))) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
  });
}

bool is_variable_name(std::string_view name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name.front()))) return false;
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; });
}

class stage_reader {
public:
  stage_reader(std::string_view file, const yaml_node& node) : file_(file), node_(node) {}

  result<declared_stage> read() {
    out_.name = node_.key;
    out_.line = node_.key_line;
    if (!is_stage_name(node_.key))
      return yaml_error(file_, node_.key_line,
                        what_ +
                            ": a stage's name is made of letters, digits, `-`, `_` and `.`, begins with a letter or "
                            "a digit, and has at most 64 of them");
    if (auto ok = check_fields(file_, node_, what_,
                               {"profile", "after", "for-each", "tasks", "run", "environment", "outputs", "prefer",
                                "timeout", "task-timeout", "barrier", "sync-timeout", "indeterminate"});
        !ok)
      return ok.error();
    for (const auto step : {&stage_reader::read_profile, &stage_reader::read_after, &stage_reader::read_for_each,
                            &stage_reader::read_tasks, &stage_reader::read_run, &stage_reader::read_environment,
                            &stage_reader::read_outputs, &stage_reader::read_prefer, &stage_reader::read_timeouts,
                            &stage_reader::read_switches}) {
      if (auto ok = (this->*step)(); !ok) return ok.error();
    }
    return std::move(out_);
  }

private:
  error fault(int line, const std::string& text) const { return yaml_error(file_, line, what_ + ": " + text); }

  result<void> read_profile() {
    const auto* profile = node_.find("profile");
    if (!profile) return {};
    auto name = read_text(file_, *profile, what_ + ": profile");
    if (!name) return name.error();
    out_.profile = std::move(*name);
    out_.profile_line = profile->line;
    return {};
  }

  result<void> read_prefer() {
    const auto* prefer = node_.find("prefer");
    if (!prefer) return {};
    if (!prefer->is_list())
      return fault(prefer->line, "prefer must be a list of hosts, such as [" +
                                     (prefer->is_text() ? prefer->text : std::string{"node1"}) + "]");
    auto names = read_texts(file_, *prefer, what_ + ": prefer");
    if (!names) return names.error();
    for (const auto& name : *names)
      if (const auto location = parse_location(name); !location)
        return fault(prefer->line, "prefer: " + location.error().message);
    out_.prefer = std::move(*names);
    return {};
  }

  result<void> read_timeouts() {
    for (const auto& [field, key, to] : {std::tuple{"timeout", keys::stage_timeout, &out_.timeout},
                                         std::tuple{"task-timeout", keys::task_timeout, &out_.task_timeout},
                                         std::tuple{"sync-timeout", keys::barrier_sync_timeout, &out_.sync_timeout}}) {
      const auto* child = node_.find(field);
      if (!child) continue;
      const auto time = read_setting(file_, *child, what_ + ": " + field, schema_entry(key.name));
      if (!time) return time.error();
      *to = std::get<duration>(*time);
    }
    return {};
  }

  result<void> read_switches() {
    for (const auto& [name, value] :
         {std::pair{"barrier", &out_.barrier}, std::pair{"indeterminate", &out_.indeterminate}})
      if (const auto* given = node_.find(name)) {
        if (!given->is_text() || (given->text != "true" && given->text != "false"))
          return fault(given->line, std::string{name} + " must be true or false");
        *value = given->text == "true";
      }
    if (const auto* timeout = node_.find("sync-timeout"); timeout && !out_.barrier)
      return fault(timeout->key_line,
                   "sync-timeout is for barrier stages, whose tasks wait for each other: add barrier: true");
    return {};
  }

  result<void> read_after() {
    const auto* after = node_.find("after");
    if (!after) return {};
    if (after->is_map()) {
      for (const auto& child : after->children) {
        if (!child.is_text() || (child.text != "all" && child.text != "one-to-one"))
          return fault(child.line, "after." + child.key + " must be one of all, one-to-one");
        out_.after.push_back({child.key, child.text == "one-to-one", child.key_line});
      }
      return {};
    }
    if (!after->is_list())
      return fault(after->line, "after must be a list of stages, or a map such as {" +
                                    (after->is_text() ? after->text : "trim") + ": one-to-one}");
    std::set<std::string> seen;
    for (const auto& child : after->children) {
      auto name = read_text(file_, child, what_ + ": a stage in after");
      if (!name) return name.error();
      if (!seen.insert(*name).second) return fault(child.line, "after names " + *name + " twice");
      out_.after.push_back({std::move(*name), false, child.line});
    }
    return {};
  }

  result<void> read_for_each() {
    const auto* files = node_.find("for-each");
    if (!files) return {};
    out_.for_each_line = files->line;
    if (files->is_text() && !files->text.empty()) {
      out_.for_each = {files->text};
    } else if (files->is_list()) {
      auto names = read_texts(file_, *files, what_ + ": for-each");
      if (!names) return names.error();
      out_.for_each = std::move(*names);
    } else {
      return fault(files->line, "for-each must be a pattern such as \"data/*.fq\", or a list of files");
    }
    for (const auto& pattern : out_.for_each) {
      if (pattern.empty()) return fault(files->line, "for-each holds an empty name");
      if (pattern.find("**") != std::string::npos)
        return fault(files->line,
                     "for-each = " + pattern + ": ** is not supported; name each directory level, as in */*");
    }
    return {};
  }

  result<void> read_tasks() {
    const auto* tasks = node_.find("tasks");
    if (!tasks) return {};
    const auto number = tasks->is_text() ? parse_count(tasks->text) : result<std::int64_t>{0};
    if (!number || *number < 1 || *number > max_command_tasks)
      return fault(tasks->line, "tasks = " + tasks->text + ": must be a whole number from 1 to " +
                                    std::to_string(max_command_tasks));
    if (!out_.for_each.empty())
      return fault(tasks->key_line, "tasks and for-each exclude each other: for-each makes one task per file");
    out_.tasks = static_cast<std::uint32_t>(*number);
    return {};
  }

  result<void> read_run() {
    const auto* run = node_.find("run");
    if (!run)
      return fault(node_.key_line, "run is missing; write the command as a list, such as run: [./tool, \"{input}\"]");
    if (run->is_text())
      return fault(
          run->line,
          "run must be a list of words, such as [./tool, \"{input}\"]; no shell is involved unless you ask for "
          "one: [sh, -c, " +
              (run->text.find("{input") == std::string::npos && run->text.find("{output") == std::string::npos
                   ? "\"" + run->text + "\"]"
                   : "'sort \"$1\" >\"$2\"', sh, \"{input}\", \"{output}\"], which names cannot break"));
    auto words = read_texts(file_, *run, what_ + ": run");
    if (!words) return words.error();
    if (words->front().empty()) return fault(run->line, "the first word of run, the program, is empty");
    if (is_for_a_shell(words->front()))
      return fault(run->line,
                   "the first word of run is " + words->front() +
                       ", but no shell expands it: write the program's path, or ask for a shell: [sh, -c, …]");
    out_.run = std::move(*words);
    out_.run_line = run->line;
    // Braces are common in programs of other languages, so only a whole word that nearly is a placeholder is a slip.
    for (const auto& word : out_.run) {
      if (word.size() < 3 || word.front() != '{' || word[1] == '{' || word.back() != '}') continue;
      const auto name = word.substr(1, word.size() - 2);
      const auto& known = placeholders();
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      if (const auto nearest = nearest_name(name, known); !nearest.empty())
        return fault(run->line, "run has no placeholder " + word + "; did you mean {" + nearest + "}?");
    }
    return {};
  }

  result<void> read_environment() {
    const auto* environment = node_.find("environment");
    if (!environment) return {};
    if (!environment->is_map()) return fault(environment->line, "environment must be a map such as {LC_ALL: C}");
    for (const auto& child : environment->children) {
      const auto variable = "environment." + child.key;
      if (!is_variable_name(child.key))
        return fault(child.key_line, variable + ": a variable's name is made of letters, digits and `_`");
      if (is_task_variable(child.key) || is_variable_of_all(child.key) || child.key == "CUDA_VISIBLE_DEVICES")
        return fault(child.key_line, variable + ": is set by Troupe for each task; choose another name");
      if (child.key == "PWD" || child.key == "OLDPWD")
        return fault(child.key_line, variable + ": a command starts in a directory of its own, which PWD names; to "
                                                "start elsewhere, ask for a shell: [sh, -c, \"cd … && …\"]");
      if (!child.is_text()) return fault(child.line, variable + " must be a text");
      auto value = expand_path(child.text);
      if (!value) return fault(child.line, variable + " = " + child.text + ": " + value.error().message);
      out_.environment.emplace(child.key, std::move(*value));
      out_.environment_lines.emplace(child.key, child.line);
    }
    return {};
  }

  result<void> read_outputs() {
    const auto* outputs = node_.find("outputs");
    if (!outputs) return {};
    auto names = read_texts(file_, *outputs, what_ + ": outputs");
    if (!names) return names.error();
    for (const auto& name : *names) {
      if (is_for_a_shell(name))
        return fault(outputs->line,
                     "outputs = " + name +
                         ": an output is a name below the job's output:, in which only {stem}, {name} and "
                         "{partition} are replaced; a path with ~ or $NAME is for output:");
    }
    out_.outputs = std::move(*names);
    out_.outputs_line = outputs->line;
    return {};
  }

  std::string_view file_;
  const yaml_node& node_;
  std::string what_ = "stage " + node_.key;
  declared_stage out_;
};

/// The stages of one cycle among those that could not be ordered, first one repeated at the end.
std::string spell_cycle(const std::vector<declared_stage>& stages, const std::vector<std::vector<std::size_t>>& parents,
                        const std::vector<std::size_t>& open_parents) {
  const auto is_left = [&](std::size_t i) { return open_parents[i] > 0; };
  std::size_t at = 0;
  while (!is_left(at)) ++at;
  // Every stage that is left waits for another one that is left, so walking up must come around.
  std::vector<std::size_t> path;
  while (std::find(path.begin(), path.end(), at) == path.end()) {
    path.push_back(at);
    at = *std::find_if(parents[at].begin(), parents[at].end(), is_left);
  }
  path.erase(path.begin(), std::find(path.begin(), path.end(), at));
  std::string out = stages[at].name;
  for (auto it = path.rbegin(); it != path.rend(); ++it) out += " -> " + stages[*it].name;
  return out;
}

} // namespace

bool declared_stage::mentions(std::string_view placeholder) const {
  const auto text = "{" + std::string{placeholder} + "}";
  return std::any_of(run.begin(), run.end(), [&](const std::string& word) {
    // A second brace before it makes it a text of the command's own.
    for (auto at = word.find(text); at != std::string::npos; at = word.find(text, at + 1)) {
      if (at == 0 || word[at - 1] != '{') return true;
    }
    return false;
  });
}

result<declared_stage> read_stage(std::string_view file, const yaml_node& node) {
  return stage_reader{file, node}.read();
}

result<std::vector<std::size_t>> order_stages(std::string_view file, const std::vector<declared_stage>& stages) {
  std::map<std::string_view, std::size_t> index;
  for (std::size_t i = 0; i < stages.size(); ++i) index.emplace(stages[i].name, i);
  std::vector<std::vector<std::size_t>> parents(stages.size());
  std::vector<std::vector<std::size_t>> children(stages.size());
  std::vector<std::size_t> open_parents(stages.size());
  for (std::size_t i = 0; i < stages.size(); ++i) {
    for (const auto& dependency : stages[i].after) {
      const auto found = index.find(dependency.stage);
      if (found == index.end()) {
        std::vector<std::string> names;
        names.reserve(stages.size());
        for (const auto& stage : stages) names.push_back(stage.name);
        return yaml_error(file, dependency.line,
                          "stage " + stages[i].name + ": there is no stage `" + dependency.stage + "`" +
                              spelling_hint(dependency.stage, names));
      }
      parents[i].push_back(found->second);
      children[found->second].push_back(i);
      ++open_parents[i];
    }
  }
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (open_parents[i] == 0) ready.push(i);
  }
  std::vector<std::size_t> order;
  while (!ready.empty()) {
    const auto i = ready.top();
    ready.pop();
    order.push_back(i);
    for (const auto child : children[i]) {
      if (--open_parents[child] == 0) ready.push(child);
    }
  }
  if (order.size() == stages.size()) return order;
  const auto cycle = spell_cycle(stages, parents, open_parents);
  const auto first = index.at(std::string_view{cycle}.substr(0, cycle.find(' ')));
  return yaml_error(file, stages[first].line, "the stages wait for each other: " + cycle);
}

} // namespace troupe
