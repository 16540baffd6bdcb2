#include <troupe/runtime/execution/staging_roots.hpp>

#include <troupe/runtime/execution/staging_journal.hpp>
#include <troupe/runtime/execution/staging_root.hpp>

namespace troupe {

namespace {

error no_stage() { return make_error(ec::cancelled, "its job is over: the executor has forgotten its stage"); }

} // namespace

void staging_roots::install(stage_id stage, const std::string& output_directory) {
  const std::lock_guard lock{mutex_};
  stages_.try_emplace(stage, known_stage{output_directory, false});
}

result<std::string> staging_roots::root_of(stage_id stage) {
  std::string output_directory;
  {
    const std::lock_guard lock{mutex_};
    const auto known = stages_.find(stage);
    if (known == stages_.end()) return no_stage();
    if (known->second.made) return staging_root(options_.session, stage, known->second.output_directory);
    output_directory = known->second.output_directory;
  }
  return make(stage, output_directory);
}

/// Not under the mutex: the file system may be slow, and other stages on another one.
result<std::string> staging_roots::make(stage_id stage, const std::string& output_directory) {
  auto path = staging_root(options_.session, stage, output_directory);
  auto folders = folders_missing_for(path);
  if (!options_.journal.empty())
    if (auto noted = note_root(options_.journal, options_.executor, path, folders); !noted) return noted.error();
  if (auto made = make_root(path); !made) return made.error();
  const std::lock_guard lock{mutex_};
  const auto known = stages_.find(stage);
  if (known == stages_.end()) {
    remove_empty_root(path);
    remove_empty_folders(std::move(folders));
    return no_stage();
  }
  known->second.made = true;
  known->second.folders = std::move(folders);
  return path;
}

result<staging_place> staging_roots::place_for(stage_id stage, partition_index partition, attempt_number attempt) {
  auto root = root_of(stage);
  if (!root) return root.error();
  const auto parent = root->rfind('/');
  return place_of(options_.session, stage, partition, attempt, options_.executor, root->substr(0, parent));
}

std::optional<made_root> staging_roots::forget(stage_id stage) {
  const std::lock_guard lock{mutex_};
  const auto known = stages_.find(stage);
  if (known == stages_.end()) return {};
  std::optional<made_root> made;
  if (known->second.made)
    made = {staging_root(options_.session, stage, known->second.output_directory), std::move(known->second.folders)};
  stages_.erase(known);
  return made;
}

} // namespace troupe
