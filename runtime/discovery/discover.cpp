#include <troupe/runtime/discovery/discover.hpp>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>

#include <unistd.h>

#include <troupe/runtime/discovery/device_mask.hpp>
#include <troupe/runtime/discovery/resource_json.hpp>
#include <troupe/runtime/resources/capacity.hpp>
#include <troupe/runtime/resources/quote.hpp>
#include <troupe/runtime/resources/resource_profile.hpp>

namespace troupe {
namespace {

using detail::quote;

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const auto& text : texts) all += (all.empty() ? "" : ", ") + text;
  return all;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// `exit code 3: "no driver"`, to follow "ended with".
std::string ending(const program_output& ran) {
  const auto line = first_line(ran.error_output);
  return "exit code " + std::to_string(ran.exit_code) + (line.empty() ? "" : ": " + quote(line));
}

result<discovered_resource> from_list(const discovery_request& request) {
  std::set<std::string_view> seen;
  for (const auto& address : request.addresses) {
    const auto fault = [&](const std::string& what) {
      return make_error(ec::invalid_configuration, request.resource + " address " + quote(address) + what);
    };
    if (!is_valid_address(address)) return fault(": " + std::string{address_grammar});
    if (!seen.insert(address).second) return fault(" is listed twice");
  }
  return discovered_resource{request.addresses, "list", {}};
}

result<discovered_resource> from_script(const discovery_request& request, const discovery_io& io) {
  // Whatever is wrong with it, who named it has to mend it.
  const auto fault = [&](const std::string& what, ec code = ec::invalid_configuration) {
    return make_error(code, "discovery script " + quote(request.script) + " for " + request.resource + " " + what);
  };
  const auto ran = io.run({{request.script}, request.time_out});
  if (!ran) {
    const auto& why = ran.error();
    const bool machine = why.code == ec::io || why.code == ec::internal; // has no pipe, no process left
    return fault("failed: " + why.message + (why.code == ec::cancelled ? " (troupe.resources.discovery-timeout)" : ""),
                 machine ? why.code : ec::invalid_configuration);
  }
  if (ran->exit_code != 0) return fault("ended with " + ending(*ran));
  auto found = parse_resource_json(ran->output);
  if (!found) return fault("printed something else than a resource: " + found.error().message);
  if (found->name != request.resource)
    return fault("returned resource name " + found->name + " and " + request.resource + " was expected");
  return discovered_resource{std::move(found->addresses), request.script, {}};
}

/// The devices that nvidia-smi lists and the inherited mask leaves visible.
std::vector<std::string> visible_devices(const std::vector<std::string>& indices, const device_mask& mask) {
  if (!mask.is_restricted() || indices.empty()) return indices;
  std::vector<std::string> visible;
  for (const auto& entry : mask.entries()) {
    const bool is_index = entry.find_first_not_of("0123456789") == std::string::npos;
    // An index of no device ends the list for CUDA as well.
    if (is_index && std::find(indices.begin(), indices.end(), entry) == indices.end()) break;
    visible.push_back(entry);
  }
  return visible;
}

discovered_resource from_nvidia_smi(const discovery_request& request, const discovery_io& io) {
  const auto none = [](std::string why) { return discovered_resource{{}, "none", {std::move(why)}}; };
  const auto program = io.find_program("nvidia-smi");
  if (!program) return none("nvidia-smi is not in PATH");
  const auto ran = io.run({{*program, "--query-gpu=index", "--format=csv,noheader"}, request.time_out});
  if (!ran) return none("probing failed: " + ran.error().message);
  if (ran->exit_code != 0) return none("nvidia-smi ended with " + ending(*ran));

  std::vector<std::string> indices;
  for (std::string_view rest = ran->output; !rest.empty();) {
    const auto line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const auto text = line.substr(0, line.find_last_not_of(" \r\t") + 1);
    if (text.empty()) continue;
    const auto index = parse_count(text);
    if (!index) return none("nvidia-smi printed " + quote(line) + " in place of an index");
    if (std::find(indices.begin(), indices.end(), text) == indices.end()) indices.emplace_back(text);
    if (indices.size() > max_discovered_addresses) return none("nvidia-smi lists more than 4096 devices");
  }
  const auto mask = device_mask::parse(io.variable(device_mask_variable));
  discovered_resource found{visible_devices(indices, mask), "nvidia-smi", {}};
  if (found.addresses.size() < indices.size())
    found.notes.push_back(std::string{device_mask_variable} + " leaves " + std::to_string(found.addresses.size()) +
                          " of " + std::to_string(indices.size()) + " devices visible");
  return found;
}

/// What somebody wrote down has to be visible; of what a script finds, as it may look at the whole machine, the rest
/// goes.
result<void> keep_visible(const discovery_request& request, const discovery_io& io, discovered_resource& found) {
  const auto inherited = io.variable(device_mask_variable);
  const auto mask = device_mask::parse(inherited ? std::optional<std::string_view>{*inherited} : std::nullopt);
  if (!request.addresses.empty()) return check_visible(found.addresses, mask);
  const auto hidden = std::erase_if(found.addresses, [&](const auto& address) { return mask.hides(address); });
  if (hidden > 0)
    found.notes.push_back("resource " + request.resource + ": " + std::to_string(hidden) + " addresses of " +
                          found.origin + " are left out, since " + device_mask_variable + " hides them");
  return {};
}

result<discovered_resource> look(const discovery_request& request, const discovery_io& io) {
  if (!request.addresses.empty()) return from_list(request);
  if (!request.script.empty()) return from_script(request, io);
  if (request.resource == resource_names::gpu) return from_nvidia_smi(request, io);
  return make_error(ec::invalid_configuration,
                    "resource " + quote(request.resource) +
                        " has neither a list of addresses nor a discovery script; give it one");
}

std::optional<std::string> variable_of_process(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value != nullptr ? std::optional<std::string>{value} : std::nullopt;
}

std::optional<std::string> find_in_path(const std::string& name) {
  const auto path = variable_of_process("PATH").value_or("/usr/bin:/bin");
  for (std::string_view rest = path;;) {
    const auto colon = rest.find(':');
    const std::string folder{rest.substr(0, colon)};
    // Relative entries (an empty one means the current directory) would run what lies around there.
    if (const auto file = folder + "/" + name; folder.rfind('/', 0) == 0 && ::access(file.c_str(), X_OK) == 0)
      return file;
    if (colon == std::string_view::npos) return std::nullopt;
    rest.remove_prefix(colon + 1);
  }
}

} // namespace

