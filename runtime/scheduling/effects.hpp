#pragma once

/// The closed list of what the dag scheduler may ask its shell to do. Imperatives, compared by value in tests.

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include <troupe/runtime/allocation/allocation.hpp>
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
/// Tell the submitter that its job is over.
struct complete_job {
  job_end end;
  bool operator==(const complete_job&) const = default;
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

using any = std::variant<send_orders, complete_job, give_up_executor, ask_feasibility, report_load, publish>;
using list = std::vector<any>;

} // namespace troupe::effects
