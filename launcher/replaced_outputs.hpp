#pragma once

/// Outputs of a job where something else lies.

#include <troupe/runtime/dag/job_spec.hpp>
#include <troupe/runtime/result.hpp>

namespace troupe {

/// Refuses a job whose outputs would replace what no job has made: neither marked (made_mark.hpp) nor recorded
/// (output_record.hpp) as they are now; or what another job has made, of another name and another file, as far as that
/// is recorded. Looks at the file systems of this machine; where they keep no marks, what is not recorded may be the
/// user's, and is refused as well. The error has a line for
/// each stage and kind, with one of the files and the cure.
/// @param job_file of this job, as it is recorded
result<void> check_replaced(const job_spec& job, const std::string& job_file);

} // namespace troupe
