#include <troupe/runtime/config/job_file.hpp>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>

#include <sys/stat.h>

#include <troupe/runtime/config/job_places.hpp>
#include <troupe/runtime/config/job_stage.hpp>
#include <troupe/runtime/config/job_tasks.hpp>
#include <troupe/runtime/config/keys.hpp>
#include <troupe/runtime/config/path_pattern.hpp>
#include <troupe/runtime/config/path_search.hpp>
#include <troupe/runtime/config/path_text.hpp>
#include <troupe/runtime/config/profile_yaml.hpp>
#include <troupe/runtime/config/setting_node.hpp>
#include <troupe/runtime/scheduling/command_arguments.hpp>

namespace troupe {
namespace {

namespace fs = std::filesystem;

class job_reader {
public:
  job_reader(const yaml_document& document, const std::string& directory, const path_finder& find)
    : file_(document.file), root_(document.root), directory_(directory), find_(find) {}

  result<job_spec> read(const job_defaults& defaults) {
    if (auto ok = check_fields(file_, root_, "a job file",
                               {"name", "group", "output", "max-failures", "pool", "profiles", "stages"});
        !ok)
      return ok.error();
    job_.max_task_failures = defaults.max_failures;
    job_.pool = defaults.pool;
    defaults_ = defaults;
    for (const auto step : {&job_reader::read_head, &job_reader::read_profile_list, &job_reader::read_stages}) {
      if (auto ok = (this->*step)(); !ok) return ok.error();
    }
    return std::move(job_);
  }

private:
  result<void> read_head() {
    const auto* name = root_.find("name");
    if (!name) return yaml_error(file_, root_.line, "the job has no name; write name: reads");
    auto text = read_text(file_, *name, "name");
    if (!text) return text.error();
    job_.name = std::move(*text);
    if (const auto* group = root_.find("group")) {
      auto of = read_text(file_, *group, "group");
      if (!of) return of.error();
      job_.group = std::move(*of);
    }
    output_ = directory_ + "/out";
    if (const auto* output = root_.find("output")) {
      auto path = read_text(file_, *output, "output");
      if (!path) return path.error();
      const auto expanded = expand_path(*path);
      if (!expanded) return yaml_error(file_, output->line, "output = " + *path + ": " + expanded.error().message);
      output_ = plain_path(fs::path{directory_} / *expanded);
      while (output_.ends_with('/')) output_.pop_back();
    }
    if (const auto* failures = root_.find("max-failures")) {
      const auto number = read_setting(file_, *failures, "max-failures", schema_entry(keys::task_max_failures.name));
      if (!number) return number.error();
      job_.max_task_failures = static_cast<std::uint32_t>(std::get<std::int64_t>(*number));
    }
    if (const auto* pool = root_.find("pool")) {
      auto pool_name = read_text(file_, *pool, "pool");
      if (!pool_name) return pool_name.error();
      job_.pool = std::move(*pool_name);
    }
    return {};
  }

  result<void> read_profile_list() {
    job_.profiles.emplace_back();
    const auto* node = root_.find("profiles");
    if (!node) return {};
    auto profiles = read_profiles(file_, directory_, *node);
    if (!profiles) return profiles.error();
    profiles_ = std::move(*profiles);
    for (const auto& profile : profiles_) job_.profiles.push_back(profile.content);
    return {};
  }

  result<void> read_stages() {
    const auto* node = root_.find("stages");
    if (!node || !node->is_map() || node->children.empty())
      return yaml_error(file_, node ? node->line : root_.line,
                        "the job has no stages; write stages: {first: {run: [./tool]}}");
    std::vector<declared_stage> declared;
    for (const auto& child : node->children) {
      auto stage = read_stage(file_, child);
      if (!stage) return stage.error();
      if (auto ok = expand_patterns(*stage); !ok) return ok;
      declared.push_back(std::move(*stage));
    }
    const auto order = order_stages(file_, declared);
    if (!order) return order.error();
    const job_folders folders{file_, directory_, output_};
    for (const auto i : *order) {
      if (auto ok = check_patterns(folders, declared[i], declared); !ok) return ok;
      if (auto ok = add_stage(declared[i]); !ok) return ok;
    }
    std::vector<placed_stage> placed;
    for (std::size_t i = 0; i < planned_.size(); ++i) placed.push_back({&declared[(*order)[i]], planned_[i].get()});
    if (auto ok = check_places(folders, placed, named_files(), file_places{}); !ok) return ok;
    for (const auto& stage : declared) {
      if (auto ok = check_own_patterns(folders, stage); !ok) return ok;
    }
    return {};
  }

  /// A file whose name is what was written wins, as with patterns.
  result<void> expand_patterns(declared_stage& stage) const {
    for (auto& text : stage.for_each) {
      struct stat info {};
      if (!has_variables(text) || ::lstat((fs::path{directory_} / text).c_str(), &info) == 0) continue;
      auto expanded = expand_path(text, environment_variable, escape_pattern);
      if (!expanded)
        return yaml_error(file_, stage.for_each_line,
                          "stage " + stage.name + ": for-each = " + text + ": " + expanded.error().message);
      text = std::move(*expanded);
    }
    return {};
  }

