#include <troupe/runtime/events/event_json.hpp>

#include <cstdlib>
#include <type_traits>
#include <utility>

#include <nlohmann/json.hpp>

namespace troupe::events {
namespace {

using json = nlohmann::ordered_json;

constexpr std::int64_t bytes_per_mebibyte = std::int64_t{1} << 20;

std::int64_t milliseconds(std::int64_t nanoseconds) { return nanoseconds / 1'000'000; }

/// As Spark writes it: executors are named by texts.
std::string name_of(executor_id executor) { return std::to_string(executor.value); }

bool is_memory(std::string_view name) { return is_builtin_executor_resource(name) && name != resource_names::cores; }

double number_of(share amount) { return std::strtod(to_decimal(amount).c_str(), nullptr); }

json requests_of(const resource_profile& profile) {
  json executor = json::object();
  for (const auto& [name, request] : profile.executor) {
    auto& one = executor[name] = {{"Resource Name", name},
                                  {"Amount", request.amount},
                                  {"Discovery Script", request.discovery_script},
                                  {"Vendor", request.vendor}};
    if (is_memory(name)) {
      const auto whole = request.amount / bytes_per_mebibyte;
      one["Amount"] = whole + (request.amount % bytes_per_mebibyte == 0 ? 0 : 1);
      one["Bytes"] = request.amount;
    }
    if (request.counted) one["Counted"] = true;
  }
  json task = json::object();
  for (const auto& [name, amount] : profile.task) task[name] = {{"Resource Name", name}, {"Amount", number_of(amount)}};
  json out = {{"Executor Resource Requests", std::move(executor)}, {"Task Resource Requests", std::move(task)}};
  if (profile.max_tasks_per_executor > 0) out["Max Tasks Per Executor"] = profile.max_tasks_per_executor;
  if (profile.exclusive) out["Exclusive"] = true;
  if (profile.memory_ceiling > 0) out["Memory Ceiling"] = profile.memory_ceiling;
  for (const auto& alternative : profile.alternatives) out["Alternatives"].push_back(requests_of(alternative));
  return out;
}

json failure_of(const error& why) {
  return {{"Result", "JobFailed"}, {"Exception", {{"Message", why.message}, {"Stack Trace", json::array()}}}};
}

/// What is known of a stage attempt, without its end.
template <class Event>
json stage_info(const Event& e, std::int64_t submitted) {
  return {{"Stage ID", e.stage.value},
          {"Stage Attempt ID", e.attempt},
          {"Stage Name", e.name},
          {"Number of Tasks", e.tasks},
          {"RDD Info", json::array()},
          {"Parent IDs", json::array()},
          {"Details", ""},
          {"Submission Time", milliseconds(submitted)},
          {"Accumulables", json::array()},
          {"Resource Profile Id", e.profile.value}};
}

/// The end of a stage attempt. `failure`: why it failed, "" where it has not.
template <class Event>
json completion_of(const Event& e, std::int64_t now, const std::string& failure) {
  auto info = stage_info(e, now - static_cast<std::int64_t>(e.nanoseconds));
  info["Completion Time"] = milliseconds(now);
  if (!failure.empty()) info["Failure Reason"] = failure;
  return {{"Stage Info", std::move(info)}, {"Job ID", e.job.value}, {"Duration Nanoseconds", e.nanoseconds}};
}

json resources_of(const executor_capacity& capacity) {
  json out = json::object();
  for (const auto& [name, pool] : capacity.custom)
    out[name] = {{"name", name}, {"addresses", pool.addresses}, {"amount", pool.amount}};
  return out;
}

json allotment_of(const allotment& holding) {
  json resources = json::object();
  for (const auto& [name, shares] : holding.resources)
    for (const auto& one : shares)
      resources[name].push_back({{"Address", one.address}, {"Amount", number_of(one.amount)}});
  return {{"CPUs", number_of(holding.cpus)}, {"Resources", std::move(resources)}};
}

json exit_of(const executor_exit& exit) {
  return {{"Cause", to_string(exit)},
          {"Exit Code", exit.exit_code},
          {"Signal", exit.signal},
          {"Memory Limit", exit.memory_limit},
          {"Peak Memory", exit.peak_memory}};
}

/// Name and members of each event that only Troupe has or that Spark writes by hand. One overload per event, so that a
/// new one without a form does not compile.
struct form {
  std::string name;
  json members;
};

struct forms {
  std::int64_t now; ///< unix nanoseconds

  /// What Spark leaves to its JSON library.
  static std::string by_class(std::string_view name) {
    return "org.apache.spark.scheduler.SparkListener" + std::string{name};
  }

