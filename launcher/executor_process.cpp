#include <troupe/launcher/executor_process.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <mutex>
#include <optional>

#include <sys/prctl.h>
#include <unistd.h>

#include <troupe/actors/executor.hpp>
#include <troupe/actors/introduction.hpp>
#include <troupe/launcher/command_terms.hpp>
#include <troupe/launcher/ending_time.hpp>
#include <troupe/launcher/executor_entry.hpp>
#include <troupe/launcher/host_directory.hpp>
#include <troupe/launcher/local_directories.hpp>
#include <troupe/launcher/machine_resources.hpp>
#include <troupe/launcher/node_system.hpp>
#include <troupe/launcher/process_log.hpp>
#include <troupe/launcher/run_directory.hpp>
#include <troupe/launcher/security.hpp>
#include <troupe/launcher/session_guard.hpp>
#include <troupe/launcher/session_limits.hpp>
#include <troupe/launcher/transfer_settings.hpp>
#include <troupe/messages/network.hpp>
#include <troupe/messages/type_ids.hpp>
#include <troupe/runtime/config/profile_settings.hpp>
#include <troupe/runtime/discovery/device_mask.hpp>
#include <troupe/runtime/execution/attempts_directories.hpp>
#include <troupe/runtime/execution/build_id.hpp>
#include <troupe/runtime/execution/failure_text.hpp>
#include <troupe/runtime/execution/function_table.hpp>
#include <troupe/runtime/execution/keeper.hpp>
#include <troupe/runtime/execution/remove_tree.hpp>
#include <troupe/runtime/execution/signals.hpp>
#include <troupe/runtime/execution/staging_journal.hpp>
#include <troupe/runtime/storage/block_store.hpp>
#include <troupe/runtime/transfer/block_client.hpp>
#include <troupe/runtime/transfer/block_server.hpp>
#include <troupe/runtime/transfer/broadcast_reader.hpp>
#include <troupe/runtime/transfer/local_address.hpp>
#include <troupe/runtime/transfer/take_over.hpp>

