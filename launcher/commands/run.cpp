#include <exception>
#include <filesystem>
#include <iostream>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include <unistd.h>

#include <troupe/launcher/commands/cluster_choice.hpp>
#include <troupe/launcher/commands/json_output.hpp>
#include <troupe/launcher/destination.hpp>
#include <troupe/launcher/earlier_outputs.hpp>
#include <troupe/launcher/ending_time.hpp>
#include <troupe/launcher/interruption.hpp>
#include <troupe/launcher/kept_session.hpp>
#include <troupe/launcher/local_directories.hpp>
#include <troupe/launcher/output_claim.hpp>
#include <troupe/launcher/output_record.hpp>
#include <troupe/launcher/progress_display.hpp>
#include <troupe/launcher/progress_text.hpp>
#include <troupe/launcher/replaced_outputs.hpp>
#include <troupe/launcher/run_directory.hpp>
#include <troupe/launcher/security.hpp>
#include <troupe/launcher/session_guard.hpp>
#include <troupe/launcher/text_table.hpp>
#include <troupe/runtime/config/job_file.hpp>
#include <troupe/runtime/config/master.hpp>
#include <troupe/runtime/execution/failure_logs.hpp>

namespace troupe::commands {
namespace {

/// A job goes where it is sent; without a word, to the one cluster that the user has running, else it runs here.
result<chosen_cluster> choose_place(const cluster_flags& flags) {
  if (!flags.which.empty()) return choose_cluster(flags);
  auto loaded = load_settings(flags.settings.source());
  if (!loaded) return loaded.error();
  for (const auto& document : loaded->documents)
    if (auto good = check_root(document, {}); !good) return good.error();
  const auto& s = loaded->effective;
  const bool free = s.origin_of(keys::master.name).kind == origin_kind::default_value;
  if (free && !running_sessions(run_directory::base_of(s.get(keys::run_directory))).empty())
    return choose_cluster(flags);
  return chosen_cluster{s, {}};
}

/// Whether the executors are, for all that is known, on this machine.
bool runs_here(const settings& s) {
  const auto master = parse_master(s.get(keys::master));
  const auto* const where = master ? std::get_if<endpoint>(&*master) : nullptr;
  return where == nullptr || is_loopback(where->host);
}

void print_end(const job_end& end, const destination& where) {
  auto out = json_of(end.progress);
  out["master"] = where.master;
  out["master-because"] = where.because;
  if (end.failure) out["error"] = json_of(end.failure);
  print_json(out);
}

/// Records what the job has made, and names files beside it that it has not.
/// @param interrupted nobody may know any more what it has made; what it has replaced is no earlier run's in any case
void say_what_is_whose(output_record& record, const std::string& session, const job_end& end,
                       const result<std::vector<task_placement>>& done, bool interrupted) {
  const auto say = [](const std::string& sentence) { std::cerr << "troupe: " << printable(sentence, true) << '\n'; };
  try {
    if (!done && !interrupted) return say("what the job has made is not recorded beside it: " + done.error().message);
    const auto known = done ? *done : std::vector<task_placement>{};
    for (const auto& sentence : record.finish(session, end, known)) say(sentence);
  } catch (const std::exception& e) { // such as no memory: the job is as it is
    say(std::string{"what the job has made is not recorded beside it: "} + e.what());
  }
}

/// Keeps why the job has failed where what its commands have printed is kept, for when the cluster is no more.
void keep_reasons(const job_spec& job, const job_explanation& why, const std::string& session,
                  const log_limits& limits) {
  failure_logs logs{session, limits};
  std::set<std::string> told;
  for (const auto& stage : job.stages) {
    const auto* const program = std::get_if<command_program>(&stage.program);
    if (program == nullptr || program->output_directory.empty()) continue;
    if (told.insert(std::filesystem::path{program->output_directory}.parent_path().string()).second)
      static_cast<void>(logs.keep_report(program->output_directory, why.job, to_text(why)));
  }
}

} // namespace

int run(const cluster_flags& flags, const std::string& job_file, bool overwrite) {
  const auto place = choose_place(flags);
  if (!place) return complain(place.error(), flags.json);
  const auto& s = place->effective;
  auto job = load_job(job_file, job_defaults_of(s));
  if (!job) return complain(job.error(), flags.json);
  if (const auto master = parse_master(s.get(keys::master)); master && std::holds_alternative<local_master>(*master)) {
    // The commands are this process's own.
    keeper_options keeping;
    keeping.end_grace = ending_time(s) + std::chrono::milliseconds{450};
    keeping.clear_up = [&s](bool) {
      run_directory::sweep(run_directory::base_of(s.get(keys::run_directory)));
      sweep_local_directories(s);
    };
    if (const auto code = run_below_keeper(std::move(keeping))) return *code;
  }
  const auto spec = std::make_shared<const job_spec>(std::move(*job));
  session_guard guard;
  const auto base = run_directory::base_of(s.get(keys::run_directory));
  guard.watch(base + "/outputs"); // it sweeps what lies beside it, and so the claim
  const auto claim = output_claim::take(*spec, base, runs_here(s) ? "" : to_string(*parse_master(s.get(keys::master))));
  if (!claim) return complain(claim.error(), flags.json);
  std::error_code unknown;
  const auto real_file = std::filesystem::weakly_canonical(job_file, unknown).string();
  if (runs_here(s)) { // elsewhere its outputs may lie on other file systems
    if (!overwrite)
      if (auto good = check_replaced(*spec, real_file); !good) return complain(good.error(), flags.json);
    for (const auto& warning : what_earlier_runs_have_left(*spec))
      std::cerr << "troupe: warning: " << printable(warning, true) << '\n';
  }
  output_record record{spec, real_file}; // while Ctrl-C still ends this at once
  interruption stop{ending_time(s)};
  progress_display display{progress_mode_of(s.get(keys::progress), is_screen(STDERR_FILENO)), STDERR_FILENO};
  application::options opts;
  opts.effective = s;
  opts.on_progress = [&display](const job_progress& progress) { display.update(progress); };
  opts.on_end = [&display](const job_end& end) { display.end(end); };
  opts.before_making = [&guard](const std::string& directory) { guard.watch(directory); };
  auto app = application::start(std::move(opts));
  const auto where = destination_of(s, place->record, flags.which);
  const auto introduction = "troupe: " + printable(to_string(where)) + "\n";
  if (!app) {
    if (goes_to_driver(s)) std::cerr << introduction; // why it went there is a part of what is wrong
    return complain(app.error(), flags.json);
  }
  for (const auto& warning : (*app)->warnings()) std::cerr << "troupe: warning: " << printable(warning, true) << '\n';
  const auto jobs = (*app)->jobs();
  display.introduce(introduction);
  stop.on_signal((*app)->make_interruption());

  const auto end = jobs->run(spec);
  if (flags.json && end.job) print_end(end, where);
  const auto session = (*app)->session_id();
  const auto done = end.job ? jobs->placements(end.job) : result<std::vector<task_placement>>{end.failure};
  if (done && end.progress.state == job_state::failed && runs_here(s))
    if (const auto why = jobs->explain(end.job))
      keep_reasons(*spec, *why, session,
                   {s.get(keys::logs_keep), static_cast<std::uint64_t>(s.get(keys::logs_max_size))});
  app->reset();
  display.finish();
  for (const auto& warning : left_files(end.progress))
    std::cerr << "troupe: warning: " << printable(warning, true) << '\n';
  if (stop.requested()) std::cerr << "troupe: interrupted\n";
  if (end.job) say_what_is_whose(record, session, end, done, stop.requested());
  if (stop.requested()) {
    if (end.progress.state == job_state::failed) static_cast<void>(complain(end.failure, false));
    if (flags.json && !end.job) print_json({{"error", json_of(make_error(ec::cancelled, "interrupted"))}});
    return 130;
  }
  return end.failure ? complain(end.failure, flags.json && !end.job) : 0;
}

} // namespace troupe::commands
