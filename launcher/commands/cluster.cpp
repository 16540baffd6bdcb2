#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include <troupe/launcher/background.hpp>
#include <troupe/launcher/commands/cluster_choice.hpp>
#include <troupe/launcher/commands/json_output.hpp>
#include <troupe/launcher/driver_session.hpp>
#include <troupe/launcher/ending_time.hpp>
#include <troupe/launcher/local_directories.hpp>
#include <troupe/launcher/node.hpp>
#include <troupe/launcher/run_directory.hpp>
#include <troupe/launcher/text_table.hpp>
#include <troupe/runtime/config/cluster_file.hpp>
#include <troupe/runtime/config/path_text.hpp>
#include <troupe/runtime/config/profile_settings.hpp>
#include <troupe/runtime/config/task_variables.hpp>

namespace troupe::commands {
namespace {

std::string absolute(const std::string& file) {
  std::error_code unknown;
  return plain_path(std::filesystem::absolute(file, unknown));
}

std::string executors(std::size_t count) { return std::to_string(count) + (count == 1 ? " executor" : " executors"); }

void print_up(const session_record& session, std::size_t count, bool json) {
  if (json) {
    auto out = json_of(session);
    out["executors"] = count;
    print_json(out);
  } else {
    std::cout << "cluster " << session.name << " is up at " << session.address << ": " << executors(count)
              << ", session " << session.session_id << '\n';
  }
  std::cout.flush();
}

int not_up(const error& why, bool json) {
  if (why.code != ec::cancelled) return complain(why, json);
  std::cerr << "troupe: interrupted: the cluster was not started\n";
  if (json) print_json({{"error", json_of(why)}});
  return 130;
}

/// A name that two have names neither.
void warn_of_namesakes(const session_record& own, const settings& s) {
  for (const auto& other : running_sessions(run_directory::base_of(s.get(keys::run_directory))))
    if (other.name == own.name && other.session_id != own.session_id)
      std::cerr << "troupe: warning: cluster " << printable(other.name) << " at " << other.address
                << " of yours has this name as well: say --cluster=" << own.address << " or --cluster=" << other.address
                << ", or give them names (" << keys::app_name.name << ")\n";
}

} // namespace

int node(const setting_flags& flags, bool json) {
  const auto loaded = load_settings(flags.source());
  if (!loaded) return complain(loaded.error(), false);
  const auto what = read_node(loaded->documents.front());
  if (!what) return complain(what.error(), false);
  return run_node(*what, loaded->effective, {.config_file = absolute(flags.config_file), .json = json});
}

int cluster_up(const setting_flags& flags, bool foreground, bool json) {
  const auto loaded = load_settings(flags.source());
  if (!loaded) return complain(loaded.error(), json);
  const auto file = absolute(flags.config_file);
  auto description = read_cluster(loaded->documents.front(), std::filesystem::path{file}.parent_path().string());
  if (!description) return complain(description.error(), json);
  // Before anything is started, since waiting for them would not help.
  const auto defaults = default_profile(loaded->effective, rules_of(loaded->effective, master_kind::local_cluster));
  if (!defaults) return complain(defaults.error(), json);
  if (auto fit =
          check_room(*description, *defaults, overhead_rule_of(loaded->effective), loaded->documents.front().file);
      !fit)
    return complain(fit.error(), json);
  std::size_t standing = 0;
  for (const auto& e : description->executors) standing += e.count;
  driver_session_options options;
  options.effective = loaded->effective;
  options.cluster = std::move(*description);
  options.config_file = file;
  if (foreground) {
    options.warn_on_stderr = true;
    bool printed = false;
    options.on_ready = [json, &printed, &s = loaded->effective](const session_record& session, std::size_t count) {
      warn_of_namesakes(session, s);
      print_up(session, count, json);
      printed = true;
    };
    const auto ran = run_driver_session(options);
    return ran ? 0 : not_up(ran.error(), json && !printed);
  }
  // The record lies in the run directory, whose path is all that has to come back.
  const auto directory = run_in_background(
      [&options](readiness& to) {
        ::unsetenv(sessions_variable.data()); // a task that has started the cluster does not wait for it
        options.on_ready = [&to](const session_record& session, std::size_t) { to.ready(session.directory); };
        options.abandoned = [&to] { return to.abandoned(); };
        const auto ran = run_driver_session(options);
        if (ran) return 0;
        to.failed(ran.error());
        return exit_code_of(ran.error().code);
      },
      ending_time(options.effective));
  if (!directory) return not_up(directory.error(), json);
  const auto session = read_session(*directory);
  if (!session) return complain(session.error(), json);
  for (const auto& warning : session->warnings) std::cerr << "troupe: warning: " << printable(warning, true) << '\n';
  warn_of_namesakes(*session, options.effective);
  print_up(*session, standing, json);
  return 0;
}

int cluster_down(const cluster_flags& flags) {
  const auto cluster = choose_cluster(flags);
  if (!cluster) return complain(cluster.error(), flags.json);
  if (!cluster->record)
    return complain(make_error(ec::invalid_configuration,
                               "the driver at " + cluster->effective.get(keys::master) +
                                   " was not started by you on this machine: end it where it was started"),
                    flags.json);
  const auto& session = *cluster->record;
  // By signal, since a driver that hangs does not listen to messages.
  kill(session.pid, SIGTERM);
  bool forced = false;
  if (!wait_for_end(session, 3 * ending_time(cluster->effective) + std::chrono::milliseconds{1500})) {
    forced = true;
    kill(session.pid, SIGKILL);
    wait_for_end(session, std::chrono::seconds{5});
  }
  run_directory::sweep(std::filesystem::path{session.directory}.parent_path().string());
  sweep_local_directories(cluster->effective);
  if (flags.json)
    print_json({{"name", session.name}, {"session", session.session_id}, {"killed", forced}});
  else
    std::cout << "cluster " << session.name
              << (forced ? " was killed: its driver did not end when asked\n" : " is down\n");
  return 0;
}

} // namespace troupe::commands
