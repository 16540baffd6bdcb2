#pragma once

/// The closed list of what the dag scheduler may ask its shell to do. Imperatives, compared by value in tests.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <troupe/runtime/allocation/allocation.hpp>
#include <troupe/runtime/dag/job_spec.hpp>
#include <troupe/runtime/events/event.hpp>
#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/scheduling/job_status.hpp>
#include <troupe/runtime/scheduling/orders.hpp>

namespace troupe::effects {

/// Send these orders to the executor.
struct send_orders {
  executor_id executor;
  executor_orders orders;
  bool operator==(const send_orders&) const = default;
};
/// An attempt of a command whose files its executor has staged, with all that says where.
struct staged_attempt {
  job_id job;
  stage_id stage;
  partition_index partition = 0;
  attempt_number attempt = 0;
  executor_id executor;
  std::shared_ptr<const std::variant<native_program, command_program>> program;
  std::shared_ptr<const packed_column> arguments; ///< of the stage, by partition
  bool operator==(const staged_attempt&) const = default;
};
/// Put the files of an accepted attempt in place, and answer with a `publication`. Of one task at most one at a time.
struct publish_staged {
  staged_attempt what;
  bool operator==(const publish_staged&) const = default;
};
/// Remove the staged files of an attempt that nobody needs.
struct discard_staged {
  staged_attempt what;
  bool operator==(const discard_staged&) const = default;
};
/// Tell the submitter that its job is over. First nothing more of it may be published: what was asked for and has not
/// begun is dropped, what is in hand is waited for, and all that is staged for `staged` goes.
struct complete_job {
  job_end end;
  std::vector<std::pair<stage_id, std::string>> staged = {}; ///< stages that may have staged files: output directories
  bool operator==(const complete_job&) const = default;
};
/// Drop what the commands of an ended job have left: nobody can ask for it any more.
struct forget_job {
  job_id job;
  bool operator==(const forget_job&) const = default;
};
/// Keep what the command of an attempt has printed whose executor was lost: nobody else can by now. See failure_logs.
struct keep_printed {
  job_id job;
  stage_id stage;
  partition_index partition = 0;
  attempt_number attempt = 0;
  std::string output_directory; ///< of its stage
  bool operator==(const keep_printed&) const = default;
};
/// This executor cannot go on: give it up like one that fell silent.
struct give_up_executor {
  executor_id executor;
  incarnation epoch = 0;
  std::string cause;
  bool lost = true; ///< messages to or from it got lost; else nothing that runs there is to blame
  bool operator==(const give_up_executor&) const = default;
};
/// Ask the allocator whether executors of these shapes can ever be had.
struct ask_feasibility {
  std::vector<executor_shape> shapes;
  bool operator==(const ask_feasibility&) const = default;
};
/// Tell the allocator what is wanted.
struct report_load {
  load_report report;
  bool operator==(const report_load&) const = default;
};
/// Add a fact to the session's history.
struct publish {
  events::any event;
  bool operator==(const publish&) const = default;
};

using any = std::variant<send_orders, complete_job, give_up_executor, ask_feasibility, report_load, publish,
                         publish_staged, discard_staged, forget_job, keep_printed>;
using list = std::vector<any>;

} // namespace troupe::effects
