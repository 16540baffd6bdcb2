#include <troupe/launcher/driver_session.hpp>

#include <chrono>
#include <csignal>
#include <ctime>

#include <unistd.h>

#include <troupe/launcher/application.hpp>
#include <troupe/launcher/session_guard.hpp>
#include <troupe/runtime/config/amount_text.hpp>
#include <troupe/runtime/execution/signals.hpp>

namespace troupe {
namespace {

using clock = std::chrono::steady_clock;
constexpr auto look_again = std::chrono::milliseconds{5};

sigset_t end_signals() { return unless_ignored({SIGTERM, SIGINT, SIGHUP}); }

/// True when a signal asks for the end within the time.
bool wait_for_signal(duration limit) {
  const auto set = end_signals();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
  const timespec time{seconds.count(), (limit - seconds).count()};
  return sigtimedwait(&set, nullptr, &time) > 0;
}

/// Waits until so many executors have said hello. @returns false when a signal came first, or nobody waits for them
result<bool> wait_for_executors(cluster_jobs& jobs, std::size_t wanted, duration limit,
                                const std::function<bool()>& abandoned) {
  const auto deadline = clock::now() + limit;
  for (;;) {
    const auto status = jobs.status();
    if (!status) return status.error();
    if (abandoned && abandoned()) return false;
    if (status->executors.size() >= wanted) return true;
    if (clock::now() > deadline)
      return make_error(ec::infeasible, "only " + std::to_string(status->executors.size()) + " of " +
                                            std::to_string(wanted) + " executors came within " + time_to_string(limit) +
                                            " (troupe.dynamic-allocation.launch-timeout)");
    if (wait_for_signal(look_again)) return false;
  }
}

} // namespace

result<void> run_driver_session(const driver_session_options& options) {
  const auto signals = end_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  const auto& s = options.effective;
  application::options opts;
  opts.effective = s;
  opts.cluster = options.cluster;
  opts.by_hand = !options.cluster;
  opts.warn_on_stderr = options.warn_on_stderr;
  session_guard guard;
  opts.before_making = [&guard](const std::string& directory) { guard.watch(directory); };
  auto app = application::start(std::move(opts));
  if (!app) return app.error();

  std::size_t standing = 0;
  if (options.cluster)
    for (const auto& e : options.cluster->executors) standing += e.count;
  const auto all =
      wait_for_executors(*(*app)->jobs(), standing, s.get(keys::dynamic_allocation_launch_timeout), options.abandoned);
  if (!all) {
    auto why = all.error();
    return why;
  }
  if (!*all) return make_error(ec::cancelled, "interrupted");

  session_record record;
  record.name = s.get(keys::app_name);
  record.address = to_string(*(*app)->address());
  record.cluster_id = (*app)->cluster_id();
  record.session_id = (*app)->session_id();
  record.secret_file = (*app)->secret_file();
  record.config_file = options.config_file;
  record.directory = (*app)->directory();
  record.pid = getpid();
  record.started = process_start(record.pid);
  record.warnings = (*app)->warnings();
  if (auto written = write_session(record); !written) return written;
  if (options.on_ready) options.on_ready(record, standing);
  int signal = 0;
  while (sigwait(&signals, &signal) != 0) {}
  return {};
}

} // namespace troupe
