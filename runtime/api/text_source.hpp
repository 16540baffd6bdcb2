#pragma once

/// Sources that read text files.

#include <troupe/runtime/dag/job_spec.hpp>

namespace troupe::detail {

/// Source of the lines that begin in the file ranges of the task's argument, without their line ends (`\n` or `\r\n`);
/// what they hold is not looked at: bytes that are no UTF-8 are as good as others. A file that cannot be read, or is
/// shorter than it was, fails the task.
operation text_lines_source();
/// Source of (path, content) of the files whose paths are in the task's argument.
operation whole_text_source();

} // namespace troupe::detail
