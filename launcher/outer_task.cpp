#include <troupe/launcher/outer_task.hpp>

#include <cstdlib>
#include <string_view>

#include <unistd.h>

#include <troupe/runtime/config/task_variables.hpp>

namespace troupe {

std::string waits_for_its_own_task(const std::string& session_id) {
  const char* const all = std::getenv(sessions_variable.data());
  if (all == nullptr || session_id.empty() ||
      (":" + std::string{all} + ":").find(":" + session_id + ":") == std::string::npos)
    return "";
  return "this runs in a task of the same cluster, and that task keeps what it holds while it waits here: where "
         "too few other executors are free, both wait for ever; let the task depend on a stage instead, or give this "
         "job a cluster of its own, as with --master 'local[2]'";
}

std::string replaced_variables() {
  if (std::getenv("TROUPE_ATTEMPT") != nullptr && std::getenv("TROUPE_SESSION") != nullptr) return "";
  std::string names;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view text{*entry};
    const auto name = text.substr(0, text.find('='));
    if (is_task_variable(name)) (names += names.empty() ? "" : ", ") += name;
  }
  if (names.empty()) return "";
  return "commands do not see " + names +
         " as set in the environment: Troupe sets variables of these names for each task (docs/job-files.md)";
}

} // namespace troupe
