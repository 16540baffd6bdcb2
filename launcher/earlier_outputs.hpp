#pragma once

/// Files of earlier runs that a command of this one would find where it looks for what this run makes.

#include <string>
#include <vector>

#include <troupe/runtime/dag/job_spec.hpp>

namespace troupe {

/// A sentence for each stage one of whose commands names the folder of outputs, another stage's part of it, or
/// something in there, where other runs have left files that this one does not make. Looks at paths (named_paths.hpp)
/// in words of `run` and values of `environment`, with variables as the stage's `environment` or this process has them,
/// and at the file systems of this machine. What is meant cannot be told: it may be to sum up what many runs have made.
std::vector<std::string> what_earlier_runs_have_left(const job_spec& job);

} // namespace troupe
