#include <troupe/runtime/execution/staging_roots.hpp>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

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
  std::error_code failed;
  std::filesystem::create_directories(output_directory, failed);
  if (!failed && ::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) failed = {errno, std::generic_category()};
  if (failed) return make_error(ec::io, "cannot make " + path + ", where outputs would wait: " + failed.message());
  const std::lock_guard lock{mutex_};
  const auto known = stages_.find(stage);
  if (known == stages_.end()) {
    ::rmdir(path.c_str());
    return no_stage();
  }
  known->second.made = true;
  return path;
}

result<staging_place> staging_roots::place_for(stage_id stage, partition_index partition, attempt_number attempt) {
  auto root = root_of(stage);
  if (!root) return root.error();
  const auto parent = root->rfind('/');
  return place_of(options_.session, stage, partition, attempt, options_.executor, root->substr(0, parent));
}

std::optional<std::string> staging_roots::forget(stage_id stage) {
  const std::lock_guard lock{mutex_};
  const auto known = stages_.find(stage);
  if (known == stages_.end()) return {};
  std::optional<std::string> root;
  if (known->second.made) root = staging_root(options_.session, stage, known->second.output_directory);
  stages_.erase(known);
  return root;
}

} // namespace troupe
