#include <troupe/runtime/config/profile_settings.hpp>

#include <algorithm>
#include <set>

#include <troupe/runtime/config/master.hpp>
#include <troupe/runtime/config/profile_yaml.hpp>
#include <troupe/runtime/resources/exact_rules.hpp>

namespace troupe {
namespace {

constexpr std::string_view prefix = "troupe.executor.resource.";

error fault(const settings& s, const std::string& key_name, const std::string& message) {
  return make_error(ec::invalid_configuration, to_string(s.origin_of(key_name)) + ": " + key_name + ": " + message);
}

/// Name of the first key of that resource that is set: where to point when another one is missing.
std::string first_key_of(const settings& s, const std::string& name) {
  for (const std::string_view field : {"amount", "addresses", "discovery-script", "vendor"}) {
    auto key_name = std::string{prefix} + name + "." + std::string{field};
    if (s.origin_of(key_name).kind != origin_kind::default_value) return key_name;
  }
  return std::string{prefix} + name + ".amount";
}

/// A counted size has nothing that could be found or named.
result<void> check_counted(const settings& s, const std::string& name, const configured_resource& resource) {
  if (!resource.counted) return {};
  const auto wrong = [&](std::string_view field) {
    return fault(s, std::string{prefix} + name + "." + std::string{field},
                 "the amount is " + amount_to_string(resource.amount, true) +
                     ", a size, which is counted and has no addresses; leave this key out, or write how many there "
                     "are, without a unit");
  };
  if (!resource.addresses.empty()) return wrong("addresses");
  if (!resource.discovery_script.empty()) return wrong("discovery-script");
  if (!resource.vendor.empty()) return wrong("vendor");
  return {};
}

} // namespace

result<std::map<std::string, configured_resource>> executor_resources(const settings& s) {
  std::map<std::string, configured_resource> out;
  const auto amounts = s.get(keys::executor_resource_amount);
  for (auto& [name, amount] : amounts) {
    out[name].amount = amount.amount;
    out[name].counted = amount.counted;
  }
  for (auto& [name, addresses] : s.get(keys::executor_resource_addresses)) out[name].addresses = addresses;
  for (auto& [name, script] : s.get(keys::executor_resource_discovery_script)) out[name].discovery_script = script;
  for (auto& [name, vendor] : s.get(keys::executor_resource_vendor)) out[name].vendor = vendor;
  for (auto& [name, resource] : out) {
    const auto key_name = first_key_of(s, name);
    if (auto hint = builtin_resource_hint(name); !hint.empty()) return fault(s, key_name, hint);
    if (resource.amount == 0 && amounts.contains(name)) continue;
    if (auto ok = check_counted(s, name, resource); !ok) return ok.error();
    const std::set<std::string> different(resource.addresses.begin(), resource.addresses.end());
    const auto count = static_cast<std::int64_t>(resource.addresses.size());
    const auto addresses_key = std::string{prefix} + name + ".addresses";
    if (different.size() != resource.addresses.size()) return fault(s, addresses_key, "an address is given twice");
    if (resource.amount == 0 && count == 0)
      return fault(s, key_name, "the amount is missing; set " + std::string{prefix} + name + ".amount");
    if (resource.amount == 0) resource.amount = count;
    if (count > 0 && resource.amount != count)
      return fault(s, addresses_key,
                   "there are " + std::to_string(count) + " addresses, but the amount is " +
                       std::to_string(resource.amount));
  }
  std::erase_if(out, [](const auto& entry) { return entry.second.amount == 0; });
  return out;
}

master_kind master_kind_of(const settings& s) {
  const auto master = parse_master(s.get(keys::master));
  return master && std::holds_alternative<local_master>(*master) ? master_kind::local : master_kind::local_cluster;
}

placement_policy placement_policy_of(const settings& s) {
  const auto name = s.get(keys::scheduler_placement);
  if (name == "pack") return placement_policy::pack;
  return name == "balance" ? placement_policy::balance : placement_policy::spread;
}

memory_split memory_split_of(const settings& s) {
  return {s.get(keys::memory_fraction), s.get(keys::memory_storage_fraction)};
}

page_compression compression_of(const settings& s) {
  page_compression how;
  for (const auto codec : {page_codec::lz4, page_codec::zstd})
    if (s.get(keys::io_compression_codec) == to_string(codec)) how.codec = codec;
  how.level = static_cast<int>(s.get(keys::io_compression_level));
  return how;
}

sharing_options sharing_of(const settings& s) {
  const auto mode_of = [](const std::string& name) { return name == "fair" ? sharing_mode::fair : sharing_mode::fifo; };
  sharing_options out;
  out.mode = mode_of(s.get(keys::scheduler_mode));
  for (const auto& [name, mode] : s.get(keys::scheduler_pool_mode)) out.pools[name].mode = mode_of(mode);
  for (const auto& [name, weight] : s.get(keys::scheduler_pool_weight))
    out.pools[name].weight = static_cast<std::uint32_t>(weight);
  for (const auto& [name, slots] : s.get(keys::scheduler_pool_min_share))
    out.pools[name].min_share = static_cast<std::uint32_t>(slots);
  return out;
}

profile_rules rules_of(const settings& s, master_kind master) {
  profile_rules rules;
  rules.matching =
      s.get(keys::scheduler_profile_matching) == "exact" ? profile_matching::exact : profile_matching::compatible;
  rules.support = s.get(keys::scheduler_support_matrix) == "spark" ? support_matrix::spark : support_matrix::all;
  rules.master = master;
  rules.dynamic_allocation = s.get(keys::dynamic_allocation_enabled);
  rules.cores_configured = s.origin_of(keys::executor_cores.name).kind != origin_kind::default_value;
  return rules;
}

overhead_rule overhead_rule_of(const settings& s) {
  if (s.origin_of(keys::executor_memory_overhead.name) != setting_origin{}) return {};
  return {s.get(keys::executor_memory_overhead_factor), s.get(keys::executor_min_memory_overhead),
          s.get(keys::scheduler_profile_matching) == "exact" ? profile_matching::exact : profile_matching::compatible};
}

result<resource_profile> default_profile(const settings& s, const profile_rules& rules) {
  auto resources = executor_resources(s);
  if (!resources) return resources.error();
  resource_profile out;
  const auto put = [&](std::string_view name, std::int64_t amount) {
    if (amount > 0) out.executor[std::string{name}].amount = amount;
  };
  const bool whole_host = rules.is_exact() && rules.master == master_kind::local_cluster && !rules.cores_configured;
  // Room for one task, unless somebody has said how many cores there are to be.
  const bool says_cores = s.origin_of(keys::executor_cores.name) != setting_origin{};
  const auto widened = rules.is_exact() || says_cores ? 0 : s.get(keys::task_cpus).ceil();
  if (!whole_host) put(resource_names::cores, std::max(s.get(keys::executor_cores), widened));
  const auto heap = s.get(keys::executor_memory);
  put(resource_names::memory, heap);
  const auto rule = overhead_rule_of(s);
  put(resource_names::memory_overhead,
      rule.is_active() ? overhead_of(rule, heap, heap) : s.get(keys::executor_memory_overhead));
  put(resource_names::off_heap, s.get(keys::executor_off_heap));
  if (rules.is_exact()) out.executor.try_emplace(std::string{resource_names::off_heap});
  put(resource_names::pyspark_memory, s.get(keys::executor_pyspark_memory));
  for (const auto& [name, resource] : *resources)
    out.executor[name] = {resource.amount, resource.discovery_script, resource.vendor, resource.counted};
  out.task[std::string{resource_names::cpus}] = s.get(keys::task_cpus);
  if (const auto memory = s.get(keys::task_memory); memory > 0)
    out.task[std::string{resource_names::memory}] = share::whole(memory);
  out.memory_ceiling = s.get(keys::task_memory_ceiling);
  for (const auto& [name, amount] : s.get(keys::task_resource_amount)) {
    const auto key_name = "troupe.task.resource." + name + ".amount";
    if (auto hint = builtin_resource_hint(name); !hint.empty()) return fault(s, key_name, hint);
    if (!amount.is_zero()) out.task[name] = amount;
  }
  auto valid = validate(out);
  if (valid && rules.is_exact()) valid = exact::check_fractions(out);
  if (!valid)
    return make_error(ec::invalid_configuration,
                      "the default profile (troupe.executor.*, troupe.task.*): " + valid.error().message);
  return out;
}

} // namespace troupe
