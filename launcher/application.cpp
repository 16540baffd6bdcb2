#include <troupe/launcher/application.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <future>
#include <thread>

#include <sys/sysinfo.h>
#include <unistd.h>

#include <troupe/actors/driver.hpp>
#include <troupe/actors/in_process_backend.hpp>
#include <troupe/actors/introduction.hpp>
#include <troupe/launcher/command_terms.hpp>
#include <troupe/launcher/ending_time.hpp>
#include <troupe/launcher/event_log.hpp>
#include <troupe/launcher/executor_entry.hpp>
#include <troupe/launcher/executor_process.hpp>
#include <troupe/launcher/host_directory.hpp>
#include <troupe/launcher/job_connection.hpp>
#include <troupe/launcher/local_directories.hpp>
#include <troupe/launcher/machine_resources.hpp>
#include <troupe/launcher/node_system.hpp>
#include <troupe/launcher/outer_task.hpp>
#include <troupe/launcher/process_backend.hpp>
#include <troupe/launcher/process_log.hpp>
#include <troupe/launcher/security.hpp>
#include <troupe/launcher/session_limits.hpp>
#include <troupe/launcher/session_registry.hpp>
#include <troupe/launcher/transfer_settings.hpp>
#include <troupe/messages/network.hpp>
#include <troupe/messages/type_ids.hpp>
#include <troupe/runtime/config/profile_settings.hpp>
#include <troupe/runtime/execution/attempts_directories.hpp>
#include <troupe/runtime/execution/failure_logs.hpp>
#include <troupe/runtime/execution/staging_journal.hpp>
#include <troupe/runtime/transfer/block_connection.hpp>
#include <troupe/runtime/transfer/broadcast_publisher.hpp>
#include <troupe/runtime/transfer/broadcast_reader.hpp>
#include <troupe/runtime/transfer/handshake.hpp>
#include <troupe/runtime/transfer/local_address.hpp>

namespace troupe {

namespace {

/// Where each task's `troupe run` has executor processes, each level takes two programs: five sessions fit.
constexpr unsigned deepest_session = 10;

} // namespace

struct application::impl {
  options opts;
  std::optional<run_directory> directory;
  std::vector<std::string> warnings; ///< for people
  std::vector<run_directory> local_directories;
  std::optional<process_log> log;
  std::shared_ptr<session_limits> limits; ///< of executors that are started here
  bool runs_tasks = false;                ///< executors live in this process
  std::unique_ptr<node_config> config;
  std::unique_ptr<caf::actor_system> system;
  std::shared_ptr<local_blocks> local = std::make_shared<local_blocks>();
  host_directory shared_here;
  std::shared_ptr<block_client> fetcher;
  std::shared_ptr<broadcast_reader> own_broadcasts; ///< of executors in this process, else null
  std::unique_ptr<broadcast_publisher> publisher;   ///< where executors are elsewhere
  incarnation program = make_incarnation();         ///< names this program's broadcasts
  std::shared_ptr<events::event_file> event_log;    ///< null: none is wanted
  driver_actor driver;
  bool own_driver = false;
  std::shared_ptr<job_connection> jobs;
  std::optional<endpoint> address;
  std::string cluster_id;
  std::string session_id;
  std::string secret_file;
  std::vector<std::string> fake;
  std::int64_t cores = 0;