  /// Files that belong to the job by name.
  std::vector<std::pair<std::string, std::string>> named_files() const {
    std::vector<std::pair<std::string, std::string>> out{
        {"the job file", directory_ + "/" + fs::path{file_}.filename().string()}};
    for (const auto& profile : profiles_) {
      auto choices = profile.content.alternatives;
      choices.push_back(profile.content);
      for (const auto& choice : choices) {
        for (const auto& [name, request] : choice.executor) {
          if (!request.discovery_script.empty())
            out.emplace_back("the discovery script of profile " + profile.name, request.discovery_script);
        }
      }
    }
    return out;
  }

  result<void> add_stage(const declared_stage& declared) {
    stage_spec stage;
    stage.name = declared.name;
    stage.timeout = declared.timeout.value_or(defaults_.stage_timeout);
    stage.task_timeout = declared.task_timeout.value_or(defaults_.task_timeout);
    stage.barrier = declared.barrier;
    stage.indeterminate = declared.indeterminate;
    if (stage.barrier) stage.sync_timeout = declared.sync_timeout.value_or(defaults_.sync_timeout);
    if (!declared.prefer.empty()) {
      auto column = std::make_shared<packed_column>();
      std::string all;
      for (const auto& location : declared.prefer) all += (all.empty() ? "" : "\n") + location;
      column->push_back(all);
      stage.locations = std::move(column);
    }
    stage.keep_results = false; // what a command makes are files
    auto profile = profile_index(declared);
    if (!profile) return profile.error();
    stage.profile = *profile;
    std::vector<const planned_stage*> parents;
    for (const auto& dependency : declared.after) {
      const auto index = index_.at(dependency.stage);
      parents.push_back(planned_[index].get());
      stage.dependencies.push_back({static_cast<std::uint32_t>(index),
                                    dependency.one_to_one ? dependency_kind::one_to_one : dependency_kind::all});
    }
    auto planned = plan_stage(file_, declared, parents, directory_, output_ + "/" + declared.name, find_);
    if (!planned) return planned.error();
    stage.tasks = static_cast<std::uint32_t>(planned->tasks.size());
    stage.program = command_program{declared.run, declared.environment, directory_, planned->output_directory};
    auto arguments = pack(declared, *planned);
    if (!arguments) return arguments.error();
    stage.arguments = std::move(*arguments);
    index_.emplace(declared.name, planned_.size());
    planned_.push_back(std::make_unique<planned_stage>(std::move(*planned)));
    job_.stages.push_back(std::move(stage));
    return {};
  }

  result<std::uint32_t> profile_index(const declared_stage& declared) const {
    if (declared.profile == "default") return std::uint32_t{0};
    for (std::size_t i = 0; i < profiles_.size(); ++i) {
      if (profiles_[i].name == declared.profile) return static_cast<std::uint32_t>(i + 1);
    }
    auto missing = find_profile(profiles_, declared.profile, file_, declared.profile_line);
    return missing.error();
  }

  result<std::shared_ptr<const packed_column>> pack(const declared_stage& declared,
                                                    const planned_stage& planned) const {
    auto column = std::make_shared<packed_column>();
    for (const auto& task : planned.tasks) {
      column->push_back(encode_command_arguments(task));
      if (column->data.size() > max_command_argument_bytes)
        return yaml_error(file_, declared.line,
                          "stage " + declared.name + ": the names of its tasks' files take more than " +
                              std::to_string(max_command_argument_bytes >> 20) + " MiB; use fewer or shorter ones");
    }
    return std::shared_ptr<const packed_column>{std::move(column)};
  }

  const std::string& file_;
  const yaml_node& root_;
  const std::string& directory_;
  const path_finder& find_;
  std::string output_; ///< absolute, without a slash at its end
  job_defaults defaults_;
  job_spec job_;
  std::vector<named_profile> profiles_;
  std::map<std::string, std::size_t> index_; ///< of stages in job_ and planned_
  std::vector<std::unique_ptr<planned_stage>> planned_;
};

result<std::vector<std::string>> find_paths(const std::string& directory, const std::string& pattern) {
  const auto literal = plain_path(fs::path{directory} / pattern);
  struct stat info {};
  if (::stat(literal.c_str(), &info) == 0) return std::vector<std::string>{literal};
  const auto whole = fs::path{pattern}.is_absolute() ? pattern : escape_pattern(directory) + "/" + pattern;
  const auto found = matching_paths(whole);
  if (!found) return found.error();
  std::vector<std::string> out;
  for (const auto& path : *found) out.push_back(plain_path(path));
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

} // namespace

job_defaults job_defaults_of(const settings& s) {
  return {static_cast<std::uint32_t>(s.get(keys::task_max_failures)), s.get(keys::scheduler_pool),
          s.get(keys::stage_timeout), s.get(keys::task_timeout), s.get(keys::barrier_sync_timeout)};
}

path_finder system_path_finder() { return find_paths; }

result<job_spec> read_job(const yaml_document& document, const std::string& directory, const job_defaults& defaults,
                          const path_finder& find) {
  return job_reader{document, directory, find}.read(defaults);
}

result<job_spec> load_job(const std::string& path, const job_defaults& defaults) {
  auto document = load_yaml(path);
  if (!document) return document.error();
  std::error_code failure;
  const auto absolute = fs::absolute(path, failure);
  if (failure) return make_error(ec::io, "cannot resolve " + path + ": " + failure.message());
  return read_job(*document, fs::path{plain_path(absolute)}.parent_path().string(), defaults, system_path_finder());
}

} // namespace troupe
