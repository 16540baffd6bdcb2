#pragma once

/// Outputs of a job where something else lies.

#include <troupe/runtime/dag/job_spec.hpp>
#include <troupe/runtime/result.hpp>

namespace troupe {

/// Refuses a job whose outputs would replace what no job has made: neither marked (made_mark.hpp) nor recorded
/// (output_record.hpp) as they are now. Looks at the file systems of this machine; where they keep no marks, what is
/// not recorded may be anybody's, and is replaced. The error names one of the files, its stage and the cure.
result<void> check_replaced(const job_spec& job);

} // namespace troupe