namespace troupe {
namespace {

constexpr const char* blocks_prefix = "blocks-";
constexpr std::uint64_t stack_of_thread = 8 << 20;

/// Devices that the executor's addresses are, under the mask that was inherited; set once, here.
std::map<std::string, std::vector<std::string>> apply_device_mask(const executor_capacity& capacity) {
  const auto mask = inherited_device_mask();
  const auto gpu = capacity.custom.find(std::string{resource_names::gpu});
  const auto addresses = gpu == capacity.custom.end() ? std::vector<std::string>{} : gpu->second.addresses;
  const auto view = mask.view_of(addresses);
  setenv(device_mask_variable, view.text.c_str(), 1);
  std::vector<std::string> visible;
  for (std::size_t i = 0; i < addresses.size(); ++i)
    if (view.ordinals[i] >= 0) visible.push_back(addresses[i]);
  if (visible.empty()) return {};
  return {{std::string{resource_names::gpu}, std::move(visible)}};
}

/// What is there, as far as it can be seen.
std::vector<std::filesystem::path> paths_in(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> all;
  std::error_code gone;
  for (std::filesystem::directory_iterator entry{directory, gone}, end; !gone && entry != end; entry.increment(gone))
    all.push_back(entry->path());
  return all;
}

/// File behind standard error, "" where it is none.
std::string stderr_file() {
  std::error_code ec;
  const auto target = std::filesystem::read_symlink("/proc/self/fd/2", ec);
  return !ec && std::filesystem::is_regular_file(target, ec) ? target.string() : std::string{};
}

} // namespace

std::string name_of_executor(request_id request) {
  return request ? "executor-" + std::to_string(request.value) : "shuffle-service";
}

std::string log_link_of(executor_id executor) { return "log-of-executor-" + std::to_string(executor.value); }

std::string printed_by(const std::string& directory, executor_id executor) {
  std::error_code none;
  const std::filesystem::path base{directory};
  const auto log = std::filesystem::read_symlink(base / log_link_of(executor), none).filename();
  return log.empty() ? std::string{} : (base / log).replace_extension(".err").string();
}

void clear_up_after_executor(const executor_start& start, request_id request, bool killed) {
  const auto name = name_of_executor(request);
  const auto attempts = attempts_directories_of(start.run_directory, name);
  if (killed) kill_attempts_below(attempts);
  // Copies of inputs may be large; outputs and logs stay for people. A job that is forgotten meanwhile hides no other.
  for (const auto& directory : attempts)
    for (const auto& job : paths_in(directory))
      for (const auto& attempt : paths_in(job))
        if (attempt.extension() == ".inputs" || attempt.extension() == ".inputs-file") remove_tree(attempt.string());
  remove_tree(start.run_directory + "/" + blocks_prefix + name);
  for (const auto& path : start.local_directories) remove_tree(path + "/" + blocks_prefix + name);
  remove_group(start.limits);
}

int run_executor(const executor_start& start, const settings& s, const executor_run& run, std::string& why) {
  if (run.native) std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ); // lines that tasks print are there while they run
  auto waited = unless_ignored({SIGTERM, SIGINT, SIGHUP});
  sigaddset(&waited, SIGUSR1); // the actor's word
  pthread_sigmask(SIG_BLOCK, &waited, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  const auto failed = [&](const error& e) {
    why = e.message;
    return exit_code_of(e.code);
  };
  if (auto table = function_table::instance().check(); !table) return failed(table.error());
  auto directory = run_directory::join(start.run_directory);
  if (!directory) return failed(directory.error());
  auto secret = session_secret::load(start.secret_file);
  if (!secret) return failed(secret.error());
  raise_file_limit(); // blocks in memory have a descriptor each
  const process_log log{s, directory->path() + "/" + run.name + ".log", run.warn_on_stderr};
  if (const auto failure = enter(start.limits); !failure.empty())
    log.loggers()("launcher")->warn("limits: {}", failure);
  if (const auto warning = insecurity_of(s); !warning.empty()) log.loggers()("launcher")->warn("insecure: {}", warning);

  node_config config{true};
  if (auto applied = config.apply(s); !applied) return failed(applied.error());
  caf::actor_system system{config};
  const auto patience = s.get(keys::driver_request_timeout);
  const auto told_to_end = [] {
    sigset_t come;
    sigpending(&come);
    return sigismember(&come, SIGTERM) == 1 || sigismember(&come, SIGINT) == 1 || sigismember(&come, SIGHUP) == 1;
  };
  auto driver = connect<driver_actor>(system, start.driver.host, start.driver.port, patience, told_to_end);
  if (!driver && driver.error().code == ec::cancelled) return 0;
  if (!driver) return failed(driver.error());
  auto cluster_id = start.cluster_id;
  if (cluster_id.empty()) {
    auto known = introduce(system, *driver, peer_role::executor, *secret, patience);
    if (!known) return failed(known.error());
    cluster_id = known->cluster_id;
  }

  auto info = start.info;
  info.epoch = make_incarnation();
  info.pid = static_cast<std::uint32_t>(getpid());
  info.native = run.native;
  info.shuffle_service = start.shuffle_service;
  info.build_id = build_id();
  info.log_file = log.path();
  info.slots = slots_of(info.capacity, info.profile).slots;

  // A disk that has broken since the session began is left out.
  std::vector<run_directory> local_directories;
  std::vector<std::string> blocks_directories;
  error left_out;
  for (const auto& path : start.local_directories) {
    auto joined = run_directory::join(path, keys::local_dir.name);
    auto made = joined ? joined->subdirectory(blocks_prefix + run.name) : joined.error();
    if (made) {
      local_directories.push_back(std::move(*joined));
      blocks_directories.push_back(std::move(*made));
    } else {
      left_out = made.error();
      log.loggers()("launcher")->warn("left-out {}", left_out.message);
    }
  }
  if (blocks_directories.empty()) {
    if (left_out) return failed(left_out);
    auto made = directory->subdirectory(blocks_prefix + run.name);
    if (!made) return failed(made.error());
    blocks_directories.push_back(std::move(*made));
  }
  auto attempts_parents = paths_of(local_directories);
  if (attempts_parents.empty()) attempts_parents.push_back(directory->path());
  auto attempts_directories = make_attempts_directories(directory->path(), attempts_parents, run.name);
  if (!attempts_directories) return failed(attempts_directories.error());
  const auto host = host_directory::join(s, directory->path(), cluster_id, [&](const error& cause) {
    log.loggers()("launcher")->warn("shares-nothing-on-this-host {}", cause.message);
  });
  const auto memory = memory_split_of(s);
  const auto blocks = std::make_shared<block_store>(
      block_store::options{blocks_directories, memory.for_blocks(info.profile), shared_from(s),
                           file_limit() / 2}); // the rest is for connections, spills and what tasks open
  const auto shared_secret = std::make_shared<const session_secret>(*secret);
  const auto serving = serving_options(s, cluster_id, host.sockets(), info.epoch);
  auto server = block_server::start(serving, *secret, *blocks);
  if (!server) return failed(server.error());
  const auto reachable = address_to_reach(serving.address, start.driver.host, start.driver.port);
  if (!reachable) return failed(reachable.error());
  info.blocks.host = *reachable;
  info.blocks.port = (*server)->port();
  block_client fetcher{reading_options(s, cluster_id, host.sockets()), *secret, std::make_shared<local_blocks>()};
  broadcast_reader broadcasts{{host.files(), start.driver.host, s.get(keys::transfer_read_timeout)}, &fetcher};

  std::mutex mutex;
  std::optional<error> ended;
  bool clean = true;
  const auto main_thread = pthread_self();
  executor_config executor;
  executor.driver = *driver;
  executor.cluster_id = cluster_id;
  executor.secret = shared_secret;
  executor.blocks = blocks;
  executor.loggers = log.loggers();
  executor.driver_timeout = s.get(keys::executor_driver_timeout);
  executor.abandon_timeout = s.get(keys::executor_abandon_timeout);
  executor.request_timeout = patience;
  executor.shutdown_grace = s.get(keys::shutdown_grace);
  executor.runner.shuffles = &fetcher;
  executor.runner.broadcasts = &broadcasts;
  executor.runner.attempts_directories = std::move(*attempts_directories);
  executor.runner.staging_journal =
      directory->path() + "/" + (start.cluster_id.empty() ? own_staging_journal_name : staging_journal_name);
  executor.runner.stderr_file = stderr_file();
  executor.runner.ordinals = apply_device_mask(info.capacity);
  executor.runner.limits = {start.limits.group, start.limits.by_group(), start.limits.data_limit(),
                            start.command_processes};
  executor.runner.kill_grace = s.get(keys::task_kill_grace);
  executor.runner.terms = command_terms_of(s);
  executor.runner.memory = memory;
  executor.runner.compression = compression_of(s);
  executor.runner.max_inline_result = static_cast<std::uint64_t>(s.get(keys::task_max_inline_result));
  block_connection::options connecting{cluster_id, host.sockets(), s.get(keys::transfer_connect_timeout),
                                       s.get(keys::transfer_read_timeout)};
  if (start.shuffle_service)
    executor.take_over = [&, to_log = log.loggers()("launcher")](const block_takeover& what,
                                                                 const std::function<bool()>& stop) {
      // Nobody reads any more at the places of those whose outputs are all gone.
      if (blocks->held().empty()) (*server)->close_inherited();
      error failure;
      auto taken = take_over(what, *blocks, **server, *secret, connecting, stop, failure);
      if (failure) to_log->warn("take-over executor={} {}", what.from.executor.value, failure.message);
      return block_takeover{what.from, std::move(taken), what.sockets};
    };
  executor.info = std::move(info);
  if (run.on_admitted) executor.on_admitted = [&run, cluster_id](executor_id id) { run.on_admitted(id, cluster_id); };
  executor.on_end = [&](const error& reason, bool all_ended) {
    std::lock_guard lock{mutex};
    ended = reason;
    clean = all_ended;
    pthread_kill(main_thread, SIGUSR1);
  };
  // What the runtime itself has reserved by now does not count, nor do the stacks of the threads that run tasks.
  if (const auto data = start.limits.data_limit(); data > 0)
    limit_own_data(data + static_cast<std::uint64_t>(executor.info.slots) * stack_of_thread);
  auto actor = spawn_executor(system, std::move(executor));

  for (;;) {
    int signal = 0;
    if (sigwait(&waited, &signal) != 0) continue;
    if (signal != SIGUSR1) shut_down(actor);
    std::lock_guard lock{mutex};
    if (ended) break;
  }
  actor = nullptr;
  if (!clean) {
    // A task of the user's will not end; its thread can only be ended with the process.
    why = "a native task did not end within troupe.shutdown.grace";
    std::_Exit(1);
  }
  cancel_delayed(system);
  return *ended ? failed(*ended) : 0;
}

namespace {

int run_started_executor(const executor_entry& entry, bool native) {
  // Read before the fork, since the keeper's patience is a setting; nothing here starts a thread.
  auto document = decode_executor_start(entry.start);
  if (!document) {
    std::cerr << "troupe: executor: " << document.error().message << '\n';
    return exit_code_of(document.error().code);
  }
  keeper_options keeping;
  keeping.liveness_fd = entry.liveness_fd;
  keeping.grace =
      document->effective.get(keys::executor_driver_timeout) + document->effective.get(keys::shutdown_grace);
  keeping.end_grace = ending_time(document->effective);
  keeping.clear_up = [&start = document->start](bool orphaned) {
    if (!orphaned) return; // whoever started it reads first what it took
    remove_group(start.limits);
    run_directory::sweep(std::filesystem::path{start.run_directory}.parent_path().string());
    for (const auto& path : start.local_directories)
      run_directory::sweep(std::filesystem::path{path}.parent_path().string());
  };
  if (const auto code = keep(keeping)) return *code;
  ::prctl(PR_SET_NAME, "troupe-executor"); // its arguments are those of the program
  std::string why;
  executor_run run;
  run.name = name_of_executor(document->start.info.request);
  run.native = native;
  if (!document->start.shuffle_service) // nobody asks for its log by a number
    run.on_admitted = [&](executor_id id, const std::string&) {
      std::error_code ignored; // it runs as well without
      std::filesystem::create_symlink(run.name + ".log", document->start.run_directory + "/" + log_link_of(id),
                                      ignored);
    };
  const int code = run_executor(document->start, document->effective, run, why);
  if (!why.empty()) std::cerr << "troupe: executor: " << why << '\n';
  return code;
}

} // namespace

void enter_executor(bool native) {
  const auto entry = take_executor_entry();
  if (!entry) return;
  int code = 1;
  try {
    code = run_started_executor(*entry, native);
  } catch (...) { // what main would do with it is not for an executor, nor for its keeper
    std::cerr << "troupe: executor: " << text_of_exception() << '\n';
  }
  end_process(code);
}

} // namespace troupe