discovery_io system_discovery_io() { return {run_program, variable_of_process, find_in_path}; }

result<discovered_resource> discover(const discovery_request& request, const discovery_io& io) {
  if (request.amount && *request.amount <= 0) return discovered_resource{{}, "none", {}};
  auto found = look(request, io);
  if (found && request.resource == resource_names::gpu) {
    if (auto visible = keep_visible(request, io, *found); !visible) return visible.error();
  }
  if (!found || !request.amount) return found;
  auto& addresses = found->addresses;
  const auto needed = static_cast<std::size_t>(*request.amount);
  if (addresses.size() < needed) {
    std::string why = addresses.empty() ? "" : joined(addresses) + ", ";
    why = found->origin == "none" ? "" : " (" + why + "from " + found->origin + ")";
    for (const auto& note : found->notes) why += "; " + note;
    return make_error(ec::infeasible, "resource " + request.resource + ": " + std::to_string(needed) +
                                          " addresses are needed and there are only " +
                                          std::to_string(addresses.size()) + why);
  }
  if (addresses.size() > needed) {
    found->notes.push_back("resource " + request.resource + ": only the first " + std::to_string(needed) + " of " +
                           std::to_string(addresses.size()) + " addresses are used");
    addresses.resize(needed);
  }
  return found;
}

} // namespace troupe
