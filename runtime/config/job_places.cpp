#include <troupe/runtime/config/job_places.hpp>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include <troupe/runtime/config/path_pattern.hpp>
#include <troupe/runtime/config/path_text.hpp>
#include <troupe/runtime/config/yaml_document.hpp>

namespace troupe {
namespace {

namespace fs = std::filesystem;

/// What the names of a stage's outputs are like: its templates, each placeholder as `*`.
std::vector<std::string> name_patterns(const declared_stage& stage) {
  if (stage.outputs.empty())
    return stage.mentions("output") ? std::vector<std::string>{"*"} : std::vector<std::string>{};
  std::vector<std::string> out;
  for (const auto& name : stage.outputs) {
    std::string pattern;
    for (std::size_t i = 0; i < name.size(); ++i) {
      const auto close = name[i] == '{' ? name.find('}', i) : std::string::npos;
      pattern += close == std::string::npos ? escape_pattern(std::string_view{name}.substr(i, 1)) : "*";
      if (close != std::string::npos) i = close;
    }
    out.push_back(std::move(pattern));
  }
  return out;
}

/// Absolute paths in a word, which may be a text for a shell. Relative ones start where the command does, which is a
/// folder of its own.
std::vector<std::string> paths_within(const std::string& text) {
  std::vector<std::string> out{text};
  const auto add_parts = [&out](std::string_view whole, std::string_view ends) {
    for (std::size_t begin = 0; begin < whole.size();) {
      const auto end = std::min(whole.find_first_of(ends, begin), whole.size());
      if (end - begin < whole.size()) out.emplace_back(whole.substr(begin, end - begin));
      begin = end + 1;
    }
  };
  add_parts(text, " \t\n;|&<>()'\"`=,");
  // A colon is between the paths of a list; behind a name alone it is between a host and its path.
  for (std::size_t i = 0, all = out.size(); i < all; ++i) {
    const auto first = out[i].substr(0, out[i].find(':'));
    const bool is_host = !first.empty() && first != "." && first != ".." && first.find('/') == std::string::npos &&
                         out[i].find(':', first.size() + 1) == std::string::npos;
    if (!is_host) add_parts(std::string{out[i]}, ":");
  }
  std::erase_if(out, [](const std::string& word) {
    return !word.starts_with('/') || word.find_first_of(std::string_view{"{}$\0", 4}) != std::string::npos;
  });
  return out;
}

std::string whole_pattern(const job_folders& job, const std::string& text) {
  const auto open = text.find_first_of("*?[\\");
  const auto known = open == text.npos ? text.size() : text.rfind('/', open) + 1;
  const auto rest = fs::path{text.substr(known)}.lexically_normal().string();
  return escape_pattern(plain_path(fs::path{job.directory} / text.substr(0, known))) + rest;
}

bool finds_outputs(const job_folders& job, const std::string& pattern, const declared_stage& maker) {
  const auto made = name_patterns(maker);
  return std::any_of(made.begin(), made.end(), [&](const std::string& name) {
    return may_find(pattern, escape_pattern(job.output) + "/" + maker.name + "/" + name);
  });
}

/// Whether a pattern may find something in a folder, as far as both are written out: for jobs of many stages.
bool may_lead_into(const std::string& pattern, const std::string& folder) {
  constexpr std::string_view special = "*?[\\";
  const auto known =
      std::min({pattern.find_first_of(special), folder.find_first_of(special), pattern.size(), folder.size()});
  return pattern.compare(0, known, folder, 0, known) == 0;
}

class place_checker {
public:
  place_checker(const job_folders& job, const std::vector<placed_stage>& stages, file_places places)
    : job_(job), stages_(stages), places_(std::move(places)) {
    for (std::size_t i = 0; i < stages_.size(); ++i) index_.emplace(declared(i).name, i);
  }

  result<void> check(const std::vector<std::pair<std::string, std::string>>& named) {
    for (const auto step : {&place_checker::add_outputs, &place_checker::check_folders, &place_checker::check_inputs}) {
      if (auto ok = (this->*step)(); !ok) return ok;
    }
    for (const auto& [what, path] : named) {
      for (const auto& place : places_.way(path)) {
        if (const auto found = outputs_.find(place); found != outputs_.end())
          return fault(found->second, "its output " + path_of(found->second) + " would lie on " + what + ", " + path);
      }
    }
    return check_words();
  }

private:
  struct output {
    std::size_t stage;
    std::size_t task;
    std::size_t number; ///< of the task's outputs
  };

  const declared_stage& declared(std::size_t stage) const { return *stages_[stage].declared; }

  error fault(const output& of, const std::string& text) const {
    const auto& stage = declared(of.stage);
    return yaml_error(job_.file, stage.outputs.empty() ? stage.run_line : stage.outputs_line,
                      "stage " + stage.name + ": " + text + "; give another output:, or other names in outputs:");
  }

