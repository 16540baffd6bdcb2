#include <troupe/actors/embedding.hpp>
#include <troupe/runtime/api/resource_profile_builder.hpp>

#include <chrono>
#include <filesystem>
#include <limits>
#include <utility>

#include <arpa/inet.h>

#include <troupe/actors/in_process_backend.hpp>
#include <troupe/actors/visiting_thread.hpp>
#include <troupe/messages/network.hpp>

namespace troupe {
namespace {

/// A host that has exactly what the standing executors take, its addresses numbered from 0.
carving_host host_for(const std::vector<std::pair<resource_profile, std::uint32_t>>& executors) {
  carving_host host;
  // What is more than a number can say is more than there is: the executors then find no room, which is reported.
  const auto add = [](std::int64_t& sum, std::int64_t amount, std::uint32_t count) {
    std::int64_t more = 0;
    if (__builtin_mul_overflow(amount, std::int64_t{count}, &more) || __builtin_add_overflow(sum, more, &sum))
      sum = std::numeric_limits<std::int64_t>::max();
  };
  for (const auto& [profile, count] : executors)
    for (const auto& [name, request] : profile.executor) {
      if (name == resource_names::cores)
        add(host.cores, request.amount, count);
      else if (is_builtin_executor_resource(name))
        add(host.memory, request.amount, count);
      else {
        auto& pool = host.custom[name];
        add(pool.amount, request.amount, count);
        pool.counted = request.counted;
      }
    }
  for (auto& [name, pool] : host.custom)
    for (std::int64_t i = 0; !pool.counted && i < pool.amount; ++i) pool.addresses.push_back(std::to_string(i));
  return host;
}

result<void> check(const embedded_options& options) {
  const auto wrong = [](const std::string& what) {
    return make_error(ec::invalid_argument, "embedded_options::" + what);
  };
  std::error_code ec_ignored;
  if (!std::filesystem::path{options.directory}.is_absolute() ||
      !std::filesystem::is_directory(options.directory, ec_ignored))
    return wrong("directory is '" + options.directory + "': name an existing folder by its absolute path");
  if (auto valid = validate(options.defaults); !valid) return wrong("defaults: " + valid.error().message);
  if (options.defaults.executor_amount(resource_names::cores) == 0 || options.defaults.task.empty())
    return wrong("defaults: a default profile names the executor's cores and the task's cpus");
  for (const auto& [profile, count] : options.executors)
    if (auto valid = validate(complete(profile, options.defaults)); !valid)
      return wrong("executors: " + valid.error().message);
  if (options.hosts.empty() && options.executors.empty()) return wrong("hosts: none, and no executors to make one for");
  for (const auto& host : options.hosts)
    if (auto valid = validate(host); !valid) return wrong("hosts: " + valid.error().message);
  return {};
}

bool is_ip_address(const std::string& text) {
  unsigned char bytes[16];
  return ::inet_pton(AF_INET, text.c_str(), bytes) == 1 || ::inet_pton(AF_INET6, text.c_str(), bytes) == 1;
}

result<void> check(const embedded_door& door, const caf::actor_system& system) {
  const auto wrong = [](const std::string& what) {
    return make_error(ec::invalid_argument, "embedded_options::listen." + what);
  };
  if (!system.has_middleman())
    return wrong("address: the actor system has no network part: load<caf::io::middleman>() in its configuration");
  if (!is_ip_address(door.address) || door.address == "0.0.0.0" || door.address == "::")
    return wrong("address is '" + door.address +
                 "': name one address of this machine, such as 127.0.0.1, which others can reach");
  if (!is_loopback(door.address) && !door.insecure)
    return wrong("address is " + door.address +
                 ", and the traffic is not encrypted: set insecure if everybody on that network may be trusted");
  if (door.last_port != 0 && (door.port == 0 || door.last_port < door.port))
    return wrong("last_port is " + std::to_string(door.last_port) + ", before port, which is " +
                 std::to_string(door.port));
  if (!std::filesystem::path{door.secret_file}.is_absolute())
    return wrong("secret_file is '" + door.secret_file +
                 "': give an absolute path; the file is made where it is not there");
  return {};
}

/// Publishes the driver at the first port that is free.
result<std::uint16_t> open(const embedded_door& door, caf::actor_system& system, const driver_actor& driver) {
  for (unsigned port = door.port;; ++port) {
    auto bound = publish(system, driver, static_cast<std::uint16_t>(port), door.address);
    if (bound || port >= door.last_port) return bound;
  }
}

} // namespace

void prepare(caf::actor_system_config& config) { register_types(config); }

resource_profile embedded_options::default_embedded_profile() {
  return resource_profile_builder{}
      .require(executor_resource_requests{}.cores(1).memory("1g"))
      .require(task_resource_requests{}.cpus(1))
      .build();
}

result<embedded_cluster> spawn_embedded(caf::actor_system& system, embedded_options options) {
  const visiting_thread thread;
  if (auto good = check(options); !good) return good.error();
  if (options.listen)
    if (auto good = check(*options.listen, system); !good) return good.error();
  for (auto& [profile, count] : options.executors) profile = complete(profile, options.defaults);
  if (options.hosts.empty()) {
    options.hosts.push_back(host_for(options.executors));
    options.hosts.back().name = "localhost";
  }
  auto known = options.listen ? session_secret::load_or_make(options.listen->secret_file)
                              : result<session_secret>{session_secret::generate()};
  if (!known) return known.error();
  const auto secret = std::make_shared<const session_secret>(*std::move(known));
  const auto local = std::make_shared<local_blocks>();
  driver_config d;
  d.cluster_id = make_random_name();
  d.session_id = make_random_name();
  d.master = "embedded";
  d.secret = secret;
  d.defaults = options.defaults;
  d.scheduler = options.scheduler;
  d.rules.matching = options.scheduler.matching;
  d.rules.dynamic_allocation = options.allocation.dynamic;
  d.allocation = options.allocation;
  d.fixed_executors = options.executors;
  d.loggers = options.loggers;
  d.unix_nanoseconds = [] {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return std::int64_t{std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()};
  };
  block_client::options reading;
  reading.cluster_id = d.cluster_id;
  embedded_cluster out;
  out.blocks = std::make_shared<block_client>(reading, *secret, local);
  in_process_backend::options b;
  b.hosts = std::move(options.hosts);
  b.described_by = "embedded_options::hosts";
  b.cluster_id = d.cluster_id;
  b.secret = secret;
  b.directory = options.directory;
  b.local_directories = {std::move(options.directory)};
  b.memory = options.memory;
  b.compression = options.compression;
  b.max_inline_result = options.max_inline_result;
  b.kill_grace = options.kill_grace;
  b.shutdown_grace = options.shutdown_grace;
  b.terms = options.commands;
  if (options.listen) b.serve_at = options.listen->address;
  b.local = local;
  b.fetcher = out.blocks;
  b.loggers = options.loggers;
  d.make_backend = [&system, b](driver_actor to) {
    auto mine = b;
    mine.driver = std::move(to);
    return std::make_shared<in_process_backend>(system, std::move(mine));
  };
  out.cluster_id = d.cluster_id;
  out.driver = spawn_driver(system, std::move(d));
  if (!options.listen) return out;
  const auto port = open(*options.listen, system, out.driver);
  if (port) {
    out.address = {options.listen->address, *port};
    return out;
  }
  shut_down(out.driver);
  return port.error();
}

result<std::string> fetch_result(const embedded_cluster& from, const result_location& where) {
  return from.blocks->fetch_value(where.endpoint, output_key(where.stage, where.partition, where.attempt));
}

} // namespace troupe
