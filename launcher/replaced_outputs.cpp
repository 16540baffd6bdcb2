#include <troupe/launcher/replaced_outputs.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <variant>

#include <sys/stat.h>

#include <troupe/launcher/output_record.hpp>
#include <troupe/runtime/execution/made_mark.hpp>
#include <troupe/runtime/scheduling/command_arguments.hpp>

namespace troupe {
namespace {

namespace fs = std::filesystem;

/// The first parts of all names in a folder.
std::unordered_set<std::string> names_in(const std::string& directory) {
  std::unordered_set<std::string> out;
  std::error_code failed;
  for (fs::directory_iterator entry{directory, failed}, end; !failed && entry != end; entry.increment(failed))
    out.insert(entry->path().filename().string());
  return out;
}

/// Seconds by which a change may be noted later than the run that has made it has ended.
constexpr std::int64_t coarseness = 2;

result<void> check_stage(const stage_spec& stage) {
  const auto& directory = std::get<command_program>(stage.program).output_directory;
  const auto there = names_in(directory);
  if (there.empty()) return {};
  std::optional<std::unordered_map<std::string, std::int64_t>> recorded;
  std::string first;
  bool is_folder = false;
  std::size_t count = 0;
  for (std::size_t p = 0; p < stage.arguments->size(); ++p) {
    const auto decoded = decode_command_arguments((*stage.arguments)[p]);
    if (!decoded) continue;
    for (const auto& name : decoded->outputs) {
      if (!there.contains(name.substr(0, name.find('/')))) continue;
      const auto by = made_by(directory, name).by;
      if (by == maker::unknown) return {}; // nor will the next file tell
      if (by != maker::somebody_else) continue;
      struct stat status {};
      if (::lstat((directory + "/" + name).c_str(), &status) != 0) continue;
      if (!recorded) recorded = recorded_outputs(directory);
      const auto known = recorded->find(name);
      if (S_ISREG(status.st_mode) && known != recorded->end() && status.st_ctim.tv_sec <= known->second + coarseness)
        continue;
      if (count++ > 0) continue;
      first = directory + "/" + name;
      is_folder = S_ISDIR(status.st_mode);
    }
  }
  if (count == 0) return {};
  const auto more = count == 1 ? "" : " (and " + std::to_string(count - 1) + " more)";
  if (is_folder)
    return make_error(ec::invalid_configuration, "stage " + stage.name + ": a folder lies at its output " + first +
                                                     more +
                                                     ", and outputs are files; move it to another place, or "
                                                     "give another output:");
  return make_error(ec::invalid_configuration,
                    "stage " + stage.name + ": its output " + first + " would replace a file that no job has made" +
                        more +
                        "; move what is there to another place, give another output:, or run it with "
                        "--overwrite");
}

} // namespace

result<void> check_replaced(const job_spec& job) {
  for (const auto& stage : job.stages) {
    if (stage.is_native() || !stage.arguments) continue;
    if (auto good = check_stage(stage); !good) return good;
  }
  return {};
}

} // namespace troupe
