#include <troupe/runtime/api/resource_profile_builder.hpp>

#include <atomic>
#include <stdexcept>
#include <utility>

namespace troupe {
namespace {

error broken(std::string message) { return make_error(ec::invalid_profile, std::move(message)); }

} // namespace

executor_resource_requests& executor_resource_requests::cores(std::int64_t count) {
  return resource(std::string{resource_names::cores}, count);
}

executor_resource_requests& executor_resource_requests::memory(std::string_view size) {
  return sized(resource_names::memory, size);
}

executor_resource_requests& executor_resource_requests::memory_overhead(std::string_view size) {
  return sized(resource_names::memory_overhead, size);
}

executor_resource_requests& executor_resource_requests::off_heap(std::string_view size) {
  return sized(resource_names::off_heap, size);
}

executor_resource_requests& executor_resource_requests::pyspark_memory(std::string_view size) {
  return sized(resource_names::pyspark_memory, size);
}

executor_resource_requests& executor_resource_requests::resource(std::string name, std::int64_t amount,
                                                                 std::string discovery_script, std::string vendor) {
  requests_[std::move(name)] = {amount, std::move(discovery_script), std::move(vendor)};
  return *this;
}

executor_resource_requests& executor_resource_requests::resource(std::string name, std::string_view amount,
                                                                 std::string discovery_script, std::string vendor) {
  if ((is_builtin_executor_resource(name) && name != resource_names::cores)) return sized(name, amount);
  const auto parsed = parse_resource_amount(amount);
  if (parsed)
    requests_[std::move(name)] = {parsed->amount, std::move(discovery_script), std::move(vendor), parsed->counted};
  else
    errors_.push_back(broken("executor resource " + name + ": " + parsed.error().message));
  return *this;
}

executor_resource_requests& executor_resource_requests::sized(std::string_view name, std::string_view size) {
  const auto bytes = parse_memory(size);
  const auto fault =
      bytes && name == resource_names::memory ? fault_of_memory_without_unit(size, *bytes) : std::string{};
  if (!fault.empty())
    errors_.push_back(broken("executor resource " + std::string{name} + ": " + fault));
  else if (bytes)
    resource(std::string{name}, *bytes);
  else
    errors_.push_back(broken("executor resource " + std::string{name} + ": " + bytes.error().message));
  return *this;
}

task_resource_requests& task_resource_requests::cpus(std::int64_t count) {
  return resource(std::string{resource_names::cpus}, count);
}

task_resource_requests& task_resource_requests::cpus(std::string_view amount) {
  return put(std::string{resource_names::cpus}, parse_share(amount));
}

task_resource_requests& task_resource_requests::memory(std::string_view size) {
  std::string name{resource_names::memory};
  const auto bytes = parse_memory(size);
  if (!bytes) return put(std::move(name), bytes.error());
  return put(std::move(name), share::whole(*bytes));
}

task_resource_requests& task_resource_requests::resource(std::string name, std::int64_t amount) {
  return put(std::move(name), share::whole(amount));
}

task_resource_requests& task_resource_requests::resource(std::string name, std::string_view amount) {
  if (name == resource_names::cpus) return cpus(amount);
  if (name == resource_names::memory) return memory(amount);
  return put(std::move(name), parse_task_amount(amount));
}

task_resource_requests& task_resource_requests::put(std::string name, result<share> amount) {
  if (amount)
    requests_[std::move(name)] = *amount;
  else
    errors_.push_back(broken("task resource " + name + ": " + amount.error().message));
  return *this;
}

resource_profile_builder& resource_profile_builder::require(const executor_resource_requests& requests) {
  for (const auto& [name, request] : requests.requests()) executor_[name] = request;
  errors_.insert(errors_.end(), requests.errors().begin(), requests.errors().end());
  return *this;
}

resource_profile_builder& resource_profile_builder::require(const task_resource_requests& requests) {
  for (const auto& [name, amount] : requests.requests()) task_[name] = amount;
  errors_.insert(errors_.end(), requests.errors().begin(), requests.errors().end());
  return *this;
}

resource_profile_builder& resource_profile_builder::max_tasks_per_executor(std::int64_t count) {
  if (count <= 0)
    errors_.push_back(broken("max_tasks_per_executor " + std::to_string(count) +
                             " must be more than zero; leave it out for as many as fit"));
  max_tasks_per_executor_ = count;
  return *this;
}

resource_profile_builder& resource_profile_builder::exclusive() {
  exclusive_ = true;
  return *this;
}

resource_profile_builder& resource_profile_builder::memory_ceiling(std::string_view size) {
  if (const auto bytes = parse_memory(size))
    memory_ceiling_ = *bytes;
  else
    errors_.push_back(broken("memory_ceiling: " + bytes.error().message));
  return *this;
}

resource_profile_builder& resource_profile_builder::or_else(resource_profile alternative) {
  alternatives_.push_back(std::move(alternative));
  return *this;
}

result<resource_profile> resource_profile_builder::try_build() const {
  if (!errors_.empty()) return errors_.front();
  resource_profile profile{executor_, task_, max_tasks_per_executor_, exclusive_, memory_ceiling_, alternatives_, 0};
  if (auto ok = validate(profile); !ok) return ok.error();
  profile.build = next_profile_build();
  return profile;
}

resource_profile resource_profile_builder::build() const {
  auto profile = try_build();
  if (!profile) throw std::invalid_argument(profile.error().message);
  return *std::move(profile);
}

std::uint64_t next_profile_build() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

} // namespace troupe
