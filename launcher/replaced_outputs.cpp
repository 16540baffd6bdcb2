#include <troupe/launcher/replaced_outputs.hpp>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

#include <sys/stat.h>

#include <troupe/launcher/output_folder.hpp>
#include <troupe/runtime/execution/made_mark.hpp>
#include <troupe/runtime/scheduling/command_arguments.hpp>

namespace troupe {
namespace {

namespace fs = std::filesystem;

/// A name as a folder may have it that takes names which differ by case for one. Of other alphabets nothing is known.
std::string without_case(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : static_cast<unsigned char>(c) >= 128 ? '?' : c;
  });
  return name;
}

/// The first parts of all names in a folder; nothing where it cannot be listed, which says nothing of its files.
std::optional<std::unordered_set<std::string>> names_in(const std::string& directory) {
  std::unordered_set<std::string> out;
  std::error_code failed;
  for (fs::directory_iterator entry{directory, failed}, end; !failed && entry != end; entry.increment(failed))
    out.insert(without_case(entry->path().filename().string()));
  if (failed && failed != std::errc::no_such_file_or_directory && failed != std::errc::not_a_directory) return {};
  return out;
}

/// What would be replaced, and by how much it is.
struct replaced {
  std::string first;
  std::size_t count = 0;

  void add(const std::string& path) {
    if (count++ == 0) first = path;
  }
  std::string text() const { return first + (count == 1 ? "" : " (and " + std::to_string(count - 1) + " more)"); }
};

/// Adds a sentence for each way in which outputs of the stage would replace what they may not.
void check_stage(const job_spec& job, const std::string& job_file, const stage_spec& stage,
                 std::vector<std::string>& faults) {
  const auto& directory = std::get<command_program>(stage.program).output_directory;
  const auto there = names_in(directory);
  if (there && there->empty()) return;
  const auto is_another = [&](const auto& made) {
    std::error_code none; // a file that is no more may have become this one
    return !made.file.empty() && made.file != job_file && made.job != job.name && fs::exists(made.file, none);
  };
  const auto jobs = recorded_jobs(directory);
  const bool any_other = std::any_of(jobs.begin(), jobs.end(), is_another);
  std::optional<std::unordered_map<std::string, recorded_output>> recorded;
  replaced folders;
  replaced of_nobody;
  replaced of_unknown; // by the record alone: times of a file server may be ahead or behind
  replaced of_another;
  std::string another; // that has made the first of these
  for (std::size_t p = 0; p < stage.arguments->size(); ++p) {
    const auto decoded = decode_command_arguments((*stage.arguments)[p]);
    if (!decoded) continue;
    for (const auto& name : decoded->outputs) {
      if (there && !there->contains(without_case(name.substr(0, name.find('/'))))) continue;
      const auto by = made_by(directory, name).by;
      if (by == maker::nobody || (by == maker::task && !any_other)) continue;
      if (!recorded) recorded = recorded_outputs(directory);
      const auto made = who_made(directory, name, *recorded);
      const auto path = directory + "/" + name;
      struct stat status {};
      if (made.by == maker::somebody_else && ::lstat(path.c_str(), &status) == 0)
        (S_ISDIR(status.st_mode) ? folders : of_nobody).add(path);
      else if (made.by == maker::unknown && !recorded->contains(name))
        of_unknown.add(path);
      else if (made.by == maker::task && is_another(made)) {
        if (of_another.count == 0) another = made.job + " (" + made.file + ")";
        of_another.add(path);
      }
    }
  }
  const auto add = [&](const std::string& what) { faults.push_back("stage " + stage.name + ": " + what); };
  if (folders.count > 0)
    add("a folder lies at its output " + folders.text() +
        ", and outputs are files; move it to another place, or give another output:");
  if (of_nobody.count > 0)
    add("its output " + of_nobody.first + " would replace a file that no job has made" +
        of_nobody.text().substr(of_nobody.first.size()) +
        "; move what is there to another place, give another output:, or run it with --overwrite");
  if (of_unknown.count > 0)
    add("its output " + of_unknown.text() +
        " would replace what is there, and nothing tells whether a job has made that: its file system keeps no marks, "
        "and no record names it; move it to another place, give another output:, or run it with --overwrite");
  if (of_another.count > 0)
    add("its output " + of_another.text() + " would replace what job " + another +
        " has made; give another output:, or run it with --overwrite");
}

} // namespace

result<void> check_replaced(const job_spec& job, const std::string& job_file) {
  std::vector<std::string> faults; // all, since --overwrite takes all
  for (const auto& stage : job.stages)
    if (!stage.is_native() && stage.arguments) check_stage(job, job_file, stage, faults);
  if (faults.empty()) return {};
  std::string text;
  for (const auto& fault : faults) text += (text.empty() ? "" : "\n") + fault;
  return make_error(ec::invalid_configuration, text);
}

} // namespace troupe
