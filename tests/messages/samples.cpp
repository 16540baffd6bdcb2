#include "samples.hpp"

#include <string>

namespace troupe::samples {

/// Stands for a field of any type. It has linkage, since clang warns of what is used in an unnamed namespace and not
/// defined.
struct anything {
  template <class T>
  operator T() const; // never called
};

namespace {

// -- samples that are filled field by field: one that gains a field does not compile until the field stands here
// --------

template <class T, class... Fields>
constexpr std::size_t field_count() {
  if constexpr (requires { T{Fields{}..., anything{}}; })
    return field_count<T, Fields..., anything>();
  else
    return sizeof...(Fields);
}

static_assert(field_count<job_progress>() == 8);
static_assert(field_count<job_spec>() == 7);
static_assert(field_count<block_takeover>() == 3);
static_assert(field_count<barrier_arrival>() == 7);
static_assert(field_count<barrier_release>() == 6);
static_assert(field_count<executor_capacity>() == 6);
static_assert(field_count<executor_info>() == 15);
static_assert(field_count<executor_orders>() == 20);
static_assert(field_count<executor_report>() == 10);
static_assert(field_count<publication>() == 5);
static_assert(field_count<publication_right>() == 4);
static_assert(field_count<job_results>() == 2);
static_assert(field_count<load_report>() == 5);
static_assert(field_count<outcome_batch>() == 17);
static_assert(field_count<partition_inputs>() == 5);
static_assert(field_count<result_location>() == 5);
static_assert(field_count<shuffle_input>() == 5);
static_assert(field_count<stage_install>() == 13);
static_assert(field_count<stage_progress>() == 17);
static_assert(field_count<stage_spec>() == 17);
static_assert(field_count<task_batch>() == 11);
static_assert(field_count<task_failure>() == 10);

const std::string nonce_a(32, '\xa5');
const std::string nonce_b(32, '\x00');            // zeros are bytes like any other
const std::string any_bytes{"\x00\xff/\xc3(", 5}; // not UTF-8

packed_column column(std::initializer_list<std::string_view> entries) {
  packed_column out;
  for (const auto entry : entries) out.push_back(entry);
  return out;
}

resource_profile full_profile() {
  resource_profile p;
  p.executor["cores"] = {4, "", ""};
  p.executor["gpu"] = {2, "/opt/find gpus", "nvidia.com"};
  p.task["cpus"] = share{share::units_per_whole / 3};
  p.executor["gpu-memory"] = {std::int64_t{40} << 30, "", "", true};
  p.task["gpu"] = share{500'000'000'000};
  p.task["gpu-memory"] = share::whole(share::max_whole);
  p.max_tasks_per_executor = 3;
  p.exclusive = true;
  p.memory_ceiling = std::int64_t{16} << 30;
  p.build = 12;
  resource_profile other;
  other.task["cpus"] = share::whole(16);
  p.alternatives = {other, resource_profile{}};
  return p;
}

allotment full_allotment() {
  allotment a;
  a.cpus = share::whole(2);
  a.resources["gpu"] = {{"0", share{250'000'000'000}}, {"GPU-1b2c", share::whole(1)}};
  a.resources["licence"] = {{"", share::whole(3)}};
  a.beside = {profile_id{5}, 3, true};
  return a;
}

executor_capacity full_capacity() {
  executor_capacity c;
  c.cores = 8;
  c.memory = std::int64_t{64} << 30;
  c.memory_overhead = 1;
  c.off_heap = 2;
  c.pyspark_memory = 3;
  c.custom["gpu"] = {2, {"0", "1"}};
  c.custom["licence"] = {5, {}};
  c.custom["gpu-memory"] = {std::int64_t{40} << 30, {}, true};
  return c;
}

block_endpoint full_endpoint() { return {executor_id{7}, 0xfedcba9876543210u, "host-a", 65535}; }

executor_exit full_exit() { return {exit_cause::memory_limit, -3, 9, 1 << 28, (1 << 28) - 1}; }

block_takeover full_takeover() {
  return {{executor_id{9}, 0x8000000000000003u, "10.0.0.9", 65535},
          {{stage_id{21}, 5, 1, 1ull << 40}, {stage_id{0xffffffffffffffffu}, 0, 0, 0}},
          true};
}

executor_info full_info() {
  executor_info i;
  i.executor = executor_id{7};
  i.epoch = 0x8000000000000001u;
  i.request = request_id{3};
  i.shape = shape_id{6};
  i.host = "host-a";
  i.pid = 4242;
  i.profile = full_profile();
  i.capacity = full_capacity();
  i.slots = 4;
  i.native = true;
  i.in_process = true;
  i.shuffle_service = true;
  i.build_id = "b:1f";
  i.blocks = full_endpoint();
  i.log_file = "/run/troupe/" + any_bytes;
  return i;
}

hello_proof full_proof() { return {nonce_a, nonce_b, std::string(32, 'p')}; }

resolved_profile full_resolved() {
  return {profile_id{5},
          shape_id{6},
          full_profile(),
          true,
          {{profile_id{7}, shape_id{8}, {}, false, {}, {}}},
          {{profile_id{8}, shape_id{9}, {}, false, {}, {}}}};
}

job_spec full_job() {
  job_spec j;
  j.name = "reads";
  j.profiles = {resource_profile{}, full_profile()};
  stage_spec map;
  map.name = "trim";
  map.profile = 1;
  map.tasks = 3;
  map.buckets = 2;
  map.program = native_program{"b:1f", {{11, any_bytes}, {12, ""}}};
  map.arguments = std::make_shared<const packed_column>(column({"a", "", any_bytes}));
  map.locations = std::make_shared<const packed_column>(column({"node1\nnode2/7", "", "node3"}));
  map.keep_results = false;
  map.timeout = std::chrono::seconds{5};
  map.task_timeout = std::chrono::nanoseconds{7};
  stage_spec reduce;
  reduce.name = "count";
  reduce.tasks = 2;
  reduce.dependencies = {{0, dependency_kind::shuffle}};
  reduce.program = native_program{"b:1f", {{13, "x"}}};
  reduce.barrier = true;
  reduce.sync_timeout = std::chrono::nanoseconds{11};
  stage_spec report;
  report.name = "report";
  report.tasks = 2;
  report.dependencies = {{1, dependency_kind::one_to_one}, {0, dependency_kind::all}};
  report.program = full_command();
  j.stages = {map, reduce, report};
  j.stages.back().carried = {{1, "map"}, {0, "filter"}};
  j.stages.back().cut_from = {{1, "parse"}};
  j.stages.back().indeterminate = true;
  j.stages[0].keeps = kept_dataset{{0x8000000000000001u, 4}, storage_level::disk};
  j.max_task_failures = 9;
  j.pool = "etl";
  j.on_profile_change = profile_change::by_matching;
  j.group = "nightly";
  return j;
}

stage_progress full_stage_progress() {
  stage_progress p;
  p.stage = stage_id{21};
  p.name = "align";
  p.profile = "executor: cores 4; task: cpus 1";
  p.profile_number = profile_id{5};
  p.state = stage_state::complete;
  p.attempt = 1;
  p.tasks = 100;
  p.running = 2;
  p.done = 97;
  p.failures = 3;
  p.executors = 4;
  p.run_nanoseconds = 5'000'000'000;
  p.cpu_nanoseconds = 4'000'000'000;
  p.peak_memory = 1 << 30;
  p.output_bytes = 77;
  p.wall_nanoseconds = 2'500'000'000;
  p.left = any_bytes;
  return p;
}

job_progress full_progress() {
  return {job_id{2}, "reads",          job_state::running, {full_stage_progress(), stage_progress{}},
          99,        "no gpu is free", "nightly",          {{"bad " + any_bytes, -7}, {"read", 1ll << 62}}};
}

result_location location(partition_index partition) {
  result_location l;
  l.partition = partition;
  l.attempt = 2;
  l.stage = stage_id{21};
  l.endpoint = full_endpoint();
  l.bytes = 1'000'000;
  return l;
}

stage_install full_install() {
  stage_install s;
  s.task_timeout = std::chrono::nanoseconds{9};
  s.stage = stage_id{21};
  s.stage_attempt = 1;
  s.job = job_id{2};
  s.name = "count";
  s.tasks = 4;
  s.buckets = 3;
  s.program =
      std::make_shared<const std::variant<native_program, command_program>>(native_program{"b:1f", {{13, "x"}}});
  shuffle_input input;
  input.shuffle = stage_id{20};
  input.endpoints = {full_endpoint(), block_endpoint{executor_id{8}, 1, "", 0}};
  input.endpoint_of_map = {0, 1, 1};
  input.attempt_of_map = {0, 300, 0};
  input.empty_of_map = std::make_shared<const packed_column>(column({"", any_bytes, "x"}));
  s.inputs = {input};
  s.gang = std::make_shared<const packed_column>(column({"host-a:4242", "host-b", "", any_bytes}));
  s.hands_on = true;
  s.keeps = cache_id{6};
  s.level = storage_level::memory_and_disk;
  return s;
}

barrier_arrival full_arrival() { return {stage_id{21}, 1, 5, 2, 3, sync_kind::all_gather, any_bytes}; }

task_batch range_batch() {
  task_batch b;
  b.stage = stage_id{21};
  b.lease = lease_id{31};
  b.first = 64;
  b.count = 256;
  return b;
}

std::vector<events::record> full_history() {
  std::vector<events::any> all{
      events::profile_added{profile_id{5}, full_profile()},
      events::job_submitted{job_id{2}, "reads", 3, stage_id{20}},
      events::job_ended{job_id{2}, job_state::failed, make_error(ec::task_failed, "stage 1")},
      events::stage_submitted{job_id{2}, stage_id{21}, 1, "align", profile_id{5}, 100},
      events::stage_completed{job_id{2}, stage_id{21}, 1, make_error(ec::cancelled, "why"), "align", profile_id{5}, 100,
                              2'500'000'000},
      events::lease_granted{lease_id{31}, executor_id{7}, profile_id{5}, full_allotment()},
      events::lease_released{lease_id{31}, executor_id{7}},
      events::lease_refused{lease_id{31}, executor_id{7}, "gpu 0 is taken"},
      events::tasks_succeeded{stage_id{21}, lease_id{31}, executor_id{7}, 256, 64},
      events::task_failed{stage_id{21}, 5, 1, executor_id{7}, task_status::lost, failure_cause::memory_limit,
                          any_bytes},
      events::executor_requested{request_id{3}, shape_id{6}, "cores 4"},
      events::executor_added{full_info(), profile_id{5}},
      events::executor_removed{executor_id{7}, "silent for 10s", true, full_exit()},
      events::map_output_lost{stage_id{20}, 4, executor_id{7}},
      events::attempt_overdue{job_id{2}, stage_id{21}, 5, 1, executor_id{7}, true, "it still runs"},
      events::task_escalated{stage_id{21}, 5, 1, executor_id{7}, profile_id{9}},
      events::speculative_task_submitted{stage_id{21}, 5, 1, executor_id{7}, 3},
      events::executor_excluded{executor_id{7}, "alpha", profile_id{3}, 2, 3'600'000'000'000, "exit code 1"},
      events::executor_readmitted{executor_id{7}, profile_id{3}, "its time is over"},
      events::node_excluded{"alpha", profile_id{3}, 2, 3'600'000'000'000, "exit code 1"},
      events::node_readmitted{"alpha", profile_id{3}, "its time is over"},
      events::stage_unschedulable{job_id{2}, stage_id{21}, profile_id{3}, "all 2 executors are excluded", 3},
      events::stage_restarted{job_id{2}, stage_id{21}, 1, "partition 2 failed", "align", profile_id{5}, 100,
                              2'500'000'000},
  };
  static_assert(std::variant_size_v<events::any> == 23, "a new event needs a sample here");
  std::vector<events::record> records;
  for (auto& event : all)
    records.push_back({records.size() + 1, -1'000'000'000 - static_cast<std::int64_t>(records.size()), event});
  return records;
}

} // namespace

task_batch scattered_batch() {
  task_batch b;
  b.stage = stage_id{21};
  b.stage_attempt = 1;
  b.lease = lease_id{31};
  b.count = 4;
  b.partitions = {9, 3, 4, 99'999'999};
  b.attempts = {0, 1, 0, 4'000'000'000};
  b.arguments = std::make_shared<const packed_column>(column({"unused", "nine", "", any_bytes, "last"}));
  b.argument_offset = 1;
  b.inputs = {{stage_id{20},
               cache_id{6},
               {{executor_id{7}, 0x8000000000000001u, "node1", 4711}, {executor_id{8}, 3, "", 0}},
               {1, 0, partition_inputs::nowhere, 1},
               {0, 4'000'000'000, 1, partition_inputs::kept}}};
  return b;
}

outcome_batch mixed_outcomes() {
  outcome_batch b;
  b.stage = stage_id{21};
  b.stage_attempt = 1;
  b.lease = lease_id{31};
  b.count = 4;
  b.first = 1;
  b.partitions = {9, 3, 4, 5};
  b.attempts = {0, 1, 2, 3};
  b.statuses = {task_status::succeeded, task_status::fetch_failed, task_status::succeeded, task_status::given_back};
  b.results = column({"one", "", any_bytes, ""});
  task_failure missing;
  missing.index = 1;
  missing.cause = failure_cause::signal;
  missing.message = "no such block";
  missing.stderr_text = any_bytes;
  missing.exit_code = -1;
  missing.signal = 9;
  missing.shuffle = stage_id{20};
  missing.map_partition = 4;
  missing.map_attempt = 1;
  missing.map_executor = executor_id{8};
  task_failure not_begun;
  not_begun.index = 3;
  b.failures = {missing, not_begun};
  b.run_nanoseconds = 1;
  b.cpu_nanoseconds = 2;
  b.peak_memory = 3;
  b.output_bytes = 4;
  b.accumulators = {"bad lines", any_bytes};
  b.counted = {{0, 1, -3}, {2, 0, 1ll << 62}, {2, 1, 5}};
  b.left = any_bytes;
  return b;
}

command_program full_command() {
  return {{"./merge", "{inputs}", "-o", any_bytes.substr(1)},
          {{"EMPTY", ""}, {"PATH", "/usr/bin"}},
          "/data/in",
          "/data/out"};
}

template <>
std::vector<hello> of() {
  return {{2, peer_role::services, "cluster", nonce_a}, {1, peer_role::executor, "", nonce_b}};
}
template <>
std::vector<hello_challenge> of() {
  return {{2, "cluster", "session", nonce_a, nonce_b}};
}
template <>
std::vector<executor_registration> of() {
  executor_registration full{full_proof(), full_info(), "session", {}, {}};
  full.running = {{stage_id{21}, 5, 1, lease_id{31}}, {stage_id{22}, 0, 0, lease_id{32}}};
  full.blocks = {{stage_id{20}, 4, 1, std::uint64_t{1} << 40}};
  return {full, {full_proof(), {}, "", {}, {}}};
}
template <>
std::vector<peer_registration> of() {
  return {{full_proof(), peer_role::services, "host-a:4242", 0x8000000000000001u}};
}
template <>
std::vector<welcome> of() {
  return {{"session", executor_id{7}, 1'000'000'000, 10'000'000'000}, {}};
}
template <>
std::vector<goodbye> of() {
  return {{executor_id{7}, 0xffffffffffffffffu, any_bytes}, {}};
}
template <>
std::vector<acknowledged> of() {
  return {{}};
}
template <>
std::vector<stop_session> of() {
  return {{"asked to", true}, {}};
}
template <>
std::vector<driver_heartbeat> of() {
  return {{12, 7}, {}};
}
template <>
std::vector<executor_heartbeat> of() {
  return {{executor_id{7}, 0x8000000000000001u, 12, 34, 5, 6, 7, 8}, {}};
}
template <>
std::vector<executor_info> of() {
  return {full_info(), {}};
}
template <>
std::vector<executor_orders> of() {
  executor_orders full;
  full.epoch = 0x8000000000000001u;
  full.sequence = 17;
  full.revoked = {lease_id{29}, lease_id{30}};
  full.removed_stages = {stage_id{1}, stage_id{0xffffffffffffffffu}};
  full.late_stages = {stage_id{0xffffffffffffffffu}};
  full.kills = {{stage_id{21}, 5, 1}, {}};
  full.recalled = {lease_id{32}, lease_id{33}};
  full.gone = {executor_id{8}, executor_id{0xffffffffffffffffu}};
  full.grants = {{lease_id{31}, std::make_shared<const resource_profile>(full_profile()), full_allotment()}};
  auto command = full_install();
  command.program = std::make_shared<const std::variant<native_program, command_program>>(full_command());
  full.installs = {full_install(), command};
  full.batches = {scattered_batch(), range_batch()};
  full.consumed = {{stage_id{20}, 9, 1, 0}, {stage_id{20}, 10, 0, 77}};
  full.barriers = {
      {stage_id{21}, 1, 3, {0, 2}, std::make_shared<const packed_column>(column({"a", "", any_bytes})), ""},
      {stage_id{22}, 0, 0, {99'999'999}, nullptr, "task 5 has failed"},
      {}};
  full.takeovers = {full_takeover(), {}};
  full.withdrawn = {{0x8000000000000001u, 3}, {}};
  full.unkept = {cache_id{6}, cache_id{0xffffffffffffffffu}};
  full.forgotten_jobs = {job_id{7}, job_id{0xffffffffffffffffu}};
  full.surplus = {{cache_id{7}, 0xfffffffeu}, {cache_id{8}, 0}};
  full.rights = {{stage_id{21}, 5, 1, {"one", "a/b"}}, {}};
  full.stop = true;
  return {full, {}};
}
template <>
std::vector<executor_report> of() {
  executor_report full;
  full.taken_over = {full_takeover(), {}};
  full.evicted = {{cache_id{6}, 4'000'000'000}, {}};
  full.executor = executor_id{7};
  full.epoch = 0x8000000000000001u;
  full.orders_seen = 17;
  full.refusals = {{lease_id{31}, stage_id{21}, {5, 6}, {0, 1}, "another build", true}, {}};
  full.outcomes = {std::make_shared<const outcome_batch>(mixed_outcomes()),
                   std::make_shared<const outcome_batch>(outcome_batch{})};
  full.overdue = {{stage_id{21}, 5, 1, lease_id{31}, job_id{2}, "align", 10'000'000'000, true}, {}};
  full.arrivals = {full_arrival(), {}};
  full.publications = {{stage_id{21}, 5, 1, publication_outcome::failed, "no space left"},
                       {stage_id{21}, 6, 0, publication_outcome::not_seen, ""},
                       {}};
  return {full, {}};
}
template <>
std::vector<barrier_arrival> of() {
  return {full_arrival(), {}};
}
template <>
std::vector<outcome_batch> of() {
  return {mixed_outcomes(), {}};
}
template <>
std::vector<job_submission> of() {
  return {{std::make_shared<const job_spec>(full_job()), {full_resolved(), {}}},
          {std::make_shared<const job_spec>(), {}}};
}
template <>
std::vector<job_accepted> of() {
  return {{job_id{2}}, {}};
}
template <>
std::vector<job_progress> of() {
  return {full_progress(), {}};
}
template <>
std::vector<job_end> of() {
  job_end full{job_id{2}, make_error(ec::internal, "why"), full_progress(), nullptr, 17};
  job_results results;
  results.values = column({"a", "", any_bytes, ""});
  results.elsewhere = {location(1), location(3)};
  full.results = std::make_shared<const job_results>(results);
  return {full, {}};
}
template <>
std::vector<cancel_job> of() {
  return {{job_id{2}, "Ctrl-C"}, {}};
}
template <>
std::vector<cancel_stage> of() {
  return {{job_id{2}, 1, "by hand"}, {}};
}
template <>
std::vector<cancel_group> of() {
  return {{"nightly", "by hand"}, {}};
}
template <>
std::vector<cancelled_jobs> of() {
  return {{{job_id{2}, job_id{0xffffffffffffffffu}}}, {}};
}
template <>
std::vector<withdraw_broadcast> of() {
  return {{{0x8000000000000001u, 3}}, {}};
}
template <>
std::vector<release_results> of() {
  return {{job_id{2}}, {}};
}
template <>
std::vector<register_profiles> of() {
  return {{"node 1", {full_profile(), {}}, {{{1, "map"}, {0, "filter"}}, {}}, profile_change::merge}, {}};
}
template <>
std::vector<registered_profiles> of() {
  return {{{full_resolved(), {}}}, {}};
}
template <>
std::vector<load_report> of() {
  load_report full;
  full.number = 4;
  full.new_shapes = {{shape_id{6}, full_profile()}};
  full.loads = {{shape_id{6}, 10, 2, true}, {}};
  full.idle = {{executor_id{7}, request_id{3}, 60'000'000'000, true, true, true}, {}};
  full.present = {request_id{3}, request_id{4}};
  return {full, {}};
}
template <>
std::vector<feasibility_query> of() {
  return {{{{shape_id{6}, full_profile()}, {}}}, {}};
}
template <>
std::vector<feasibility_answer> of() {
  return {{{{false, true, "needs gpu 1, no host has any", 0}, {true, true, "", 3}}}, {}};
}
template <>
std::vector<release_request> of() {
  return {{executor_id{7}}, {}};
}
template <>
std::vector<release_answer> of() {
  return {{executor_id{7}, true, true, "busy"}, {}};
}
template <>
std::vector<exit_query> of() {
  return {{request_id{3}}, {}};
}
template <>
std::vector<exit_answer> of() {
  return {{request_id{3}, full_exit()}, {}};
}
template <>
std::vector<launch_report> of() {
  return {{{{request_id{3}, shape_id{6}, launch_state::refused, "exit code 3", full_exit()}, {}}}, {}};
}
template <>
std::vector<allocation_report> of() {
  return {{{{shape_id{6}, 1, 2, allocation_obstacle::room}, {}}}, {}};
}
template <>
std::vector<explain_query> of() {
  return {{job_id{2}}, {}};
}
template <>
std::vector<job_explanation> of() {
  explained_choice choice;
  choice.profile = profile_id{3};
  choice.content = any_bytes;
  choice.asked_for = false;
  choice.executors = 5;
  choice.fit = 2;
  choice.slots = 8;
  choice.free_slots = 1;
  choice.clauses = {{"gpu 1", 2}, {}};
  choice.hindrances = {{hindrance::refused, 1, "for 900ms"}, {}};
  choice.nearest = explained_nearest{executor_id{7}, "alpha", {"needs gpu 1, has 0"}};
  choice.holders = {{job_id{1}, 2, "map", 3}, {}};
  choice.allocation = "2 more are wanted";
  choice.edit = "leave gpu out";
  explained_task_set set{
      "alone", 4, any_bytes, {{"then its job fails", "troupe.key", 1'000}, {"x", "y", -1}}, {choice, {}}};
  explained_stage stage{stage_id{21}, 1, "map", stage_state::running, 9, 4, 3, 2, any_bytes, {set, {}}};
  const explained_failure failure{3, true, 4, 1, executor_id{7}, "alpha", any_bytes};
  return {{job_id{2}, "job", job_state::running, any_bytes, {stage, {}}, {failure, {}}, 5}, {}};
}
template <>
std::vector<status_query> of() {
  return {{false, false}, {true, true}};
}
template <>
std::vector<cluster_status> of() {
  cluster_status full{"cluster", "session", "local-cluster[2,4,8g]", {}, {full_progress()}, 3};
  full.executors = {{full_info(), "draining", 1, 2, 3, 4, 5}};
  return {full, {}};
}
template <>
std::vector<placement_query> of() {
  return {{job_id{2}}, {}};
}
template <>
std::vector<placement_answer> of() {
  return {{{{stage_id{21}, 5, 3, 1, executor_id{7}, "host-a", full_allotment()}, {}}}, {}};
}
template <>
std::vector<subscribe_events> of() {
  return {{100, 1000}, {}};
}
template <>
std::vector<event_batch> of() {
  return {{full_history(), 9}, {}};
}
template <>
std::vector<subscription_cut_off> of() {
  return {{12}, {}};
}

} // namespace troupe::samples