  result<void> start();
  result<void> start_driver(const master_address& master);
  result<void> connect_to(const endpoint& given);
  result<void> make_system(bool networked);
  void warn(const char* what, std::string text);
  void open_log();
  void share_host();
  bool can_hand_over() const;
  void make_fetcher(const session_secret& secret);
  void make_publisher(const session_secret& secret, const std::string& host);
  void make_jobs();
  std::string described() const;
  master_kind kind_of_master() const;
  result<driver_config> configure_driver() const;
  void stop();
};

namespace {

/// In whole MiB, since errors and status pages name the exact amount.
std::int64_t machine_memory() {
  struct sysinfo info {};
  if (sysinfo(&info) != 0) return std::int64_t{1} << 30;
  return (static_cast<std::int64_t>(info.totalram) * info.mem_unit) >> 20 << 20;
}

/// What executors run. Where its file was replaced meanwhile, or goes by another name in this process's view of the
/// file systems, still what runs here.
std::string this_program() {
  std::error_code ec;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", ec);
  if (!ec && std::filesystem::equivalent(path, "/proc/self/exe", ec)) return path.string();
  return "/proc/" + std::to_string(getpid()) + "/exe";
}

} // namespace

result<void> application::impl::make_system(bool networked) {
  config = std::make_unique<node_config>(networked);
  if (auto applied = config->apply(opts.effective); !applied) return applied;
  system = std::make_unique<caf::actor_system>(*config);
  return {};
}

void application::impl::share_host() {
  shared_here = host_directory::join(opts.effective, directory->path(), cluster_id, [&](const error& why) {
    log->loggers()("launcher")->warn("shares-nothing-on-this-host {}", why.message);
  });
}

/// Whether executors on this machine can leave their output to a process that stays: its sockets have names.
bool application::impl::can_hand_over() const {
  if (shared_here.sockets().empty()) return false;
  const auto path = local_socket_path(shared_here.sockets(), program);
  if (fits_local_socket(path)) return true;
  log->loggers()("launcher")
      ->warn("no-shuffle-service {} is too long for the name of a socket: set {} to a shorter one", path,
             keys::run_directory.name);
  return false;
}

void application::impl::make_fetcher(const session_secret& secret) {
  fetcher =
      std::make_shared<block_client>(reading_options(opts.effective, cluster_id, shared_here.sockets()), secret, local);
}

/// @param reached under which executors reach this process; "": as they reach the driver
void application::impl::make_publisher(const session_secret& secret, const std::string& reached) {
  broadcast_publisher::options publishing;
  publishing.program = program;
  publishing.directory = shared_here.files();
  if (publishing.directory.empty())
    publishing.directory = (local_directories.empty() ? *directory : local_directories.front()).path();
  publishing.serving = serving_options(opts.effective, cluster_id, shared_here.sockets(), program);
  publishing.serving.address = opts.effective.get(keys::driver_bind_address);
  publishing.host = reached;
  publishing.compression = compression_of(opts.effective);
  publisher = std::make_unique<broadcast_publisher>(std::move(publishing), secret);
}

void application::impl::make_jobs() {
  job_connection::options connection;
  connection.driver = driver;
  connection.described = own_driver ? "the driver of this process" : "the driver at " + to_string(*address);
  connection.blocks = fetcher;
  if (publisher) {
    connection.publish = [this](const broadcast_content& content) { return publisher->publish(content.encode()); };
    connection.withdraw = [this](broadcast_id id) { publisher->withdraw(id); };
  } else {
    // Executors of this process see the value itself.
    connection.publish = [own = own_broadcasts,
                          id = broadcast_id{program, 0}](const broadcast_content& content) mutable {
      ++id.number;
      own->keep(id, content.type, content.value);
      return result<broadcast_reference>{broadcast_reference{id, {}, 0}};
    };
    connection.withdraw = [own = own_broadcasts](broadcast_id id) { own->drop(id); };
  }
  connection.loggers = log->loggers();
  connection.request_timeout = opts.effective.get(keys::driver_request_timeout);
  connection.on_progress = opts.on_progress;
  connection.on_end = opts.on_end;
  jobs = std::make_shared<job_connection>(*system, std::move(connection));
}

/// Where executors come from, for people.
std::string application::impl::described() const {
  if (opts.by_hand) return "executors started by hand";
  if (!opts.cluster) return opts.effective.get(keys::master);
  const auto hosts = opts.cluster->hosts.size();
  return "a cluster of " + std::to_string(hosts) + (hosts == 1 ? " host" : " hosts");
}

/// What the rules for profiles call the place where executors come from.
master_kind application::impl::kind_of_master() const {
  if (opts.by_hand) return master_kind::node_agents;
  if (opts.cluster) return master_kind::local_cluster;
  return master_kind_of(opts.effective);
}

result<driver_config> application::impl::configure_driver() const {
  const auto& s = opts.effective;
  const auto rules = rules_of(s, kind_of_master());
  auto defaults = default_profile(s, rules);
  if (!defaults) return defaults.error();
  driver_config d;
  d.rules = rules;
  d.cluster_id = cluster_id;
  d.session_id = session_id;
  d.master = described();
  d.defaults = std::move(*defaults);
  d.overhead = overhead_rule_of(s);
  d.scheduler.matching = rules.matching;
  // Spec DG-7; Troupe's own rules make what is lost again at once.
  if (d.scheduler.matching == profile_matching::exact) d.scheduler.resubmit_delay = std::chrono::milliseconds{200};
  d.scheduler.max_batch = static_cast<std::uint32_t>(s.get(keys::scheduler_max_batch));
  d.scheduler.window_batches = static_cast<std::uint32_t>(s.get(keys::scheduler_window_batches));
  d.scheduler.queue_ahead = s.get(keys::scheduler_queue_ahead);
  d.scheduler.long_task = 10 * d.scheduler.queue_ahead;
  d.scheduler.loss_timeout = s.get(keys::executor_heartbeat_timeout);
  d.scheduler.alternative_wait = s.get(keys::scheduler_alternative_wait);
  d.scheduler.scarce_resource_wait = s.get(keys::scheduler_scarce_resource_wait);
  d.scheduler.placement = placement_policy_of(s);
  d.scheduler.executor_wait = s.get(keys::locality_executor_wait);
  d.scheduler.host_wait = s.get(keys::locality_host_wait);
  d.scheduler.speculation = {s.get(keys::speculation_enabled), s.get(keys::speculation_quantile),
                             s.get(keys::speculation_multiplier), s.get(keys::speculation_min_task_runtime)};
  d.scheduler.sharing = sharing_of(s);
  d.scheduler.infeasible_timeout = s.get(keys::scheduler_infeasible_timeout);
  auto& exclusion = d.scheduler.exclusion;
  exclusion.enabled = s.get(keys::exclude_on_failure_enabled);
  exclusion.max_failed_tasks_per_executor =
      static_cast<std::uint32_t>(s.get(keys::exclude_on_failure_max_failed_tasks_per_executor));
  exclusion.max_failed_executors_per_node =
      static_cast<std::uint32_t>(s.get(keys::exclude_on_failure_max_failed_executors_per_node));
  exclusion.timeout = s.get(keys::exclude_on_failure_timeout);
  d.scheduler.unschedulable_timeout = s.get(keys::exclude_on_failure_unschedulable_timeout);
  d.scheduler.slot_check_interval = s.get(keys::barrier_slot_check_interval);
  d.scheduler.max_slot_check_failures = static_cast<std::uint32_t>(s.get(keys::barrier_max_slot_check_failures));
  d.scheduler.max_stage_attempts = static_cast<std::uint32_t>(s.get(keys::scheduler_max_stage_attempts));
  d.scheduler.max_unconsumed = static_cast<std::uint64_t>(s.get(keys::pipeline_max_unconsumed));
  d.scheduler.max_result_bytes = static_cast<std::uint64_t>(s.get(keys::driver_max_result_size));
  d.scheduler.retained_jobs = static_cast<std::uint32_t>(s.get(keys::driver_retained_jobs));
  d.allocation.dynamic = s.get(keys::dynamic_allocation_enabled);
  d.allocation.idle_timeout = s.get(keys::dynamic_allocation_executor_idle_timeout);
  d.allocation.keeping_idle_timeout = s.get(keys::dynamic_allocation_cached_executor_idle_timeout);
  d.allocation.launch_timeout = s.get(keys::dynamic_allocation_launch_timeout);
  d.allocation.retry_pause = s.get(keys::dynamic_allocation_retry_pause);
  d.allocation.max_executors = static_cast<std::uint32_t>(s.get(keys::dynamic_allocation_max_executors));
  d.heartbeat_interval = s.get(keys::executor_heartbeat_interval);
  d.heartbeat_timeout = s.get(keys::executor_heartbeat_timeout);
  d.request_timeout = s.get(keys::driver_request_timeout);
  d.loggers = log->loggers();
  d.unix_nanoseconds = unix_nanoseconds_now;
  d.max_event_lag = static_cast<std::size_t>(s.get(keys::events_max_lag));
  d.forget_files = [session = directory->path()](job_id job) {
    remove_attempts(all_attempts_directories(session), job);
  };
  const log_limits of_logs{s.get(keys::logs_keep), static_cast<std::uint64_t>(s.get(keys::logs_max_size))};
  d.keep_printed = [session = directory->path(), logs = std::make_shared<failure_logs>(session_id, of_logs),
                    log = log->loggers()("launcher")](const effects::keep_printed& what) {
    const auto name =
        std::to_string(what.stage.value) + "." + std::to_string(what.partition) + "." + std::to_string(what.attempt);
    try {
      for (const auto& attempts : all_attempts_directories(session)) {
        const auto kept =
            logs->keep(what.output_directory, what.job, name, attempts_of(attempts, what.job) + "/" + name);
        if (!kept.fault.empty())
          log->warn("printed-output-not-kept what attempt {} of job {} has printed could not be kept: {}", name,
                    what.job.value, kept.fault);
        if (!kept.out.empty() || !kept.err.empty() || !kept.fault.empty()) return;
      }
    } catch (const std::exception&) { // such as no memory: nothing depends on it
    }
  };
  if (event_log) d.on_event = [to = event_log](const events::record& event) { to->append(event); };
  return d;
}

result<void> application::impl::start_driver(const master_address& master) {
  if (process_depth() >= deepest_session)
    return make_error(ec::invalid_configuration,
                      "no session is started here: " + std::to_string(process_depth()) +
                          " programs with Troupe have led to this one (TROUPE_DEPTH = " +
                          std::to_string(process_depth()) + ", at most " + std::to_string(deepest_session - 1) +
                          "), as where tasks start sessions without end; if that is meant, unset TROUPE_DEPTH");
  const auto& s = opts.effective;
  own_driver = true;
  cluster_id = make_random_name();
  session_id = make_random_name();
  const auto base = run_directory::base_of(s.get(keys::run_directory));
  run_directory::sweep(base);
  if (opts.before_making) opts.before_making(base + "/" + session_id);
  auto made = run_directory::create(base, session_id);
  if (!made) return made.error();
  directory.emplace(std::move(*made));
  open_log();
  if (!opts.by_hand) {
    auto made_for_blocks = make_local_directories(
        s, session_id, [&](const error& why) { warn("left-out", "a local directory is left out: " + why.message); },
        opts.before_making);
    if (!made_for_blocks) return made_for_blocks.error();
    local_directories = std::move(*made_for_blocks);
    if (auto warning = only_memory(s, local_directories); !warning.empty()) warn("no-disk", std::move(warning));
  }
  if (auto warning = replaced_variables(); !opts.by_hand && !warning.empty()) warn("replaced", std::move(warning));
  secret_file = s.get(keys::security_secret_file);
  if (secret_file.empty()) secret_file = directory->path() + "/secret";
  const auto found = session_secret::load_or_make(secret_file);
  if (!found) return found.error();
  const auto& secret = *found;

  // A driver whose executors are started elsewhere lends nothing of its own machine.
  auto machine = opts.by_hand ? result<machine_resources>{machine_resources{}} : resources_of_machine(s);
  if (!machine) return machine.error();
  fake = machine->fake;
  for (const auto& note : machine->notes) log->loggers()("launcher")->info("{}", note);
  const bool in_process = !opts.by_hand && !opts.cluster && std::holds_alternative<local_master>(master);
  runs_tasks = in_process;
  if (auto up = make_system(!in_process); !up) return up;
  if (!opts.by_hand)
    limits =
        std::make_shared<session_limits>(s, session_id, directory->path(), !in_process, log->loggers()("launcher"));
  if (!in_process) share_host();
  make_fetcher(secret);
  if (in_process)
    own_broadcasts = std::make_shared<broadcast_reader>();
  else
    make_publisher(secret, {});

  auto opened = open_event_log(s, session_id, log->loggers()("launcher"));
  if (!opened) return opened.error();
  event_log = std::move(*opened);
  auto d = configure_driver();
  if (!d) return d.error();
  d->secret = std::make_shared<const session_secret>(secret);
  // How a backend tells the user what to edit.
  const auto source = opts.cluster ? std::string{"cluster.hosts"} : "troupe.master = " + s.get(keys::master);
  std::function<std::shared_ptr<executor_backend>(const endpoint&)> make_process_backend;
  if (in_process) {
    const auto& l = std::get<local_master>(master);
    carving_host host;
    host.name = "localhost";
    host.cores = l.cores > 0 ? l.cores : std::max(1u, std::thread::hardware_concurrency());
    host.memory = machine_memory();
    host.custom = machine->pools;
    cores = host.cores;
    d->make_backend = [this, host, source, in_secret = d->secret](driver_actor to) {
      in_process_backend::options b;
      b.hosts = {host};
      b.described_by = source;
      b.driver = std::move(to);
      b.cluster_id = cluster_id;
      b.secret = in_secret;
      b.directory = directory->path();
      b.local_directories = paths_of(local_directories);
      if (b.local_directories.empty()) b.local_directories = {directory->path()};
      b.staging_journal = directory->path() + "/" + staging_journal_name;
      b.limit_commands = [limits = limits](const std::string& name, const executor_capacity& capacity) {
        return command_limits{limits->grant(name, capacity).group, false, 0, limits->command_processes()};
      };
      b.keep_attempts = true; // `troupe logs` shows them
      if (const auto gpus = host.custom.find(std::string{resource_names::gpu}); gpus != host.custom.end())
        b.devices = inherited_device_mask().order_of(gpus->second.addresses);
      b.memory = memory_split_of(opts.effective);
      b.compression = compression_of(opts.effective);
      b.max_inline_result = static_cast<std::uint64_t>(opts.effective.get(keys::task_max_inline_result));
      b.driver_timeout = opts.effective.get(keys::executor_driver_timeout);
      b.abandon_timeout = opts.effective.get(keys::executor_abandon_timeout);
      b.shutdown_grace = opts.effective.get(keys::shutdown_grace);
      b.kill_grace = opts.effective.get(keys::task_kill_grace);
      b.terms = command_terms_of(opts.effective);
      b.local = local;
      b.fetcher = fetcher;
      b.broadcasts = own_broadcasts;
      b.loggers = log->loggers();
      return std::make_shared<in_process_backend>(*system, std::move(b));
    };
  } else if (!opts.by_hand) {
    const auto description =
        opts.cluster ? *opts.cluster : cluster_of(std::get<local_cluster_master>(master), machine->pools);
    for (const auto& host : description.hosts) {
      cores += host.cores;
      const auto gpus = host.custom.find(std::string{resource_names::gpu});
      if (gpus == host.custom.end()) continue;
      if (auto visible = check_visible(gpus->second.addresses, inherited_device_mask()); !visible)
        return make_error(visible.error().code, "host " + host.name + ": " + visible.error().message);
    }
    d->allocation.only_fixed = !description.elastic;
    const bool service = can_hand_over();
    d->allocation.outputs_outlive = service;
    d->allocation.exact_matching = d->scheduler.matching == profile_matching::exact;
    for (const auto& e : description.executors) d->fixed_executors.emplace_back(e.profile, e.count);
    make_process_backend = [this, description, source, service](const endpoint& at) {
      process_backend::options b;
      b.hosts = description.hosts;
      b.described_by = source;
      b.program = opts.program.empty() ? this_program() : opts.program;
      b.start.driver = at;
      b.start.cluster_id = cluster_id;
      b.start.secret_file = secret_file;
      b.start.run_directory = directory->path();
      b.start.local_directories = paths_of(local_directories);
      b.effective = opts.effective;
      b.shuffle_service = service;
      b.limits = limits;
      b.grace = ending_time(opts.effective);
      return std::make_shared<process_backend>(std::move(b));
    };
  }
  if (in_process) {
    driver = spawn_driver(*system, std::move(*d));
  } else {
    // The backend hands the address on, so it waits until the driver is published.
    const auto bind = s.get(keys::driver_bind_address);
    std::promise<endpoint> published;
    if (make_process_backend)
      d->make_backend = [make_process_backend, known = published.get_future().share()](const driver_actor&) {
        return make_process_backend(known.get());
      };
    driver = spawn_driver(*system, std::move(*d));
    auto bound = publish(*system, driver, static_cast<std::uint16_t>(s.get(keys::driver_port)), bind);
    published.set_value({bind, bound ? *bound : std::uint16_t{0}});
    if (!bound) return bound.error();
    address = endpoint{bind, *bound};
  }
  make_jobs();
  return {};
}

result<void> application::impl::connect_to(const endpoint& given) {
  const auto& s = opts.effective;
  const auto where = reached_from_here(given);
  const auto base = run_directory::base_of(s.get(keys::run_directory));
  run_directory::sweep(base);
  sweep_local_directories(s);
  if (auto allowed = check_reachable_openly(where.host, s); !allowed) return allowed;
  secret_file = s.get(keys::security_secret_file);
  if (secret_file.empty()) secret_file = secret_of_local_driver(base, where);
  if (secret_file.empty()) return unknown_secret(where, s.get(keys::driver_request_timeout));
  auto secret = session_secret::load(secret_file);
  if (!secret) return secret.error();
  const auto own = "client-" + make_random_name();
  if (opts.before_making) opts.before_making(base + "/" + own);
  auto made = run_directory::create(base, own);
  if (!made) return made.error();
  directory.emplace(std::move(*made));
  open_log();
  if (auto up = make_system(true); !up) return up;
  const auto timeout = s.get(keys::driver_request_timeout);
  auto found = connect<driver_actor>(*system, where.host, where.port, timeout);
  if (!found) return found.error();
  driver = *found;
  address = where;

  auto known = introduce(*system, driver, peer_role::client, *secret, timeout);
  if (!known) return known.error();
  cluster_id = known->cluster_id;
  session_id = known->session_id;
  if (auto warning = waits_for_its_own_task(session_id); !warning.empty()) warn("in-a-task", std::move(warning));
  share_host();
  if (shared_here.files().empty()) {
    auto made_for_broadcasts = make_local_directories(
        s, own, [&](const error& why) { warn("left-out", "a local directory is left out: " + why.message); },
        opts.before_making);
    if (made_for_broadcasts) local_directories = std::move(*made_for_broadcasts); // else the run directory has them
  }
  make_fetcher(*secret);
  auto reached = address_to_reach(s.get(keys::driver_bind_address), where.host, where.port);
  if (!reached) return reached.error();
  make_publisher(*secret, *reached);
  make_jobs();
  peer_registration registration;
  registration.proof = known->proof;
  registration.program = program;
  registration.name = this_process();
  caf::scoped_actor self{*system};
  error failed;
  ask(self, driver, timeout, box(std::move(registration)), jobs->client())
      .receive([](const boxed<welcome>&) {}, [&](const caf::error& why) { failed = from_caf_error(*system, why); });
  if (failed) return failed;
  return {};
}

void application::impl::warn(const char* what, std::string text) {
  log->loggers()("launcher")->warn("{} {}", what, text);
  warnings.push_back(std::move(text));
}

void application::impl::open_log() {
  log.emplace(opts.effective, directory->path() + "/" + opts.name + ".log", opts.warn_on_stderr);
  if (own_driver)
    if (const auto warning = insecurity_of(opts.effective); !warning.empty())
      log->loggers()("launcher")->warn("insecure: {}", warning);
}

result<void> application::impl::start() {
  auto master = parse_master(opts.effective.get(keys::master));
  if (!master) return master.error();
  if (const auto* where = std::get_if<endpoint>(&*master); where && !opts.cluster && !opts.by_hand)
    return connect_to(*where);
  return start_driver(*master);
}

void application::impl::stop() {
  const auto grace = ending_time(opts.effective) + std::chrono::milliseconds{500};
  if (own_driver && jobs) static_cast<void>(jobs->stop("the session is over", grace));
  if (jobs) jobs->close();
  if (own_driver && driver) shut_down(driver);
  driver = nullptr;
  // Commands have had their time by now; a task of a program may hang for ever, but only in a process that runs some.
  const auto patience = runs_tasks ? opts.effective.get(keys::shutdown_grace) + std::chrono::seconds{2} : grace;
  if (system && !await_actors(*system, patience)) {
    // A native task that does not end keeps its executor, and a system that goes before its actors takes the process
    // along. What is kept here ends with the process.
    static_cast<void>(system.release());
    static_cast<void>(config.release());
  }
  if (system) cancel_delayed(*system);
  system.reset();
  if (event_log) event_log->close();
}

application::application(std::unique_ptr<impl> p) : impl_(std::move(p)) {}
application::~application() { impl_->stop(); }

result<std::unique_ptr<application>> application::start(options opts) {
  end_if_no_executor();
  if (was_started_as_executor())
    return make_error(ec::invalid_configuration, "a task in an executor cannot start a cluster of its own: start a "
                                                 "program that does");
  auto p = std::make_unique<impl>();
  p->opts = std::move(opts);
  auto started = p->start();
  std::unique_ptr<application> app{new application{std::move(p)}};
  if (!started) return started.error(); // what had been started ends with `app`
  return app;
}

std::shared_ptr<cluster_jobs> application::jobs() const noexcept { return impl_->jobs; }
std::function<void()> application::make_interruption() const {
  return [jobs = impl_->jobs, own = impl_->own_driver, grace = ending_time(impl_->opts.effective)] {
    jobs->cancel_all("interrupted");
    if (own) static_cast<void>(jobs->stop("interrupted", grace));
  };
}
const std::optional<endpoint>& application::address() const noexcept { return impl_->address; }
const std::vector<std::string>& application::warnings() const noexcept { return impl_->warnings; }
const std::string& application::cluster_id() const noexcept { return impl_->cluster_id; }
const std::string& application::session_id() const noexcept { return impl_->session_id; }
const std::string& application::secret_file() const noexcept { return impl_->secret_file; }
const std::string& application::directory() const noexcept { return impl_->directory->path(); }
const std::vector<std::string>& application::fake_resources() const noexcept { return impl_->fake; }
std::int64_t application::cores() const noexcept { return impl_->cores; }

session_options application::make_session_options() const {
  const auto& s = impl_->opts.effective;
  session_options out;
  out.default_parallelism = static_cast<std::uint32_t>(std::max<std::int64_t>(2, impl_->cores));
  out.max_partition_bytes = static_cast<std::uint64_t>(s.get(keys::files_max_partition_bytes));
  out.jobs.pool = s.get(keys::scheduler_pool);
  out.jobs.stage_timeout = s.get(keys::stage_timeout);
  out.jobs.task_timeout = s.get(keys::task_timeout);
  out.jobs.sync_timeout = s.get(keys::barrier_sync_timeout);
  out.jobs.max_task_failures = static_cast<std::uint32_t>(s.get(keys::task_max_failures));
  const auto& change = s.get(keys::scheduler_profile_change);
  out.jobs.on_profile_change = change == "merge"   ? profile_change::merge
                               : change == "error" ? profile_change::error
                               : change == "cut"   ? profile_change::cut
                                                   : profile_change::by_matching;
  out.fake_resources = impl_->fake;
  return out;
}

} // namespace troupe
