#include <troupe/actors/joining_executor.hpp>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

#include <troupe/actors/embedding.hpp>
#include <troupe/actors/executor.hpp>
#include <troupe/actors/introduction.hpp>
#include <troupe/actors/visiting_thread.hpp>
#include <troupe/messages/network.hpp>
#include <troupe/messages/type_ids.hpp>
#include <troupe/runtime/execution/attempts_directories.hpp>
#include <troupe/runtime/execution/build_id.hpp>
#include <troupe/runtime/execution/function_table.hpp>
#include <troupe/runtime/execution/remove_tree.hpp>
#include <troupe/runtime/resources/capacity.hpp>
#include <troupe/runtime/transfer/block_client.hpp>
#include <troupe/runtime/transfer/block_server.hpp>
#include <troupe/runtime/transfer/local_address.hpp>

namespace troupe {
namespace {

error wrong(const std::string& what) { return make_error(ec::invalid_argument, "spawn_joining_executor: " + what); }

result<void> check(const caf::actor_system& system, const endpoint& driver, const std::string& directory,
                   const joining_options& options) {
  if (!system.has_middleman())
    return wrong("the actor system has no network part: load<caf::io::middleman>() in its configuration");
  std::error_code ignored;
  if (!std::filesystem::path{directory}.is_absolute() || !std::filesystem::is_directory(directory, ignored))
    return wrong("directory is '" + directory + "': name an existing folder by its absolute path");
  if (is_loopback(options.bind_address) && !is_loopback(driver.host))
    return wrong("bind_address is " + options.bind_address + ", where nobody at " + driver.host +
                 " reaches it: name an address of this machine, or 0.0.0.0 for the one that leads there");
  for (const auto& address : {driver.host, options.bind_address})
    if (!is_loopback(address) && !options.insecure)
      return wrong(address + " is not a loopback address, and the traffic is not encrypted: set insecure if everybody "
                             "on that network may be trusted");
  return {};
}

result<executor_capacity> capacity_with(const resource_profile& profile, const joining_options& options) {
  auto capacity = capacity_of(profile);
  for (auto& [name, pool] : capacity.custom) {
    const auto given = options.addresses.find(name);
    if (given != options.addresses.end()) pool.addresses = given->second;
    if (pool.counted || !pool.addresses.empty()) continue;
    for (std::int64_t i = 0; i < pool.amount; ++i) pool.addresses.push_back(std::to_string(i));
  }
  for (const auto& [name, addresses] : options.addresses)
    if (!capacity.custom.contains(name))
      return wrong("addresses are given for " + name + ", which profile does not have");
  if (auto valid = validate(capacity); !valid) return wrong(valid.error().message);
  return capacity;
}

/// Used by the executor's actor as long as it lives, and owned by it.
struct belongings {
  belongings() = default;
  belongings(const belongings&) = delete;
  belongings& operator=(const belongings&) = delete;
  ~belongings() { clear(); }

  /// Nothing is left in the application's folder. @pre no task runs any more
  void clear() {
    server.reset();
    remove_tree(blocks_directory);
    remove_attempts_directories(directory, name);
  }

  std::string name;
  std::string directory;
  std::string blocks_directory;
  std::shared_ptr<block_store> blocks;
  std::unique_ptr<block_client> fetcher;
  std::unique_ptr<block_server> server;
};

} // namespace

result<executor_actor> spawn_joining_executor(caf::actor_system& system, const endpoint& driver,
                                              const std::string& secret_file, const resource_profile& profile,
                                              const std::string& directory, joining_options options) {
  const visiting_thread thread;
  if (auto good = check(system, driver, directory, options); !good) return good.error();
  const auto whole = complete(profile, embedded_options::default_embedded_profile());
  if (auto valid = validate(whole); !valid) return wrong("profile: " + valid.error().message);
  auto capacity = capacity_with(whole, options);
  if (!capacity) return capacity.error();
  if (auto table = function_table::instance().check(); !table) return table.error();
  auto secret = session_secret::load(secret_file);
  if (!secret) return secret.error();

  auto found = connect<driver_actor>(system, driver.host, driver.port, options.request_timeout);
  if (!found) return found.error();
  const auto known = introduce(system, *found, peer_role::executor, *secret, options.request_timeout);
  if (!known) return known.error();

  const auto own = std::make_shared<belongings>();
  own->name = "executor-" + make_random_name();
  own->directory = directory;
  own->blocks_directory = directory + "/blocks-" + own->name;
  if (::mkdir(own->blocks_directory.c_str(), 0700) != 0)
    return make_error(ec::io, "cannot make " + own->blocks_directory + ": " + std::strerror(errno));
  auto attempts = make_attempts_directories(directory, {directory}, own->name);
  if (!attempts) return attempts.error();
  own->blocks =
      std::make_shared<block_store>(block_store::options{{own->blocks_directory}, options.memory.for_blocks(whole)});
  block_server::options serving;
  serving.address = options.bind_address;
  serving.cluster_id = known->cluster_id;
  auto server = block_server::start(std::move(serving), *secret, *own->blocks);
  if (!server) return server.error();
  own->server = *std::move(server);
  block_client::options reading;
  reading.cluster_id = known->cluster_id;
  own->fetcher = std::make_unique<block_client>(reading, *secret, std::make_shared<local_blocks>());
  const auto reachable = address_to_reach(options.bind_address, driver.host, driver.port);
  if (!reachable) return reachable.error();

  executor_config config;
  config.driver = *found;
  config.cluster_id = known->cluster_id;
  config.secret = std::make_shared<const session_secret>(*secret);
  config.blocks = own->blocks;
  config.loggers = options.loggers;
  config.driver_timeout = options.driver_timeout;
  config.abandon_timeout = options.abandon_timeout;
  config.request_timeout = options.request_timeout;
  config.shutdown_grace = options.shutdown_grace;
  config.runner.shuffles = own->fetcher.get();
  config.runner.attempts_directories = *std::move(attempts);
  config.runner.memory = options.memory;
  config.runner.compression = options.compression;
  config.runner.max_inline_result = options.max_inline_result;
  config.runner.kill_grace = options.kill_grace;
  config.runner.terms = options.commands;
  config.info.epoch = make_incarnation();
  config.info.host = this_host();
  config.info.pid = static_cast<std::uint32_t>(getpid());
  config.info.profile = whole;
  config.info.capacity = *std::move(capacity);
  config.info.slots = slots_of(config.info.capacity, whole).slots;
  config.info.native = function_table::instance().size() > 0;
  config.info.in_process = true; // of an application, which a task that does not end cannot take with it
  config.info.build_id = build_id();
  config.info.blocks.host = *reachable;
  config.info.blocks.port = own->server->port();
  config.on_admitted = std::move(options.on_admitted);
  config.clear_up = [own] { own->clear(); };
  config.on_end = [tell = std::move(options.on_end)](const error& why, bool) {
    if (tell) tell(why);
  };
  return executor_actor{spawn_executor(system, std::move(config))};
}

} // namespace troupe
