#include <troupe/launcher/commands/cluster_choice.hpp>

#include <chrono>
#include <iostream>

#include <poll.h>

#include <troupe/launcher/commands/json_output.hpp>
#include <troupe/launcher/run_directory.hpp>
#include <troupe/launcher/text_table.hpp>

namespace troupe::commands {

settings_source setting_flags::source() const {
  settings_source out;
  if (!config_file.empty()) out.files.push_back(config_file);
  out.assignments = conf;
  if (!master.empty()) out.assignments.push_back("troupe.master=" + master);
  return out;
}

int complain(const error& why, bool json) {
  std::cerr << "troupe: " << printable(why.message, true) << '\n'; // first: nobody may read the other any more
  if (json) print_json({{"error", json_of(why)}});
  return exit_code_of(why.code);
}

result<chosen_cluster> choose_cluster(const cluster_flags& flags) {
  auto source = flags.settings.source();
  auto loaded = load_settings(source);
  if (!loaded) return loaded.error();
  const auto& s = loaded->effective;
  const auto base = run_directory::base_of(s.get(keys::run_directory));
  run_directory::sweep(base);
  const auto master = parse_master(s.get(keys::master));
  if (!master) return master.error();
  const auto* where = std::get_if<endpoint>(&*master);
  const auto sessions = running_sessions(base);
  if (flags.which.empty() && where) {
    chosen_cluster out{s, {}};
    for (const auto& session : sessions)
      if (listens_at(session, to_string(*where))) out.record = session;
    return out;
  }
  auto record = choose_session(sessions, flags.which);
  if (!record) return record.error();
  add_cluster(source, s, *record);
  loaded = load_settings(source);
  if (!loaded) return loaded.error();
  return chosen_cluster{std::move(loaded->effective), std::move(*record)};
}

result<chosen_cluster> choose_cluster_of_job(const cluster_flags& flags) {
  auto chosen = choose_cluster(flags);
  if (!chosen && chosen.error().code == ec::unreachable)
    return make_error(ec::unreachable, chosen.error().message +
                                           "\nOf jobs of a cluster that has ended, what failed commands have "
                                           "printed, and why (why.txt), is in .troupe/logs beside the folders of "
                                           "their outputs.");
  return chosen;
}

result<std::unique_ptr<application>> connect_to(const chosen_cluster& cluster, const std::string& name) {
  application::options opts;
  opts.effective = cluster.effective;
  opts.name = name;
  return application::start(std::move(opts));
}

bool wait_for_end(const session_record& session, duration limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (is_alive(session)) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    poll(nullptr, 0, 5);
  }
  return true;
}

} // namespace troupe::commands
