#include <troupe/launcher/node.hpp>

#include <iostream>
#include <utility>

#include <nlohmann/json.hpp>

#include <troupe/launcher/driver_session.hpp>
#include <troupe/launcher/ending_time.hpp>
#include <troupe/launcher/executor_process.hpp>
#include <troupe/launcher/kept_session.hpp>
#include <troupe/launcher/local_directories.hpp>
#include <troupe/launcher/run_directory.hpp>
#include <troupe/launcher/security.hpp>
#include <troupe/launcher/session_guard.hpp>
#include <troupe/launcher/session_registry.hpp>
#include <troupe/runtime/config/profile_settings.hpp>
#include <troupe/runtime/discovery/discover.hpp>
#include <troupe/runtime/transfer/handshake.hpp>
#include <troupe/runtime/transfer/local_address.hpp>

namespace troupe {
namespace {

int complain(const error& why) {
  std::cerr << "troupe: " << why.message << '\n';
  return exit_code_of(why.code);
}

/// One line, at once: who reads it may wait for it.
void announce(const nlohmann::ordered_json& what, bool json) {
  if (json) {
    std::cout << what.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  } else {
    const char* blank = "";
    for (const auto& [name, value] : what.items())
      std::cout << std::exchange(blank, " ") << name << ' '
                << (value.is_string() ? value.get<std::string>() : value.dump());
  }
  std::cout << std::endl;
}

int run_driver_node(const settings& s, const node_run& run) {
  driver_session_options options;
  options.effective = s;
  options.config_file = run.config_file;
  options.warn_on_stderr = true;
  options.on_ready = [json = run.json](const session_record& record, std::size_t) {
    announce({{"driver", record.address}, {"cluster", record.cluster_id}, {"secret-file", record.secret_file}}, json);
  };
  const auto ran = run_driver_session(options);
  return ran ? 0 : complain(ran.error());
}

/// What the settings give to an executor that is started by hand, with the addresses that this machine has. Counted
/// sizes are as large as the settings say.
result<executor_capacity> find_capacity(const resource_profile& profile, const settings& s) {
  auto capacity = capacity_of(profile);
  auto configured = executor_resources(s);
  if (!configured) return configured.error();
  const auto io = system_discovery_io();
  const auto& how = s.get(keys::gpu_discovery);
  for (auto& [name, pool] : capacity.custom) {
    if (pool.counted) continue;
    discovery_request request;
    request.resource = name;
    request.amount = pool.amount;
    request.addresses = (*configured)[name].addresses;
    request.script = (*configured)[name].discovery_script;
    request.time_out = s.get(keys::resources_discovery_timeout);
    if (name == resource_names::gpu && how == "probe-or-fake") request.amount = 0; // made up where there is none at all
    const bool may_be_fake = name == resource_names::gpu && request.addresses.empty() && request.script.empty();
    if (!may_be_fake || how != "fake") {
      auto found = discover(request, io);
      if (!found) return found.error();
      for (const auto& note : found->notes) std::cerr << "troupe: " << name << ": " << note << '\n';
      pool.addresses = std::move(found->addresses);
      const auto enough = static_cast<std::int64_t>(pool.addresses.size()) >= pool.amount;
      if (!enough && !(may_be_fake && how == "probe-or-fake" && pool.addresses.empty()))
        return make_error(ec::invalid_configuration, "resource " + name + ": " + std::to_string(pool.addresses.size()) +
                                                         " addresses were found, fewer than the " +
                                                         std::to_string(pool.amount) + " of troupe.executor.resource." +
                                                         name + ".amount");
      if (enough) {
        pool.addresses.resize(static_cast<std::size_t>(pool.amount));
        continue;
      }
    }
    for (std::int64_t i = 0; i < pool.amount; ++i) pool.addresses.push_back("fake-" + std::to_string(i));
    std::cerr << "troupe: " << name << ": the addresses of this executor are made up (troupe.gpu.discovery = " << how
              << ")\n";
  }
  return capacity;
}

result<executor_start> describe_executor(const node_description& node, const settings& s) {
  executor_start start;
  start.driver = reached_from_here(node.driver);
  if (auto allowed = check_reachable_openly(start.driver.host, s); !allowed) return allowed.error();
  if (const auto& own = s.get(keys::executor_bind_address); is_loopback(own) && !is_loopback(start.driver.host))
    return make_error(ec::invalid_configuration,
                      "troupe.executor.bind-address is " + own + ", where nobody at " + start.driver.host +
                          " reaches this executor: set it to an address of this machine, or to 0.0.0.0 for the one "
                          "that leads there");
  const auto base = run_directory::base_of(s.get(keys::run_directory));
  start.secret_file = s.get(keys::security_secret_file);
  if (start.secret_file.empty()) start.secret_file = secret_of_local_driver(base, start.driver);
  if (start.secret_file.empty()) return unknown_secret(start.driver, s.get(keys::driver_request_timeout));
  auto profile = default_profile(s);
  if (!profile) return profile.error();
  auto capacity = find_capacity(*profile, s);
  if (!capacity) return capacity.error();
  start.info.profile = std::move(*profile);
  start.info.capacity = std::move(*capacity);
  start.info.host = this_host();
  return start;
}

/// Settings that are enforced by whoever starts executors as processes of its own: nobody does here.
void warn_of_limits_without_effect(const settings& s) {
  const auto warn = [](std::string_view key, const std::string& value, const char* instead) {
    std::cerr << "troupe: warning: " << key << " = " << value
              << " has no effect on an executor of `troupe node`; let `troupe cluster up` start the executors of this "
                 "machine, or limit the whole node, as by `systemd-run --user --scope -p "
              << instead << " troupe node …`\n";
  };
  if (const auto most = s.get(keys::task_max_processes); most > 0)
    warn(keys::task_max_processes.name, std::to_string(most), "TasksMax=100");
  if (const auto& kind = s.get(keys::executor_limits_cpu); kind != "none")
    warn(keys::executor_limits_cpu.name, kind, "CPUQuota=200%");
}

int run_executor_node(const node_description& node, const settings& s, const node_run& how) {
  const auto base = run_directory::base_of(s.get(keys::run_directory));
  keeper_options keeping;
  keeping.end_grace = ending_time(s);
  keeping.stopped_grace =
      s.get(keys::executor_heartbeat_timeout); // as long as a driver waits, unless it is told otherwise
  keeping.clear_up = [&](bool) {
    run_directory::sweep(base);
    sweep_local_directories(s);
  };
  if (const auto code = run_below_keeper(std::move(keeping))) return *code;
  warn_of_limits_without_effect(s);
  session_guard guard;
  auto start = describe_executor(node, s);
  if (!start) return complain(start.error());
  run_directory::sweep(base);
  const auto name = "executor-" + make_random_name();
  guard.watch(base + "/" + name);
  auto directory = run_directory::create(base, name);
  if (!directory) return complain(directory.error());
  start->run_directory = directory->path();
  const auto local_directories = make_local_directories(
      s, name, [](const error& why) { std::cerr << "troupe: left out: " << why.message << '\n'; },
      [&guard](const std::string& path) { guard.watch(path); });
  if (!local_directories) return complain(local_directories.error());
  start->local_directories = paths_of(*local_directories);
  if (const auto warning = only_memory(s, *local_directories); !warning.empty())
    std::cerr << "troupe: warning: " << warning << '\n';
  executor_run run;
  run.name = "executor";
  run.native = how.native;
  run.warn_on_stderr = true;
  run.on_admitted = [json = how.json](executor_id id, const std::string& cluster_id) {
    announce({{"executor", id.value}, {"cluster", cluster_id}}, json);
  };
  std::string why;
  const int code = run_executor(*start, s, run, why);
  if (!why.empty()) std::cerr << "troupe: executor: " << why << '\n';
  return code;
}

} // namespace

int run_node(const node_description& node, const settings& s, const node_run& run) {
  return node.role == node_role::driver ? run_driver_node(s, run) : run_executor_node(node, s, run);
}

} // namespace troupe
