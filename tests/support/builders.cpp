#include <troupe/tests/support/builders.hpp>

#include <stdexcept>

#include <troupe/runtime/scheduling/command_arguments.hpp>

namespace troupe::testing {

namespace {

constexpr std::int64_t gib = std::int64_t{1} << 30;

std::string sized(char tag, std::uint64_t bytes) {
  std::string entry(1, tag);
  for (int i = 0; i < 8; ++i) entry.push_back(static_cast<char>(bytes >> (8 * i) & 0xff));
  return entry;
}

} // namespace

resource_profile default_test_profile() {
  resource_profile p;
  p.executor.emplace("cores", executor_request{1, {}, {}});
  p.executor.emplace("memory", executor_request{gib, {}, {}});
  p.task.emplace("cpus", share::whole(1));
  return p;
}

resource_profile make_profile(amounts executor, shares task) {
  resource_profile p;
  for (const auto& [name, amount] : executor) p.executor[name] = {amount, {}, {}};
  for (const auto& [name, text] : task) {
    const auto amount = parse_share(text);
    if (!amount) throw std::logic_error(amount.error().message);
    p.task[name] = *amount;
  }
  p = complete(p, default_test_profile());
  if (auto ok = validate(p); !ok) throw std::logic_error(ok.error().message);
  return p;
}

executor_builder::executor_builder() {
  info_.host = "host";
  info_.native = true;
  info_.build_id = "build";
  info_.profile = default_test_profile();
  info_.capacity.cores = 1;
  info_.capacity.memory = 64 * gib;
  info_.capacity.memory_overhead = gib;
  info_.capacity.off_heap = gib;
}

executor_builder& executor_builder::cores(std::int64_t n) {
  info_.capacity.cores = n;
  return *this;
}

executor_builder& executor_builder::memory(std::int64_t bytes) {
  info_.capacity.memory = bytes;
  return *this;
}

executor_builder& executor_builder::custom(const std::string& name, std::int64_t n) {
  auto& pool = info_.capacity.custom[name];
  pool.amount = n;
  pool.addresses.clear();
  for (std::int64_t i = 0; i < n; ++i) pool.addresses.push_back(std::to_string(i));
  return *this;
}

executor_builder& executor_builder::started_for(const resource_profile& profile) {
  info_.profile = profile;
  info_.capacity = capacity_of(profile);
  for (const auto& [name, pool] : executor_capacity{info_.capacity}.custom)
    if (!pool.counted) custom(name, pool.amount);
  return *this;
}

executor_builder& executor_builder::request(std::uint64_t id) {
  info_.request = {id};
  return *this;
}

executor_builder& executor_builder::shape(shape_id id) {
  info_.shape = id;
  return *this;
}

executor_builder& executor_builder::host(std::string name) {
  info_.host = std::move(name);
  return *this;
}

executor_builder& executor_builder::shuffle_service() {
  info_.shuffle_service = true;
  info_.host.clear();
  return *this;
}

executor_builder& executor_builder::in_process() {
  info_.in_process = true;
  return *this;
}

executor_builder& executor_builder::commands_only() {
  info_.native = false;
  info_.build_id.clear();
  return *this;
}

executor_builder& executor_builder::build(std::string id) {
  info_.build_id = std::move(id);
  return *this;
}

executor_info executor_builder::make(executor_id id, incarnation epoch) const {
  auto info = info_;
  info.executor = id;
  info.epoch = epoch;
  info.slots = slots_of(info.capacity, info.profile).slots;
  info.blocks = {id, epoch, info.host, 4000};
  return info;
}

job_builder::job_builder(std::string name) {
  job_.name = std::move(name);
  job_.profiles.emplace_back();
}

job_builder& job_builder::profile(resource_profile p) {
  job_.profiles.push_back(std::move(p));
  return *this;
}

job_builder& job_builder::group(std::string name) {
  job_.group = std::move(name);
  return *this;
}

job_builder& job_builder::max_failures(std::uint32_t n) {
  job_.max_task_failures = n;
  return *this;
}

job_builder& job_builder::in_pool(std::string name) {
  job_.pool = std::move(name);
  return *this;
}

stage_spec& job_builder::last() {
  if (job_.stages.empty()) throw std::logic_error("the job has no stage yet");
  return job_.stages.back();
}

job_builder& job_builder::stage(std::string name, std::uint32_t tasks) {
  stage_spec s;
  s.name = std::move(name);
  s.tasks = tasks;
  s.program = native_program{"build", {operation{0, {}}}};
  job_.stages.push_back(std::move(s));
  return *this;
}

job_builder& job_builder::with(std::uint32_t profile) {
  last().profile = profile;
  return *this;
}

job_builder& job_builder::timeout(duration t) {
  last().timeout = t;
  return *this;
}

job_builder& job_builder::buckets(std::uint32_t n) {
  last().buckets = n;
  return *this;
}

job_builder& job_builder::prefers(std::vector<std::string> each) {
  auto column = std::make_shared<packed_column>();
  for (const auto& one : each) column->push_back(one);
  last().locations = std::move(column);
  return *this;
}

job_builder& job_builder::after(std::uint32_t parent, dependency_kind kind) {
  last().dependencies.push_back({parent, kind});
  return *this;
}

job_builder& job_builder::command() {
  last().program = command_program{{"true"}, {}, "/", "/"};
  return *this;
}

job_builder& job_builder::outputs(const std::string& directory) {
  last().program = command_program{{"true"}, {}, "/", directory};
  std::vector<std::string> each;
  for (std::uint32_t p = 0; p < last().tasks; ++p)
    each.push_back(encode_command_arguments({{}, {"out-" + std::to_string(p)}}));
  return arguments(std::move(each));
}

job_builder& job_builder::build_id(std::string id) {
  std::get<native_program>(last().program).build_id = std::move(id);
  return *this;
}

job_builder& job_builder::arguments(std::vector<std::string> each) {
  auto column = std::make_shared<packed_column>();
  for (const auto& a : each) column->push_back(a);
  last().arguments = std::move(column);
  return *this;
}

job_builder& job_builder::indeterminate() {
  last().indeterminate = true;
  return *this;
}

job_builder& job_builder::keeps(broadcast_id dataset, storage_level level) {
  last().keeps = {dataset, level};
  return *this;
}

job_builder& job_builder::barrier(duration sync_timeout) {
  last().barrier = true;
  last().sync_timeout = sync_timeout;
  return *this;
}

std::shared_ptr<const job_spec> job_builder::make() const {
  if (auto ok = validate(job_); !ok) throw std::logic_error(ok.error().message);
  return std::make_shared<const job_spec>(job_);
}

std::string inline_result(std::string_view value) { return std::string(1, '\0') + std::string{value}; }
std::string stored_result(std::uint64_t bytes) { return sized('\1', bytes); }
std::string map_result(std::uint64_t bytes, std::string_view buckets) {
  return sized('\2', bytes) + std::string{buckets};
}

} // namespace troupe::testing
