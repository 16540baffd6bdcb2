#include <troupe/runtime/execution/staging_roots.hpp>

#include <algorithm>

#include <troupe/runtime/execution/output_publication.hpp>
#include <troupe/runtime/execution/staging_journal.hpp>

namespace troupe {

namespace {

/// Folders that are remembered beyond the stage that they were made for: they were not empty then, but may be when
/// another executor has ended its part.
constexpr std::size_t most_remembered = 64;

error no_stage() { return make_error(ec::cancelled, "its job is over: the executor has forgotten its stage"); }

bool leads_to(const made_folder& folder, const std::string& root) { return root.starts_with(folder.path + "/"); }

} // namespace

staging_roots::staging_roots(options opts)
  : options_([&] {
      if (!opts.journal.empty()) opts.journal += std::to_string(opts.executor.value);
      return std::move(opts);
    }()) {}

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
  if (auto completed = complete_earlier_publications(output_directory, options_.session); !completed)
    return completed.error();
  remove_stale_staging(output_directory, options_.session, options_.now());
  const auto missing = folders_missing_for(path);
  if (auto noted = note(path, missing); !noted) return noted.error();
  const auto made = make_root(path);
  if (!made) {
    if (!is_made(stage)) drop(path);
    return made.error();
  }
  note_made(path, *made, !missing.empty());
  {
    const std::lock_guard lock{mutex_};
    if (const auto known = stages_.find(stage); known != stages_.end()) {
      known->second.made = true;
      return path;
    }
  }
  remove(path, true);
  return no_stage();
}

result<staging_place> staging_roots::place_for(stage_id stage, partition_index partition, attempt_number attempt) {
  auto root = root_of(stage);
  if (!root) return root.error();
  const auto own = root->rfind('/');
  return place_of(options_.session, stage, partition, attempt, options_.executor,
                  root->substr(0, root->rfind('/', own - 1)));
}

std::optional<std::string> staging_roots::forget(stage_id stage) {
  const std::lock_guard lock{mutex_};
  const auto known = stages_.find(stage);
  if (known == stages_.end()) return {};
  std::optional<std::string> made;
  if (known->second.made) made = staging_root(options_.session, stage, known->second.output_directory);
  stages_.erase(known);
  return made;
}

void staging_roots::remove(const std::string& root, bool is_over) {
  remove_own_staging(root, options_.executor);
  if (!is_over) return; // noted still, for who finds an empty root of a driver that was killed
  remove_empty_root(root);
  drop(root);
}

/// The folders of a root that is not there any more, and what is noted of it.
void staging_roots::drop(const std::string& root) {
  const std::lock_guard lock{files_mutex_};
  std::erase(roots_, root);
  remove_idle_folders();
  static_cast<void>(write()); // else more is noted than there is
}

bool staging_roots::is_made(stage_id stage) {
  const std::lock_guard lock{mutex_};
  const auto known = stages_.find(stage);
  return known != stages_.end() && known->second.made;
}

result<void> staging_roots::note(const std::string& root, const std::vector<made_folder>& missing) {
  const std::lock_guard lock{files_mutex_};
  if (std::find(roots_.begin(), roots_.end(), root) == roots_.end()) roots_.push_back(root);
  for (const auto& folder : missing) {
    std::erase_if(folders_, [&](const made_folder& known) { return known.path == folder.path; });
    folders_.push_back(folder);
  }
  return write();
}

/// Another thread may have forgotten the stage and removed the root since it was noted, and the folders with it: then
/// `made` names some that are noted no more.
void staging_roots::note_made(const std::string& root, const std::vector<made_folder>& made, bool were_missing) {
  const std::lock_guard lock{files_mutex_};
  for (auto& folder : folders_)
    if (folder.inode == 0 && leads_to(folder, root)) folder = identified(folder.path);
  bool is_new = std::find(roots_.begin(), roots_.end(), root) == roots_.end();
  if (is_new) roots_.push_back(root);
  for (const auto& folder : made) {
    if (std::find(folders_.begin(), folders_.end(), folder) != folders_.end()) continue;
    if (identified(folder.path) != folder)
      continue; // somebody has removed it, and another thread may have noted a new one
    std::erase_if(folders_, [&](const made_folder& known) { return known.path == folder.path; });
    folders_.push_back(folder);
    is_new = true;
  }
  if (were_missing || is_new) static_cast<void>(write()); // which tells one of the same name apart later
}

/// Those in which none of the roots lies. @pre `files_mutex_` is held
void staging_roots::remove_idle_folders() {
  std::vector<std::size_t> idle;
  for (std::size_t i = 0; i < folders_.size(); ++i)
    if (std::none_of(roots_.begin(), roots_.end(), [&](const auto& other) { return leads_to(folders_[i], other); }))
      idle.push_back(i);
  std::stable_sort(idle.begin(), idle.end(), [&](std::size_t a, std::size_t b) { // the innermost first
    return folders_[a].path.size() > folders_[b].path.size();
  });
  std::vector<bool> goes(folders_.size(), false);
  for (const auto i : idle) goes[i] = remove_made_folder(folders_[i]);
  auto too_many = idle.size() - static_cast<std::size_t>(std::count(goes.begin(), goes.end(), true));
  std::vector<made_folder> stay;
  for (std::size_t i = 0; i < folders_.size(); ++i) {
    if (goes[i]) continue;
    const bool is_idle = std::find(idle.begin(), idle.end(), i) != idle.end();
    if (is_idle && too_many-- > most_remembered) continue; // the oldest
    stay.push_back(std::move(folders_[i]));
  }
  folders_ = std::move(stay);
}

/// @pre `files_mutex_` is held
result<void> staging_roots::write() {
  if (options_.journal.empty()) return {};
  return write_staging_journal(options_.journal, options_.executor, roots_, folders_);
}

} // namespace troupe
