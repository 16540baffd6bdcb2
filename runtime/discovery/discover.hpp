#pragma once

/// Which addresses of a custom resource this machine has: a list from the configuration, else a script, else (for
/// `gpu`) built-in probing. Asked once, when an executor or node starts; blocks the calling thread.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/runtime/discovery/run_program.hpp>
#include <troupe/runtime/result.hpp>
#include <troupe/runtime/time.hpp>

namespace troupe {

/// What is looked for and where.
struct discovery_request {
  std::string resource;
  std::optional<std::int64_t> amount; ///< so many are needed; nothing: whatever there is
  std::vector<std::string> addresses; ///< from the configuration; not empty: these and no others
  std::string script;                 ///< path of a program that prints `resource_information` as JSON; empty: none
  duration time_out = std::chrono::seconds{10};
};

/// What was found.
struct discovered_resource {
  std::vector<std::string> addresses; ///< unique; exactly `amount` of them where one was asked for
  std::string origin;                 ///< `list`, `nvidia-smi`, the script's path, or `none`
  std::vector<std::string> notes;     ///< what a log should say: addresses left unused, a probe that failed

  bool operator==(const discovered_resource&) const = default;
};

/// The world as discovery sees it.
struct discovery_io {
  program_runner run;
  std::function<std::optional<std::string>(const std::string& name)> variable;     ///< of the environment
  std::function<std::optional<std::string>(const std::string& name)> find_program; ///< path by the directories in PATH
};
/// The real one.
discovery_io system_discovery_io();

/// Looks. An amount of 0 looks nowhere. Of more addresses than needed the first ones are taken, which a note says;
/// fewer are an error (ec::infeasible) that lists them. A listed GPU that the inherited CUDA_VISIBLE_DEVICES
/// hides is one too; one that a script finds is left out, with a note.
/// A script that does not exist, fails, takes too long or prints something else is an error
/// (ec::invalid_configuration) that names it, its exit code and the first line of its standard error. Probing for GPUs
/// asks `nvidia-smi`; without it, or when it fails, there are none. It finds what the inherited CUDA_VISIBLE_DEVICES
/// leaves visible, under the names that it uses. ec::invalid_configuration for a resource with neither list, script nor
/// probe.
result<discovered_resource> discover(const discovery_request& request, const discovery_io& io);

} // namespace troupe