  form operator()(const profile_added& e) const {
    json members = {{"Resource Profile Id", e.profile.value}};
    members.update(requests_of(e.content));
    return {"SparkListenerResourceProfileAdded", std::move(members)};
  }
  form operator()(const job_submitted& e) const {
    json stages = json::array();
    for (std::uint32_t i = 0; i < e.stages; ++i) stages.push_back(e.first_stage.value + i);
    return {"SparkListenerJobStart",
            {{"Job ID", e.job.value},
             {"Submission Time", milliseconds(now)},
             {"Stage IDs", std::move(stages)},
             {"Properties", {{"spark.job.description", e.name}}}}};
  }
  form operator()(const job_ended& e) const {
    const bool well = e.state == job_state::succeeded;
    return {"SparkListenerJobEnd",
            {{"Job ID", e.job.value},
             {"Completion Time", milliseconds(now)},
             {"Job Result", well ? json{{"Result", "JobSucceeded"}} : failure_of(e.failure)},
             {"State", to_string(e.state)},
             {"Error", to_string(e.failure.code)}}};
  }
  form operator()(const stage_submitted& e) const {
    return {"SparkListenerStageSubmitted",
            {{"Stage Info", stage_info(e, now)}, {"Properties", json::object()}, {"Job ID", e.job.value}}};
  }
  form operator()(const stage_completed& e) const {
    auto members = completion_of(e, now, e.failure.message);
    members["Error"] = to_string(e.failure.code);
    return {"SparkListenerStageCompleted", std::move(members)};
  }
  form operator()(const stage_restarted& e) const {
    auto members = completion_of(e, now, e.reason);
    members["Restarted"] = true;
    return {"SparkListenerStageCompleted", std::move(members)};
  }
  form operator()(const lease_granted& e) const {
    return {"TroupeLeaseGranted",
            {{"Lease ID", e.lease.value},
             {"Executor ID", name_of(e.executor)},
             {"Resource Profile Id", e.profile.value},
             {"Holding", allotment_of(e.holding)}}};
  }
  form operator()(const lease_released& e) const {
    return {"TroupeLeaseReleased", {{"Lease ID", e.lease.value}, {"Executor ID", name_of(e.executor)}}};
  }
  form operator()(const lease_refused& e) const {
    return {"TroupeLeaseRefused",
            {{"Lease ID", e.lease.value}, {"Executor ID", name_of(e.executor)}, {"Reason", e.reason}}};
  }
  form operator()(const tasks_succeeded& e) const {
    return {"TroupeTasksSucceeded",
            {{"Stage ID", e.stage.value},
             {"Lease ID", e.lease.value},
             {"Executor ID", name_of(e.executor)},
             {"Number of Tasks", e.count},
             {"First Partition ID", e.first}}};
  }
  form operator()(const task_failed& e) const {
    return {"TroupeTaskFailed",
            {{"Stage ID", e.stage.value},
             {"Partition ID", e.partition},
             {"Attempt", e.attempt},
             {"Executor ID", name_of(e.executor)},
             {"Status", to_string(e.status)},
             {"Cause", to_string(e.cause)},
             {"Message", e.message}}};
  }
  form operator()(const speculative_task_submitted& e) const {
    return {by_class("SpeculativeTaskSubmitted"),
            {{"stageId", e.stage.value},
             {"stageAttemptId", e.stage_attempt},
             {"taskIndex", e.partition},
             {"partitionId", e.partition},
             {"Attempt", e.attempt},
             {"Executor ID", name_of(e.executor)}}};
  }
  form operator()(const task_escalated& e) const {
    return {"TroupeTaskEscalated",
            {{"Stage ID", e.stage.value},
             {"Partition ID", e.partition},
             {"Attempt", e.attempt},
             {"Executor ID", name_of(e.executor)},
             {"Resource Profile Id", e.profile.value}}};
  }
  form operator()(const attempt_overdue& e) const {
    return {"TroupeAttemptOverdue",
            {{"Job ID", e.job.value},
             {"Stage ID", e.stage.value},
             {"Partition ID", e.partition},
             {"Attempt", e.attempt},
             {"Executor ID", name_of(e.executor)},
             {"Executor Replaced", e.replaced},
             {"Message", e.message}}};
  }
  form operator()(const executor_requested& e) const {
    return {"TroupeExecutorRequested",
            {{"Request ID", e.request.value}, {"Shape ID", e.shape.value}, {"Resource Profile", e.profile}}};
  }
  form operator()(const executor_added& e) const {
    const auto& i = e.info;
    json info = {{"Host", i.host},
                 {"Total Cores", i.capacity.cores},
                 {"Log Urls", json::object()},
                 {"Attributes", {{"PID", std::to_string(i.pid)}, {"BUILD_ID", i.build_id}}},
                 {"Resources", resources_of(i.capacity)}};
    if (!i.log_file.empty()) info["Log Urls"]["log"] = i.log_file;
    if (e.profile) info["Resource Profile Id"] = e.profile->value;
    info["Registration Time"] = milliseconds(now);
    return {"SparkListenerExecutorAdded",
            {{"Executor ID", name_of(i.executor)},
             {"Executor Info", std::move(info)},
             {"Request ID", i.request.value},
             {"Shape ID", i.shape.value},
             {"Incarnation", i.epoch},
             {"Memory", container_memory(i.capacity)},
             {"Slots", i.slots},
             {"Native", i.native},
             {"In Process", i.in_process},
             {"Block Endpoint", i.blocks.host + ":" + std::to_string(i.blocks.port)},
             {"Resource Profile", to_string(i.profile)}}};
  }
  form operator()(const executor_removed& e) const {
    json members = {{"Executor ID", name_of(e.executor)}, {"Removed Reason", e.cause}, {"Lost", e.lost}};
    if (e.exit.cause != exit_cause::unknown) members["Exit"] = exit_of(e.exit);
    return {"SparkListenerExecutorRemoved", std::move(members)};
  }
  form operator()(const executor_excluded& e) const {
    return {by_class("ExecutorExcluded"),
            {{"time", milliseconds(now)},
             {"executorId", name_of(e.executor)},
             {"taskFailures", e.failed_tasks},
             {"Host", e.host},
             {"Resource Profile Id", e.profile.value},
             {"At Most Nanoseconds", e.nanoseconds},
             {"Last Failure", e.failure}}};
  }
  form operator()(const executor_readmitted& e) const {
    return {by_class("ExecutorUnexcluded"),
            {{"time", milliseconds(now)},
             {"executorId", name_of(e.executor)},
             {"Resource Profile Id", e.profile.value},
             {"Reason", e.cause}}};
  }
  form operator()(const node_excluded& e) const {
    return {by_class("NodeExcluded"),
            {{"time", milliseconds(now)},
             {"hostId", e.host},
             {"executorFailures", e.excluded_executors},
             {"Resource Profile Id", e.profile.value},
             {"At Most Nanoseconds", e.nanoseconds},
             {"Last Failure", e.failure}}};
  }
  form operator()(const node_readmitted& e) const {
    return {by_class("NodeUnexcluded"),
            {{"time", milliseconds(now)},
             {"hostId", e.host},
             {"Resource Profile Id", e.profile.value},
             {"Reason", e.cause}}};
  }
  form operator()(const stage_unschedulable& e) const {
    return {by_class("UnschedulableTaskSetAdded"),
            {{"stageId", e.stage.value},
             {"stageAttemptId", e.attempt},
             {"Job ID", e.job.value},
             {"Resource Profile Id", e.profile.value},
             {"Reason", e.reason}}};
  }
  form operator()(const map_output_lost& e) const {
    return {"TroupeMapOutputLost",
            {{"Stage ID", e.stage.value}, {"Partition ID", e.partition}, {"Executor ID", name_of(e.executor)}}};
  }
};

std::string line_of(const json& members) { return members.dump(-1, ' ', false, json::error_handler_t::replace); }

} // namespace

std::string to_json(const record& event) {
  auto what = std::visit(forms{event.unix_nanoseconds}, event.content);
  json out = {{"Event", std::move(what.name)},
              {"Number", event.number},
              {"Timestamp", milliseconds(event.unix_nanoseconds)},
              {"Unix Nanoseconds", event.unix_nanoseconds}};
  out.update(what.members);
  return line_of(out);
}

std::string log_start_to_json(std::string_view version, std::string_view session, std::int64_t unix_nanoseconds) {
  return line_of({{"Event", "TroupeLogStart"},
                  {"Troupe Version", version},
                  {"Session ID", session},
                  {"Timestamp", milliseconds(unix_nanoseconds)},
                  {"Unix Nanoseconds", unix_nanoseconds}});
}

std::string missing_to_json(std::uint64_t first, std::uint64_t last, std::int64_t unix_nanoseconds) {
  return line_of({{"Event", "TroupeEventsMissing"},
                  {"First Number", first},
                  {"Last Number", last},
                  {"Number of Events", last - first + 1},
                  {"Timestamp", milliseconds(unix_nanoseconds)},
                  {"Unix Nanoseconds", unix_nanoseconds}});
}

} // namespace troupe::events
