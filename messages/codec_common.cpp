// Ids, failures, columns, resources, endpoints: what other messages are made of.

#include <troupe/messages/wire_parts.hpp>

namespace troupe::wire {

void write_attempt(stage_id stage, partition_index partition, attempt_number attempt, pb::AttemptId& out) {
  out.set_stage(stage.value);
  out.set_partition(partition);
  out.set_attempt(attempt);
}

void read_attempt(const pb::AttemptId& in, attempt_ref out) {
  out.stage.value = in.stage();
  out.partition = in.partition();
  out.attempt = in.attempt();
}

void write(const error& in, pb::Failure& out, const place& at) {
  out.set_code(static_cast<std::uint32_t>(in.code));
  out.set_message(at.text("message", in.message));
}

void read(const pb::Failure& in, error& out, const place& at) {
  out.code = at.enumerator("code", in.code(), last_code);
  out.message = at.text("message", in.message());
}

void write(const packed_column& in, pb::PackedColumn& out, const place& at) {
  if (!in.is_well_formed()) return at.fail("has ends that do not fit its data");
  write_numbers(in.ends, *out.mutable_ends());
  out.set_data(in.data);
}

void read(const pb::PackedColumn& in, packed_column& out, const place& at) {
  read_numbers(in.ends(), out.ends);
  out.data = in.data();
  if (!out.is_well_formed()) at.fail("has ends that do not fit its data");
}

// -- resources
// ---------------------------------------------------------------------------------------------------------

namespace {

/// The name that a repeated entry goes by in a map; empty and repeated ones are faults.
template <class Map>
auto& entry(Map& map, const std::string& name, const place& at) {
  const auto [position, fresh] = map.try_emplace(at.name("name", name));
  if (name.empty()) at.fail("name", "is empty");
  if (!fresh) at.fail("name", "repeats an earlier one");
  return position->second;
}

void write(share in, pb::Share& out, const place& at) {
  const int128 whole = in.units / share::units_per_whole;
  if (in.units < 0) return at.fail("is negative");
  if (whole > share::max_whole) return at.fail("is above 2^63 - 1");
  out.set_whole(static_cast<std::int64_t>(whole));
  out.set_fraction(static_cast<std::int64_t>(in.units % share::units_per_whole));
}

void read(const pb::Share& in, share& out, const place& at) {
  const auto fraction = at.amount("fraction", in.fraction());
  if (fraction >= share::units_per_whole) return at.fail("fraction", "is not below 10^12");
  out.units = share::whole(at.amount("whole", in.whole())).units + fraction;
}

} // namespace

void write(const resource_profile& in, pb::ResourceProfile& out, const place& at) {
  for (const auto& [name, request] : in.executor) {
    const place here{at, "executor"};
    auto& entry = *out.add_executor();
    entry.set_name(here.name("name", name));
    entry.set_amount(here.amount("amount", request.amount));
    entry.set_discovery_script(here.text("discovery_script", request.discovery_script));
    entry.set_vendor(here.name("vendor", request.vendor));
    entry.set_counted(request.counted);
  }
  for (const auto& [name, amount] : in.task) {
    const place here{at, "task"};
    auto& entry = *out.add_task();
    entry.set_name(here.name("name", name));
    write(amount, *entry.mutable_amount(), place{here, "amount"});
  }
  out.set_max_tasks_per_executor(at.amount("max_tasks_per_executor", in.max_tasks_per_executor));
  out.set_exclusive(in.exclusive);
  out.set_memory_ceiling(at.amount("memory_ceiling", in.memory_ceiling));
  out.set_build(in.build);
  write_list(in.alternatives, *out.mutable_alternatives(), at, "alternatives");
}

void read(const pb::ResourceProfile& in, resource_profile& out, const place& at) {
  if (!at.fits("executor", static_cast<std::size_t>(in.executor_size())) ||
      !at.fits("task", static_cast<std::size_t>(in.task_size())))
    return;
  for (const auto& from : in.executor()) {
    const place here{at, "executor"};
    auto& request = entry(out.executor, from.name(), here);
    request.amount = here.amount("amount", from.amount());
    request.discovery_script = here.text("discovery_script", from.discovery_script());
    request.vendor = here.name("vendor", from.vendor());
    request.counted = from.counted();
  }
  for (const auto& from : in.task()) {
    const place here{at, "task"};
    read(from.amount(), entry(out.task, from.name(), here), place{here, "amount"});
  }
  out.max_tasks_per_executor = at.amount("max_tasks_per_executor", in.max_tasks_per_executor());
  out.exclusive = in.exclusive();
  out.memory_ceiling = at.amount("memory_ceiling", in.memory_ceiling());
  out.build = in.build();
  for (const auto& alternative : in.alternatives())
    if (alternative.alternatives_size() > 0) return at.fail("alternatives", "have alternatives themselves");
  read_list(in.alternatives(), out.alternatives, at, "alternatives");
}

void write(const executor_capacity& in, pb::ExecutorCapacity& out, const place& at) {
  out.set_cores(at.amount("cores", in.cores));
  out.set_memory(at.amount("memory", in.memory));
  out.set_memory_overhead(at.amount("memory_overhead", in.memory_overhead));
  out.set_off_heap(at.amount("off_heap", in.off_heap));
  out.set_pyspark_memory(at.amount("pyspark_memory", in.pyspark_memory));
  for (const auto& [name, pool] : in.custom) {
    const place here{at, "custom"};
    auto& entry = *out.add_custom();
    entry.set_name(here.name("name", name));
    entry.set_amount(here.amount("amount", pool.amount));
    write_texts(pool.addresses, *entry.mutable_addresses(), here, "addresses");
    entry.set_counted(pool.counted);
  }
}

void read(const pb::ExecutorCapacity& in, executor_capacity& out, const place& at) {
  out.cores = at.amount("cores", in.cores());
  out.memory = at.amount("memory", in.memory());
  out.memory_overhead = at.amount("memory_overhead", in.memory_overhead());
  out.off_heap = at.amount("off_heap", in.off_heap());
  out.pyspark_memory = at.amount("pyspark_memory", in.pyspark_memory());
  if (!at.fits("custom", static_cast<std::size_t>(in.custom_size()))) return;
  for (const auto& from : in.custom()) {
    const place here{at, "custom"};
    auto& pool = entry(out.custom, from.name(), here);
    pool.amount = here.amount("amount", from.amount());
    read_texts(from.addresses(), pool.addresses, here, "addresses");
    pool.counted = from.counted();
  }
}

static void write(const address_share& in, pb::AddressShare& out, const place& at) {
  out.set_address(at.text("address", in.address));
  write(in.amount, *out.mutable_amount(), place{at, "amount"});
}

static void read(const pb::AddressShare& in, address_share& out, const place& at) {
  out.address = at.text("address", in.address());
  read(in.amount(), out.amount, place{at, "amount"});
}

void write(const allotment& in, pb::Allotment& out, const place& at) {
  write(in.cpus, *out.mutable_cpus(), place{at, "cpus"});
  for (const auto& [name, shares] : in.resources) {
    const place here{at, "resources"};
    auto& entry = *out.add_resources();
    entry.set_name(here.name("name", name));
    write_list(shares, *entry.mutable_shares(), here, "shares");
  }
  if (in.beside == tenancy{}) return;
  auto& beside = *out.mutable_beside();
  beside.set_profile(in.beside.profile.value);
  beside.set_most(place{at, "beside"}.amount("most", in.beside.most));
  beside.set_exclusive(in.beside.exclusive);
}

void read(const pb::Allotment& in, allotment& out, const place& at) {
  read(in.cpus(), out.cpus, place{at, "cpus"});
  if (!at.fits("resources", static_cast<std::size_t>(in.resources_size()))) return;
  for (const auto& from : in.resources()) {
    const place here{at, "resources"};
    read_list(from.shares(), entry(out.resources, from.name(), here), here, "shares");
  }
  if (!in.has_beside()) return;
  out.beside.profile.value = in.beside().profile();
  out.beside.most = place{at, "beside"}.amount("most", in.beside().most());
  out.beside.exclusive = in.beside().exclusive();
}

void write(const resolved_profile& in, pb::ResolvedProfile& out, const place& at) {
  out.set_profile(in.profile.value);
  out.set_shape(in.shape.value);
  write(in.content, *out.mutable_content(), place{at, "content"});
  write_list(in.alternatives, *out.mutable_alternatives(), at, "alternatives");
  write_list(in.escalations, *out.mutable_escalations(), at, "escalations");
  out.set_any_executor(in.any_executor);
}

void read(const pb::ResolvedProfile& in, resolved_profile& out, const place& at) {
  out.profile.value = in.profile();
  out.shape.value = in.shape();
  read(in.content(), out.content, place{at, "content"});
  for (const auto& alternative : in.alternatives())
    if (alternative.alternatives_size() > 0) return at.fail("alternatives", "have alternatives themselves");
  // Neither of these can be nested without end.
  for (const auto& more : in.escalations())
    if (more.alternatives_size() > 0 || more.escalations_size() > 0)
      return at.fail("escalations", "have alternatives or escalations themselves");
  read_list(in.alternatives(), out.alternatives, at, "alternatives");
  read_list(in.escalations(), out.escalations, at, "escalations");
  out.any_executor = in.any_executor();
}

void write(const carried_profile& in, pb::CarriedProfile& out, const place& at) {
  out.set_profile(in.profile);
  out.set_dataset(at.name("dataset", in.dataset));
}

void read(const pb::CarriedProfile& in, carried_profile& out, const place& at) {
  out.profile = in.profile();
  out.dataset = at.name("dataset", in.dataset());
}

static void write(const std::vector<carried_profile>& in, pb::ProfileMeeting& out, const place& at) {
  write_list(in, *out.mutable_carried(), at, "carried");
}

static void read(const pb::ProfileMeeting& in, std::vector<carried_profile>& out, const place& at) {
  read_list(in.carried(), out, at, "carried");
}

static void write(const register_profiles& in, pb::RegisterProfiles& out, const place& at) {
  out.set_submitter(at.name("submitter", in.submitter));
  write_list(in.profiles, *out.mutable_profiles(), at, "profiles");
  write_list(in.meetings, *out.mutable_meetings(), at, "meetings");
  out.set_on_profile_change(static_cast<pb::ProfileChange>(in.on_profile_change));
}

static void read(const pb::RegisterProfiles& in, register_profiles& out, const place& at) {
  out.submitter = at.name("submitter", in.submitter());
  read_list(in.profiles(), out.profiles, at, "profiles");
  read_list(in.meetings(), out.meetings, at, "meetings");
  out.on_profile_change = at.enumerator("on_profile_change", in.on_profile_change(), profile_change::by_matching);
}

static void write(const registered_profiles& in, pb::RegisteredProfiles& out, const place& at) {
  write_list(in.profiles, *out.mutable_profiles(), at, "profiles");
}

static void read(const pb::RegisteredProfiles& in, registered_profiles& out, const place& at) {
  read_list(in.profiles(), out.profiles, at, "profiles");
}

// -- endpoints
// ---------------------------------------------------------------------------------------------------------

void write(const held_block& in, pb::HeldBlock& out, const place&) {
  write_attempt(in.stage, in.partition, in.attempt, *out.mutable_attempt());
  out.set_bytes(in.bytes);
}

void read(const pb::HeldBlock& in, held_block& out, const place&) {
  read_attempt(in.attempt(), {out.stage, out.partition, out.attempt});
  out.bytes = in.bytes();
}

storage_level read_level(std::uint32_t number, const place& at) {
  if (!is_storage_level(number)) at.fail("level", "has the unknown number " + std::to_string(number));
  return static_cast<storage_level>(number);
}

void write(const broadcast_id& in, pb::BroadcastId& out, const place&) {
  out.set_program(in.program);
  out.set_number(in.number);
}

void read(const pb::BroadcastId& in, broadcast_id& out, const place&) {
  out.program = in.program();
  out.number = in.number();
}

void write(const block_endpoint& in, pb::BlockEndpoint& out, const place& at) {
  out.set_executor(in.executor.value);
  out.set_epoch(in.epoch);
  out.set_host(at.name("host", in.host));
  out.set_port(in.port);
}

void read(const pb::BlockEndpoint& in, block_endpoint& out, const place& at) {
  out.executor.value = in.executor();
  out.epoch = in.epoch();
  out.host = at.name("host", in.host());
  if (in.port() > std::numeric_limits<std::uint16_t>::max())
    at.fail("port", "is " + std::to_string(in.port()) + ", at most 65535 is possible");
  out.port = static_cast<std::uint16_t>(in.port());
}

} // namespace troupe::wire

TROUPE_WIRE_FORM(register_profiles, RegisterProfiles)
TROUPE_WIRE_FORM(registered_profiles, RegisteredProfiles)
