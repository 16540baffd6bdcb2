#include <troupe/launcher/machine_resources.hpp>

#include <cstdlib>
#include <optional>
#include <string_view>

#include <troupe/runtime/config/profile_settings.hpp>
#include <troupe/runtime/discovery/discover.hpp>

namespace troupe {

device_mask inherited_device_mask() {
  const char* text = std::getenv(device_mask_variable);
  return device_mask::parse(text ? std::optional<std::string_view>{text} : std::nullopt);
}

result<machine_resources> resources_of_machine(const settings& s) {
  machine_resources out;
  const auto gpu = std::string{resource_names::gpu};
  auto configured = executor_resources(s);
  if (!configured) return configured.error();
  const auto& how = s.get(keys::gpu_discovery);
  if (how != "none") (*configured)[gpu]; // looked for even when no executor of the default profile has one
  const auto io = system_discovery_io();
  for (const auto& [name, resource] : *configured) {
    if (resource.counted) {
      out.pools[name] = {resource.amount, {}, true};
      continue;
    }
    discovery_request request;
    request.resource = name;
    request.addresses = resource.addresses;
    request.script = resource.discovery_script;
    request.time_out = s.get(keys::resources_discovery_timeout);
    std::vector<std::string> addresses;
    // Who wants made-up ones is not told of real ones.
    const bool look = name != gpu || how != "fake" || !request.addresses.empty() || !request.script.empty();
    if (look) {
      auto found = discover(request, io);
      if (!found) return found.error();
      out.notes.insert(out.notes.end(), found->notes.begin(), found->notes.end());
      addresses = std::move(found->addresses);
    }
    if (addresses.empty() && name == gpu && how.ends_with("fake")) {
      for (std::int64_t i = 0; i < s.get(keys::gpu_fake); ++i) addresses.push_back("fake-" + std::to_string(i));
      out.fake.push_back(name);
    }
    if (const auto found = static_cast<std::int64_t>(addresses.size()); found < resource.amount)
      out.notes.push_back("resource " + name + ": " + std::to_string(found) + " addresses were found, fewer than the " +
                          std::to_string(resource.amount) + " of troupe.executor.resource." + name +
                          ".amount: no executor of the default profile can be started here");
    if (addresses.empty()) continue;
    out.pools[name] = {static_cast<std::int64_t>(addresses.size()), std::move(addresses)};
  }
  return out;
}

} // namespace troupe
