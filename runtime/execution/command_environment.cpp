#include <troupe/runtime/execution/command_environment.hpp>

#include <algorithm>

#include <troupe/runtime/config/task_variables.hpp>
#include <troupe/runtime/execution/process_tree.hpp>
#include <troupe/runtime/resources/amount.hpp>

extern char** environ;

namespace troupe {

namespace {

constexpr std::size_t longest_list = 64 << 10;

std::string variable_part(std::string_view resource) {
  std::string name;
  for (const char c : resource) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool digit = c >= '0' && c <= '9';
    name += letter ? static_cast<char>(c & ~0x20) : digit ? c : '_';
  }
  return name;
}

std::string join(const std::vector<std::string>& list, char between) {
  std::string all;
  for (const auto& entry : list) {
    if (!all.empty()) all += between;
    all += entry;
  }
  return all;
}

/// Threads that a task of so many cpus may start.
std::string threads_for(share cpus) { return std::to_string(std::max<std::int64_t>(1, fits(cpus, share::whole(1)))); }

void set_files(environment_map& variables, const std::string& name, const std::vector<std::string>& files) {
  if (files.size() == 1) variables[name] = files.front();
  variables[name + "S"] =
      fits_variable(files) ? join(files, '\n') : "/too-many-files-for-" + name + "S--see-docs/job-files.md";
}

} // namespace

bool fits_variable(const std::vector<std::string>& files) {
  std::size_t size = 0;
  for (const auto& file : files) size += file.size() + 1;
  return size <= longest_list;
}

environment_map inherited_environment() {
  environment_map variables;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view text{*entry};
    const auto equals = text.find('=');
    if (equals != text.npos) variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  if (const auto cpus = variables.find("TROUPE_CPUS"); cpus != variables.end() && variables.contains(attempt_variable))
    if (const auto amount = parse_share(cpus->second)) {
      const auto is_of_outer_task = [&, threads = threads_for(*amount)](std::string_view name) {
        const auto set = variables.find(name);
        return set != variables.end() && set->second == threads;
      };
      if (std::all_of(thread_variables.begin(), thread_variables.end(), is_of_outer_task))
        for (const auto name : thread_variables) variables.erase(variables.find(name));
    }
  std::erase_if(variables, [](const auto& variable) { return is_task_variable(variable.first); });
  return variables;
}

std::vector<std::string> make_command_environment(const environment_map& base,
                                                  const std::map<std::string, std::string>& own,
                                                  const command_identity& identity, const task_resources& resources,
                                                  bool gpus, const std::vector<std::string>& inputs,
                                                  const std::vector<std::string>& outputs) {
  auto variables = base;
  for (const auto& [name, value] : own) variables[name] = value;
  if (identity.thread_variables && std::none_of(thread_variables.begin(), thread_variables.end(),
                                                [&](std::string_view name) { return variables.contains(name); }))
    for (const auto name : thread_variables) variables.emplace(name, threads_for(resources.cpus));
  variables.erase("OLDPWD");
  variables["PWD"] = identity.directory;
  variables["TROUPE_SESSION"] = identity.session;
  // The sessions above this one stay in the list: tasks of theirs may wait for this command.
  const auto above = base.find(sessions_variable);
  variables[std::string{sessions_variable}] =
      (above == base.end() ? std::string{} : above->second + ":") + identity.session;
  variables["TROUPE_JOB"] = std::to_string(identity.job);
  variables["TROUPE_STAGE"] = identity.stage;
  variables["TROUPE_PARTITION"] = std::to_string(identity.partition);
  variables["TROUPE_TASKS"] = std::to_string(identity.tasks);
  variables["TROUPE_ATTEMPT_NUMBER"] = std::to_string(identity.attempt);
  variables[std::string{attempt_variable}] = identity.mark;
  variables["TROUPE_CPUS"] = to_string(resources.cpus);
  for (const auto& [resource, amount] : resources.amounts)
    variables[resource == resource_names::memory ? "TROUPE_MEMORY" : "TROUPE_AMOUNT_" + variable_part(resource)] =
        to_string(amount);
  if (gpus) variables["CUDA_VISIBLE_DEVICES"] = "";
  for (const auto& [resource, list] : resources.addresses) {
    std::vector<std::string> texts;
    for (const auto& a : list) texts.push_back(a.address);
    const auto all = join(texts, ',');
    variables["TROUPE_ADDRESSES_" + variable_part(resource)] = all;
    if (resource == "gpu") variables["CUDA_VISIBLE_DEVICES"] = all;
  }
  if (identity.gang) {
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < identity.gang->size(); ++i) texts.emplace_back((*identity.gang)[i]);
    if (auto all = join(texts, ','); all.size() <= longest_list) variables["TROUPE_GANG"] = std::move(all);
  }
  set_files(variables, "TROUPE_INPUT", inputs);
  if (!identity.inputs_file.empty()) variables["TROUPE_INPUTS_FILE"] = identity.inputs_file;
  set_files(variables, "TROUPE_OUTPUT", outputs);
  std::vector<std::string> texts;
  texts.reserve(variables.size());
  for (const auto& [name, value] : variables) {
    // A name or value that the system cannot carry as it is would change its meaning.
    if (name.empty() || name.find('=') != name.npos || name.find('\0') != name.npos || value.find('\0') != value.npos)
      continue;
    texts.push_back(name + "=" + value);
  }
  return texts;
}

} // namespace troupe