  std::string path_of(const output& of) const {
    const auto& planned = *stages_[of.stage].planned;
    return planned.output_directory + "/" + planned.tasks[of.task].outputs[of.number];
  }

  std::string name_of(const output& of, const output& beside) const {
    return path_of(of) + (of.stage == beside.stage ? std::string{", another one of its outputs"}
                                                   : ", an output of stage " + declared(of.stage).name);
  }

  result<void> add_outputs() {
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
      const auto& tasks = stages_[stage].planned->tasks;
      for (std::size_t task = 0; task < tasks.size(); ++task) {
        for (std::size_t number = 0; number < tasks[task].outputs.size(); ++number) {
          const output made{stage, task, number};
          const auto path = path_of(made);
          const auto [first, fresh] = outputs_.emplace(places_.place(path), made);
          if (!fresh) return fault(made, "its output " + path + " would lie on " + name_of(first->second, made));
          folders_.emplace(path.substr(0, path.rfind('/') + 1), made);
        }
      }
    }
    return {};
  }

  /// No output is a folder of another one.
  result<void> check_folders() {
    for (const auto& [folder, made] : folders_) {
      for (const auto& place : places_.way_to_folder(folder)) {
        if (const auto found = outputs_.find(place); found != outputs_.end())
          return fault(made, "its output " + path_of(made) + " would lie below " + name_of(found->second, made));
        above_.emplace(place, made);
      }
      makers_.emplace(places_.folder(folder), made.stage);
    }
    return {};
  }

  result<void> check_inputs() {
    std::unordered_set<std::string> folders; // seen before
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
      if (declared(stage).for_each.empty()) continue;
      for (const auto& task : stages_[stage].planned->tasks) {
        auto input = task.inputs.front();
        while (input.size() > 1 && input.ends_with('/')) input.pop_back();
        if (folders.insert(input.substr(0, input.rfind('/') + 1)).second) {
          if (auto ok = check_way(stage, input, places_.way_to_folder(input)); !ok) return ok;
        }
        const auto way = places_.way_from_folder(input);
        if (auto ok = check_way(stage, input, way); !ok) return ok;
        if (const auto found = way.empty() ? above_.end() : above_.find(way.back()); found != above_.end())
          return fault(found->second, "its output " + path_of(found->second) + " would lie in " + input +
                                          ", which for-each of stage " + declared(stage).name + " has found");
        if (auto ok = check_leftover(stage, input); !ok) return ok;
      }
    }
    return {};
  }

  result<void> check_way(std::size_t stage, const std::string& input, const std::vector<std::string>& way) {
    for (const auto& place : way) {
      const auto found = outputs_.find(place);
      if (found == outputs_.end()) continue;
      return fault(found->second, "its output " + path_of(found->second) + " would lie on the input " + input +
                                      ", which for-each of stage " + declared(stage).name + " has found");
    }
    return {};
  }

  /// What an earlier run has left, found by way of a link.
  result<void> check_leftover(std::size_t stage, const std::string& input) {
    const auto [first, last] = makers_.equal_range(places_.folder(input));
    for (auto it = first; it != last; ++it) {
      const auto& maker = declared(it->second);
      for (const auto& pattern : name_patterns(maker)) {
        const auto name = pattern.substr(pattern.rfind('/') + 1);
        if (may_find(escape_pattern(input.substr(input.rfind('/'))), "/" + name))
          return yaml_error(job_.file, declared(stage).for_each_line,
                            "stage " + declared(stage).name + ": for-each finds " + input + " where stage " +
                                maker.name + " puts its outputs, so it was left by an earlier run; " +
                                "write after: {" + maker.name + ": one-to-one}, or give another output:");
      }
    }
    return {};
  }

