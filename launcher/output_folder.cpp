#include <troupe/launcher/output_folder.hpp>

#include <cstddef>
#include <filesystem>
#include <system_error>
#include <utility>

#include <sys/stat.h>

#include <troupe/launcher/record_file.hpp>
#include <troupe/launcher/record_line.hpp>
#include <troupe/runtime/execution/staged_outputs.hpp>

namespace troupe {
namespace {

namespace fs = std::filesystem;

/// Files that are looked for in one directory.
constexpr std::size_t most_walked = 2'000'000;
/// Seconds by which a change may be noted later than the run that has made it has ended.
constexpr std::int64_t lag_of_changes = 2;

} // namespace

bool each_output_in(const std::string& output_directory, const std::function<void(std::string name)>& each) {
  const fs::path directory{output_directory};
  std::error_code failed;
  std::size_t count = 0;
  for (fs::recursive_directory_iterator entry{directory, failed}, end; !failed && entry != end;
       entry.increment(failed)) {
    if (++count > most_walked) return false;
    std::error_code gone;
    if (entry->path().filename().string().starts_with(own_folder)) {
      entry.disable_recursion_pending(); // of this directory's jobs, or of others that write below it
    } else if (!entry->is_symlink(gone) && entry->is_regular_file(gone)) {
      each(entry->path().lexically_relative(directory).string());
    }
  }
  return !failed;
}

std::vector<recorded_output> recorded_jobs(const std::string& output_directory) {
  std::vector<recorded_output> out;
  const fs::path directory{output_directory};
  const auto file = record_file::look_at(directory.parent_path().string(), directory.filename().string());
  const bool whole = file && file->read([&](const std::string& text) {
    if (text.find("\"job\":") == text.npos) return; // a task's, of which there may be a million
    if (auto line = parse_line(text); line && !line->outputs)
      out.push_back({std::move(line->job), std::move(line->file), seconds_of(line->ended)});
  });
  if (!whole) out.clear();
  return out;
}

std::unordered_map<std::string, recorded_output> recorded_outputs(const std::string& output_directory) {
  std::unordered_map<std::string, recorded_output> runs;
  std::unordered_map<std::string, std::string> run_of; // by output
  const fs::path directory{output_directory};
  const auto file = record_file::look_at(directory.parent_path().string(), directory.filename().string());
  const bool whole = file && file->read([&](const std::string& text) {
    auto line = parse_line(text);
    if (!line) return;
    if (!line->outputs)
      runs.insert_or_assign(std::move(line->run),
                            recorded_output{std::move(line->job), std::move(line->file), seconds_of(line->ended)});
    else
      for (auto& name : *line->outputs) run_of.emplace(std::move(name), line->run); // the latest run comes first
  });
  if (!whole) return {};
  std::unordered_map<std::string, recorded_output> out;
  for (auto& [name, run] : run_of)
    if (const auto known = runs.find(run); known != runs.end()) out.emplace(name, known->second);
  return out;
}

known_output who_made(const std::string& output_directory, const std::string& name,
                      const std::unordered_map<std::string, recorded_output>& recorded) {
  const known_output marked{made_by(output_directory, name).by, {}, {}};
  const auto known = recorded.find(name);
  struct stat status {};
  if (known == recorded.end() || ::lstat((output_directory + "/" + name).c_str(), &status) != 0 ||
      !S_ISREG(status.st_mode) || status.st_ctim.tv_sec > known->second.ended + lag_of_changes)
    return marked;
  // Where files are marked the mark knows better, but for those with other names, which get none.
  if (marked.by == maker::somebody_else && status.st_nlink == 1) return marked;
  return {maker::task, known->second.job, known->second.file};
}

} // namespace troupe
