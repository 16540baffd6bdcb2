#include <troupe/actors/in_process_backend.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

#include <troupe/messages/type_ids.hpp>
#include <troupe/runtime/execution/attempts_directories.hpp>
#include <troupe/runtime/execution/build_id.hpp>
#include <troupe/runtime/execution/function_table.hpp>
#include <troupe/runtime/execution/remove_tree.hpp>
#include <troupe/runtime/transfer/block_server.hpp>

namespace troupe {
namespace {

/// For the control group of an executor whose commands have ended.
constexpr duration group_patience = std::chrono::milliseconds{100};

} // namespace

in_process_backend::in_process_backend(caf::actor_system& system, options opts)
  : system_(system), options_(std::move(opts)), carving_(options_.hosts, options_.described_by) {}

in_process_backend::~in_process_backend() {
  for (auto& [request, c] : children_) shut_down(c.actor);
}

void in_process_backend::converge(const std::vector<executor_order>& wanted) {
  std::set<request_id> names;
  for (const auto& order : wanted) {
    names.insert(order.request);
    const auto it = children_.find(order.request);
    if (it == children_.end()) {
      if (!over_.contains(order.request)) start(order);
    } else if (order.parked && !it->second.parked) {
      it->second.parked = true;
      carving_.park(order.request);
    }
  }
  for (auto& [request, c] : children_) {
    if (names.contains(request) || c.stopping) continue;
    c.stopping = true;
    shut_down(c.actor);
  }
  std::erase_if(over_, [&](request_id request) { return !names.contains(request); });
}

void in_process_backend::start(const executor_order& order) {
  const auto refuse = [&](std::string why) {
    carving_.free(order.request);
    ended_.push_back({order.request, order.shape.shape, launch_state::refused, std::move(why)});
    over_.insert(order.request);
  };
  auto place = carving_.place(order.request, order.shape.profile);
  if (!place) return refuse(place.error().message);
  const auto name = "executor-" + std::to_string(order.request.value);
  std::vector<std::string> blocks_directories;
  const auto forget = [&](std::string why) {
    for (const auto& directory : options_.local_directories) remove_tree(directory + "/blocks-" + name);
    remove_attempts_directories(options_.directory, name);
    refuse(std::move(why));
  };
  for (const auto& directory : options_.local_directories) blocks_directories.push_back(directory + "/blocks-" + name);
  const auto make = [](const std::string& path) { return mkdir(path.c_str(), 0700) == 0 || errno == EEXIST; };
  const auto first = blocks_directories.front();
  // A disk that has broken since the session began is left out.
  std::erase_if(blocks_directories, [&](const std::string& path) { return !make(path); });
  if (blocks_directories.empty()) return refuse("cannot make " + first + ": " + std::strerror(errno));
  auto attempts = make_attempts_directories(options_.directory, options_.local_directories, name);
  if (!attempts) return forget(attempts.error().message);
  const auto blocks = std::make_shared<block_store>(
      block_store::options{blocks_directories, options_.memory.for_blocks(order.shape.profile)});

  child c;
  c.shape = order.shape.shape;
  std::shared_ptr<block_server> served; // by others; none: by nobody
  executor_config config;
  if (!options_.serve_at.empty()) {
    block_server::options serving;
    serving.address = options_.serve_at;
    serving.cluster_id = options_.cluster_id;
    auto server = block_server::start(std::move(serving), *options_.secret, *blocks);
    if (!server) return forget(server.error().message);
    config.info.blocks.host = options_.serve_at;
    config.info.blocks.port = (*server)->port();
    served = std::shared_ptr<block_server>{*std::move(server)};
  }
  config.driver = options_.driver;
  config.cluster_id = options_.cluster_id;
  config.secret = options_.secret;
  config.blocks = blocks;
  config.loggers = options_.loggers;
  config.driver_timeout = options_.driver_timeout;
  config.abandon_timeout = options_.abandon_timeout;
  config.shutdown_grace = options_.shutdown_grace;
  config.runner.shuffles = options_.fetcher.get();
  config.runner.broadcasts = options_.broadcasts.get();
  config.runner.attempts_directories = std::move(*attempts);
  config.runner.staging_journal = options_.staging_journal;
  config.runner.memory = options_.memory;
  config.runner.compression = options_.compression;
  config.runner.max_inline_result = options_.max_inline_result;
  config.runner.kill_grace = options_.kill_grace;
  config.runner.terms = options_.terms;
  if (options_.limit_commands) config.runner.limits = options_.limit_commands(name, place->capacity);
  c.group = config.runner.limits.group;
  // Also where this executor has none: its commands must not see those of the others.
  if (!options_.devices.empty()) config.runner.ordinals = {{std::string{resource_names::gpu}, options_.devices}};
  config.info.request = order.request;
  config.info.shape = order.identity();
  config.info.epoch = make_incarnation();
  config.info.host = carving_.hosts()[place->host].name;
  config.info.pid = static_cast<std::uint32_t>(getpid());
  config.info.profile = order.shape.profile;
  config.info.capacity = place->capacity;
  config.info.slots = slots_of(place->capacity, order.shape.profile).slots;
  config.info.native = function_table::instance().size() > 0;
  config.info.in_process = true;
  config.info.build_id = build_id();
  auto id = std::make_shared<executor_id>();
  config.on_admitted = [local = options_.local, blocks, id](executor_id given) {
    *id = given;
    local->add(given, blocks);
  };
  config.clear_up = [local = options_.local, id, blocks, served, all = options_.local_directories,
                     attempts = options_.keep_attempts ? std::string{} : options_.directory, name, box = mailbox_,
                     request = order.request]() mutable {
    if (*id) local->remove(*id);
    served.reset();
    for (const auto& directory : all) remove_tree(directory + "/blocks-" + name);
    if (!attempts.empty()) remove_attempts_directories(attempts, name);
    std::lock_guard lock{box->mutex};
    box->cleared.insert(request);
  };
  config.on_end = [box = mailbox_, local = options_.local, id, request = order.request, fetcher = options_.fetcher,
                   broadcasts = options_.broadcasts](const error& why, bool) {
    if (*id) local->remove(*id);
    std::lock_guard lock{box->mutex};
    box->ended[request] = why ? why.message : "it ended";
  };
  c.actor = spawn_executor(system_, std::move(config));
  children_.emplace(order.request, std::move(c));
}

void in_process_backend::reap() {
  std::map<request_id, std::string> ended;
  {
    std::lock_guard lock{mailbox_->mutex};
    ended = std::exchange(mailbox_->ended, {});
    cleared_.merge(mailbox_->cleared);
  }
  for (auto& [request, why] : ended) {
    const auto it = children_.find(request);
    if (it == children_.end()) continue;
    lingering_.insert(request);
    it->second.group.remove(true, group_patience);
    ended_.push_back({request, it->second.shape, launch_state::gone, std::move(why)});
    children_.erase(it);
    over_.insert(request);
  }
  std::erase_if(lingering_, [&](request_id request) {
    if (cleared_.erase(request) == 0) return false;
    carving_.free(request);
    return true;
  });
}

std::vector<launch_status> in_process_backend::snapshot() {
  reap();
  auto out = std::exchange(ended_, {});
  for (const auto& [request, c] : children_) out.push_back({request, c.shape, launch_state::running, {}});
  return out;
}

feasibility in_process_backend::check(const executor_shape& shape) {
  auto answer = carving_.check(shape.profile);
  if (!options_.serve_at.empty()) answer.fixed = false; // another process may join with what is missing here
  return answer;
}

std::uint32_t in_process_backend::room_for(const executor_shape& shape) {
  reap();
  return carving_.room_for(shape.profile);
}

std::optional<way_answer> in_process_backend::who_makes_way(const way_question& question) {
  reap();
  return carving_.who_makes_way(question.shape.profile, question.count, question.leaving, question.may_go);
}

} // namespace troupe
