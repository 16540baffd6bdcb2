#pragma once

/// A native program whose table indices have been looked up and checked once per stage, so that a task only calls.

#include <string>
#include <string_view>
#include <vector>

#include <troupe/runtime/dag/job_spec.hpp>
#include <troupe/runtime/execution/function_table.hpp>
#include <troupe/runtime/result.hpp>

namespace troupe {

class task_context;

/// Immutable; any thread. Refers to the captures of the program it was made from, which outlives it.
class native_plan {
public:
  /// Error when an index is not in `table` or the operations are neither one task function nor source, narrow
  /// operations, terminal.
  static result<native_plan> make(const native_program& program, const function_table& table);

  /// Runs one task on the calling thread. @returns its result bytes; throws what the task throws
  std::string run(task_context& context, std::string_view argument) const;

private:
  native_plan() = default;

  struct narrow_step {
    narrow_function make;
    std::string_view captures;
  };

  task_function whole_ = nullptr; ///< set: the program is this alone
  source_function source_ = nullptr;
  terminal_function terminal_ = nullptr;
  std::string_view head_captures_; ///< of `whole_` or `source_`
  std::string_view terminal_captures_;
  std::vector<narrow_step> narrow_; ///< from the source on
};

} // namespace troupe
