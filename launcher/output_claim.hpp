#pragma once

/// One run at a time for each output: of two, each would take the other's for its own.

#include <optional>
#include <set>
#include <string>

#include <troupe/launcher/destination.hpp>
#include <troupe/launcher/run_directory.hpp>
#include <troupe/runtime/dag/job_spec.hpp>
#include <troupe/runtime/result.hpp>

namespace troupe {

/// That a process runs the job which makes these files. Goes with the object, or with the process. Known to processes
/// of this user on this machine; of very many outputs the first ones are claimed, which are those of a second run of
/// the job as well. One thread.
class output_claim {
public:
  /// @param base of the run directories, where the claim lies
  /// @param cluster on whose file systems the outputs are to lie; "": on those of this machine
  /// @param others where else such claims may lie
  /// Error invalid_configuration: another process has claimed one, and goes on for some seconds. Nothing is claimed
  /// where nothing can be made in `base`, which the session itself will say.
  static result<output_claim> take(const job_spec& job, const std::string& base, const std::string& cluster,
                                   std::set<std::string> others = usual_bases());

private:
  std::optional<run_directory> held_;
};

} // namespace troupe