  result<void> check_words() {
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
      // A program that is named by a relative path lies beside the job file.
      const auto& program = declared(stage).run.front();
      if (program.find('/') != std::string::npos) {
        if (auto ok = check_path(stage, {"run", declared(stage).run_line}, program); !ok) return ok;
      }
      for (const auto& word : declared(stage).run) {
        if (auto ok = check_text(stage, {"run", declared(stage).run_line}, word); !ok) return ok;
      }
      for (const auto& [variable, value] : declared(stage).environment) {
        const auto& lines = declared(stage).environment_lines;
        const auto line = lines.find(variable);
        const named_at where{"environment." + variable, line == lines.end() ? declared(stage).line : line->second};
        if (auto ok = check_text(stage, where, value); !ok) return ok;
      }
    }
    return {};
  }

  /// Where a stage names a path.
  struct named_at {
    std::string field;
    int line;
  };

  result<void> check_text(std::size_t stage, const named_at& where, const std::string& text) {
    for (const auto& path : paths_within(text)) {
      if (auto ok = check_path(stage, where, path); !ok) return ok;
      if (auto ok = check_shell_pattern(stage, where, path); !ok) return ok;
    }
    return {};
  }

  result<void> check_path(std::size_t stage, const named_at& where, const std::string& path) {
    const auto whole = plain_path(fs::path{job_.directory} / path);
    for (const auto& place : places_.way(whole)) {
      const auto found = outputs_.find(place);
      if (found == outputs_.end() || comes_before(found->second.stage, stage)) continue;
      return fault(found->second, "its output " + path_of(found->second) + " would lie on " + path + ", which " +
                                      where.field + " of stage " + declared(stage).name + " names");
    }
    return {};
  }

  /// What a shell finds by it may have been left by an earlier run.
  result<void> check_shell_pattern(std::size_t stage, const named_at& where, const std::string& path) {
    const auto pattern = whole_pattern(job_, path);
    const auto fixed = pattern.substr(0, pattern.find_first_of("*?["));
    if (fixed.size() == pattern.size()) return {};
    if (!fixed.starts_with(job_.output + "/")) {
      // Above the outputs: one that names levels down to a stage's folder means files like these, else another text.
      const auto folder = fixed.substr(0, fixed.rfind('/') + 1);
      const auto levels = [](const std::string& of) { return std::count(of.begin(), of.end(), '/'); };
      if (folder == "/" || !job_.output.starts_with(folder) || levels(pattern) <= levels(job_.output)) return {};
    }
    for (std::size_t maker = 0; maker < stages_.size(); ++maker) {
      if (!finds_outputs(job_, pattern, declared(maker))) continue;
      return yaml_error(job_.file, where.line,
                        "stage " + declared(stage).name + ": " + path + " in " + where.field +
                            " may find what an earlier run has left of stage " + declared(maker).name + "; " +
                            (maker == stage ? std::string{"give another output:"}
                                            : "write {inputs} in its place, with after: [" + declared(maker).name +
                                                  "], which are the files of this run"));
    }
    return {};
  }

  /// Whether `stage` must be done before `other` starts.
  bool comes_before(std::size_t stage, std::size_t other) const {
    std::set<std::string_view> before;
    for (std::deque<std::size_t> open{other}; !open.empty(); open.pop_front()) {
      for (const auto& dependency : declared(open.front()).after) {
        if (before.insert(dependency.stage).second) open.push_back(index_.at(dependency.stage));
      }
    }
    return before.contains(declared(stage).name);
  }

  const job_folders& job_;
  const std::vector<placed_stage>& stages_;
  file_places places_;
  std::unordered_map<std::string, output> outputs_;          ///< by place
  std::unordered_map<std::string, output> folders_;          ///< of outputs, as texts, each with one of them
  std::unordered_map<std::string, output> above_;            ///< places of folders in which outputs lie
  std::unordered_multimap<std::string, std::size_t> makers_; ///< stages, by the folder that their outputs lie in
  std::unordered_map<std::string, std::size_t> index_;       ///< of stages, by name
};

std::string what_is_found(const job_folders& job, const declared_stage& stage, const std::string& text,
                          const declared_stage& maker) {
  return "stage " + stage.name + ": for-each = " + text + " may find what stage " + maker.name + " puts into " +
         job.output + "/" + maker.name + ", left by an earlier run: ";
}

} // namespace

result<void> check_patterns(const job_folders& job, const declared_stage& stage,
                            const std::vector<declared_stage>& makers) {
  for (const auto& text : stage.for_each) {
    const auto pattern = whole_pattern(job, text);
    if (!may_lead_into(pattern, escape_pattern(job.output))) continue;
    for (const auto& maker : makers) {
      if (maker.name == stage.name || !finds_outputs(job, pattern, maker)) continue;
      return yaml_error(job.file, stage.for_each_line,
                        what_is_found(job, stage, text, maker) +
                            "files are looked up before the job starts; write after: {" + maker.name +
                            ": one-to-one} for a task per file, or after: [" + maker.name +
                            "] and {inputs} for all of them, in place of for-each");
    }
  }
  return {};
}

result<void> check_own_patterns(const job_folders& job, const declared_stage& stage) {
  for (const auto& text : stage.for_each) {
    if (finds_outputs(job, whole_pattern(job, text), stage))
      return yaml_error(job.file, stage.for_each_line,
                        what_is_found(job, stage, text, stage) +
                            "give another output:, or names in outputs: that it does not find");
  }
  return {};
}

result<void> check_places(const job_folders& job, const std::vector<placed_stage>& stages,
                          const std::vector<std::pair<std::string, std::string>>& named, file_places places) {
  return place_checker{job, stages, std::move(places)}.check(named);
}

} // namespace troupe
