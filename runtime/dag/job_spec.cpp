#include <troupe/runtime/dag/job_spec.hpp>

#include <algorithm>
#include <optional>
#include <utility>

#include <troupe/runtime/scheduling/located_tasks.hpp>

namespace troupe {

namespace {

/// As much of a name as belongs into a sentence; the name itself may be what is wrong.
std::string shown(const std::string& name) {
  constexpr std::size_t most = 64;
  const auto size = std::min(name.find('\0'), most);
  return size < name.size() ? name.substr(0, size) + "..." : name;
}

/// `stage 3 (align)`.
std::string label(const job_spec& job, std::size_t index) {
  const auto name = shown(job.stages[index].name);
  return "stage " + std::to_string(index) + (name.empty() ? std::string{} : " (" + name + ")");
}

bool has_nul(std::string_view text) noexcept { return text.find('\0') != std::string_view::npos; }

bool is_absolute(std::string_view path) noexcept { return !path.empty() && path.front() == '/'; }

/// One check of one stage: what is wrong with it, or nothing. The caller puts the stage's label in front.
using fault = std::optional<std::string>;

fault check_shape(const job_spec& job, const stage_spec& stage) {
  if (stage.name.size() > max_stage_name_size)
    return "has a name of " + std::to_string(stage.name.size()) + " bytes, at most " +
           std::to_string(max_stage_name_size) + " are allowed";
  if (has_nul(stage.name)) return "has a name with a NUL byte";
  if (stage.tasks == 0) return "has 0 tasks, needs at least 1";
  if (stage.tasks > max_tasks_per_stage)
    return "has " + std::to_string(stage.tasks) + " tasks, at most " + std::to_string(max_tasks_per_stage) +
           " are allowed";
  if (stage.buckets > max_tasks_per_stage)
    return "has " + std::to_string(stage.buckets) + " shuffle buckets, at most " + std::to_string(max_tasks_per_stage) +
           " are allowed";
  if (stage.profile >= job.profiles.size())
    return "uses profile number " + std::to_string(stage.profile) + ", but the job has only " +
           std::to_string(job.profiles.size()) + " (numbers 0 to " + std::to_string(job.profiles.size() - 1) + ")";
  for (const auto& carried : stage.carried)
    if (carried.profile >= job.profiles.size())
      return "carries profile number " + std::to_string(carried.profile) + ", but the job has only " +
             std::to_string(job.profiles.size());
  return {};
}

fault check_arguments(const stage_spec& stage) {
  if (!stage.arguments || stage.arguments->empty()) return {};
  if (!stage.arguments->is_well_formed()) return "has an argument column whose ends do not fit its data";
  if (stage.arguments->size() != stage.tasks)
    return "has " + std::to_string(stage.arguments->size()) + " task arguments for " + std::to_string(stage.tasks) +
           " tasks; give one for each task or none at all";
  std::uint64_t begin = 0;
  for (std::size_t i = 0; i < stage.arguments->size(); begin = stage.arguments->ends[i++])
    if (const auto size = stage.arguments->ends[i] - begin; size > max_argument_size)
      return "has an argument of " + std::to_string(size) + " bytes for partition " + std::to_string(i) + ", at most " +
             std::to_string(max_argument_size) + " are allowed: let the task read its data from files or a dataset";
  return {};
}

fault check_locations(const stage_spec& stage) {
  if (!stage.locations) return {};
  if (!stage.locations->is_well_formed()) return "has a column of locations whose ends do not fit its data";
  if (const auto n = stage.locations->size(); n != stage.tasks && n != 1)
    return "has " + std::to_string(n) + " locations for " + std::to_string(stage.tasks) +
           " tasks; give one for each task, one for all of them, or none";
  for (std::size_t i = 0; i < stage.locations->size(); ++i)
    if (const auto parsed = parse_locations((*stage.locations)[i]); !parsed)
      return "partition " + std::to_string(i) + " has a location that is none: " + parsed.error().message;
  return {};
}

fault check_program(const native_program& program) {
  if (program.operations.empty()) return "has a native program without operations";
  std::size_t captures = 0;
  for (const auto& operation : program.operations) captures += operation.arguments.size();
  if (captures > max_captures_size)
    return "has captures of " + std::to_string(captures) + " bytes, at most " + std::to_string(max_captures_size) +
           " are allowed: let its tasks read that data from files or a dataset";
  return {};
}

fault check_program(const command_program& program) {
  if (program.words.empty() || program.words.front().empty()) return "has no program to run";
  for (const auto& word : program.words) {
    if (has_nul(word)) return "has a command word with a NUL byte, which no program can be given";
    if (word.size() > max_command_text_size)
      return "has a command word of " + std::to_string(word.size()) + " bytes, at most " +
             std::to_string(max_command_text_size) + " can be given to a program";
  }
  for (const auto& [name, value] : program.environment) {
    if (name.empty() || name.find('=') != std::string::npos || has_nul(name))
      return "sets the environment variable `" + shown(name) + "`: a name must not be empty nor hold `=` or a NUL byte";
    if (has_nul(value)) return "sets the environment variable `" + shown(name) + "` to a value with a NUL byte";
    if (name.size() + value.size() + 1 > max_command_text_size)
      return "sets the environment variable `" + shown(name) + "` to a value of " + std::to_string(value.size()) +
             " bytes, which no program can be given";
  }
  for (const auto& [what, path] : {std::pair<const char*, const std::string&>{"directory", program.directory},
                                   {"output directory", program.output_directory}})
    if (!path.empty() && (!is_absolute(path) || has_nul(path)))
      return std::string{"has the "} + what + " `" + shown(path) + "`, which is not an absolute path";
  return {};
}

fault check_dependency(const job_spec& job, std::size_t index, const stage_dependency& dependency) {
  const auto& stage = job.stages[index];
  if (dependency.stage >= job.stages.size())
    return "depends on stage number " + std::to_string(dependency.stage) + ", but the job has only " +
           std::to_string(job.stages.size()) + " stages";
  if (dependency.stage >= index)
    return "depends on " + label(job, dependency.stage) + ", which does not come before it; list parents first";
  const auto& parent = job.stages[dependency.stage];
  switch (dependency.kind) {
  case dependency_kind::all: return {};
  case dependency_kind::one_to_one:
    if (parent.tasks != stage.tasks)
      return "depends one-to-one on " + label(job, dependency.stage) + ", but has " + std::to_string(stage.tasks) +
             " tasks where that has " + std::to_string(parent.tasks);
    if (parent.is_shuffle_map() && (parent.buckets != 1 || !stage.is_native()))
      return "depends one-to-one on " + label(job, dependency.stage) + ", whose tasks write " +
             std::to_string(parent.buckets) + " shuffle buckets: only a native stage can, and where they write one";
    return {};
  case dependency_kind::shuffle:
    if (!stage.is_native()) return "is a command and cannot read the shuffle of " + label(job, dependency.stage);
    if (!parent.is_shuffle_map())
      return "reads the shuffle of " + label(job, dependency.stage) + ", which writes none (it has 0 buckets)";
    if (parent.buckets != stage.tasks)
      return "has " + std::to_string(stage.tasks) + " tasks, but " + label(job, dependency.stage) + " writes " +
             std::to_string(parent.buckets) + " shuffle buckets; the numbers must be equal";
    return {};
  }
  return "depends on " + label(job, dependency.stage) + " in an unknown way (" +
         std::to_string(static_cast<unsigned>(dependency.kind)) + ")";
}

fault check_stage(const job_spec& job, std::size_t index) {
  const auto& stage = job.stages[index];
  if (auto f = check_shape(job, stage)) return f;
  if (stage.is_shuffle_map() && !stage.is_native()) return "is a command and cannot write shuffle buckets";
  if (auto f = check_arguments(stage)) return f;
  if (auto f = check_locations(stage)) return f;
  for (const auto timeout : {stage.timeout, stage.task_timeout, stage.sync_timeout})
    if (timeout != never && (timeout <= duration::zero() || timeout > max_timeout))
      return "has a time-out of " + std::to_string(timeout.count()) + "ns, which must be above 0 and at most 1000 days";
  if (stage.sync_timeout != never && !stage.barrier)
    return "has a sync-timeout and is no barrier stage: only the tasks of a barrier stage wait for each other";
  if (auto f = std::visit([](const auto& program) { return check_program(program); }, stage.program)) return f;
  for (const auto& dependency : stage.dependencies)
    if (auto f = check_dependency(job, index, dependency)) return f;
  return {};
}

} // namespace

bool packed_column::is_well_formed() const noexcept {
  return std::is_sorted(ends.begin(), ends.end()) && (ends.empty() ? data.empty() : ends.back() == data.size());
}

bool stage_spec::operator==(const stage_spec& other) const {
  const auto same_column = [](const auto& a, const auto& b) { return a && b ? *a == *b : a == b; };
  return name == other.name && profile == other.profile && carried == other.carried && tasks == other.tasks &&
         buckets == other.buckets && dependencies == other.dependencies && program == other.program &&
         keep_results == other.keep_results && timeout == other.timeout && task_timeout == other.task_timeout &&
         barrier == other.barrier && sync_timeout == other.sync_timeout && cut_from == other.cut_from &&
         indeterminate == other.indeterminate && keeps == other.keeps && same_column(arguments, other.arguments) &&
         same_column(locations, other.locations);
}

std::uint32_t add_profile(job_spec& job, const resource_profile& profile) {
  const auto found = std::find_if(job.profiles.begin(), job.profiles.end(),
                                  [&](const auto& p) { return p.build == profile.build && p == profile; });
  const auto index = static_cast<std::uint32_t>(found - job.profiles.begin());
  if (found == job.profiles.end()) job.profiles.push_back(profile);
  return index;
}

std::vector<std::vector<carried_profile>> meetings_of(const job_spec& job, const profile_rules& rules) {
  std::vector<std::vector<carried_profile>> meetings;
  for (const auto& stage : job.stages)
    if (!stage.carried.empty()) meetings.push_back(stage.carried);
  if (rules.is_exact() && job.on_profile_change == profile_change::by_matching)
    for (const auto& stage : job.stages)
      if (!stage.cut_from.empty()) meetings.push_back(stage.cut_from);
  return meetings;
}

result<void> validate(const job_spec& job) {
  const auto invalid = [&job](std::string why) {
    return make_error(ec::invalid_argument, "job `" + shown(job.name) + "`: " + std::move(why));
  };
  for (const auto& [what, name] : {std::pair{"the name", &job.name}, std::pair{"the name of its group", &job.group},
                                   std::pair{"the name of its pool", &job.pool}}) {
    if (name->size() > max_stage_name_size)
      return invalid(what + (" has " + std::to_string(name->size())) + " bytes, at most " +
                     std::to_string(max_stage_name_size) + " are allowed");
    if (has_nul(*name)) return invalid(std::string{what} + " holds a NUL byte");
  }
  if (job.profiles.empty()) return invalid("no profile; entry 0 must be the default one");
  if (job.stages.empty()) return invalid("no stage; a job needs at least one");
  if (job.max_task_failures == 0) return invalid("max_task_failures is 0, needs at least 1");
  for (std::size_t i = 0; i < job.stages.size(); ++i)
    if (auto why = check_stage(job, i)) return invalid(label(job, i) + " " + *why);
  std::uint64_t tasks = 0; // the driver has a record of each
  for (const auto& stage : job.stages) tasks += stage.tasks;
  if (tasks > max_tasks_per_job)
    return invalid("its stages have " + std::to_string(tasks) + " tasks together, at most " +
                   std::to_string(max_tasks_per_job) + " are allowed: give each task more to do, or make several jobs");
  return {};
}

} // namespace troupe
