#include <troupe/launcher/replaced_outputs.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <unordered_set>
#include <variant>

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

result<void> check_stage(const stage_spec& stage) {
  const auto& directory = std::get<command_program>(stage.program).output_directory;
  const auto there = names_in(directory);
  if (there.empty()) return {};
  std::optional<std::unordered_set<std::string>> recorded;
  std::string first;
  std::size_t count = 0;
  for (std::size_t p = 0; p < stage.arguments->size(); ++p) {
    const auto decoded = decode_command_arguments((*stage.arguments)[p]);
    if (!decoded) continue;
    for (const auto& name : decoded->outputs) {
      if (!there.contains(name.substr(0, name.find('/')))) continue;
      if (made_by(directory, name).by != maker::somebody_else) continue;
      if (!recorded) recorded = recorded_outputs(directory);
      if (recorded->contains(name)) continue;
      if (count++ == 0) first = directory + "/" + name;
    }
  }
  if (count == 0) return {};
  return make_error(ec::invalid_configuration,
                    "stage " + stage.name + ": its output " + first + " would replace " +
                        (count == 1 ? "a file" : "a file, and others " + std::to_string(count - 1) + " more,") +
                        " that no job has made; move what is there to another place, give another output:, or run it "
                        "with --overwrite");
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
