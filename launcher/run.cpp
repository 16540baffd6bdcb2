// The front door of a program that is a job.

#include <troupe/runtime/api/run.hpp>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include <unistd.h>

#include <troupe/launcher/application.hpp>
#include <troupe/launcher/destination.hpp>
#include <troupe/launcher/ending_time.hpp>
#include <troupe/launcher/executor_entry.hpp>
#include <troupe/launcher/executor_process.hpp>
#include <troupe/launcher/interruption.hpp>
#include <troupe/launcher/node.hpp>
#include <troupe/launcher/program_options.hpp>
#include <troupe/launcher/progress_display.hpp>
#include <troupe/launcher/session_guard.hpp>
#include <troupe/launcher/standard_streams.hpp>
#include <troupe/launcher/text_table.hpp>
#include <troupe/runtime/api/job_error.hpp>
#include <troupe/runtime/api/session.hpp>
#include <troupe/runtime/config/keys.hpp>
#include <troupe/runtime/config/master.hpp>
#include <troupe/runtime/execution/failure_text.hpp>
#include <troupe/runtime/execution/function_table.hpp>
#include <troupe/runtime/execution/signals.hpp>

namespace troupe {
namespace {

int complain(const error& why) {
  std::cerr << "troupe: " << why.message << '\n';
  return exit_code_of(why.code);
}

/// The attempts of a job that have failed, where the one that its failure names was not the only one: nobody can ask
/// for them when the cluster ends with this program.
std::string failed_attempts(cluster_jobs& jobs, job_id job, const std::string& directory) {
  if (!job) return {};
  const auto why = jobs.explain(job);
  if (!why) return {};
  auto text = why->failures.size() > 1 ? failures_to_text(*why) : std::string{};
  std::set<executor_id> lost;
  if (const auto now = jobs.status())
    for (const auto& failure : why->failures)
      if ((failure.is_loss || failure.why.find("executor was lost") != std::string::npos) &&
          std::none_of(now->executors.begin(), now->executors.end(),
                       [&](const auto& other) { return other.info.executor == failure.executor; }))
        lost.insert(failure.executor);
  // The reason of a crash is often what the program has printed last.
  constexpr std::size_t most_told = 3;
  for (std::size_t told = 0; const auto executor : lost) {
    const auto printed = excerpt_of_file(printed_by(directory, executor));
    if (printed.empty()) continue;
    if (told++ == most_told) break;
    text += "executor " + std::to_string(executor.value) + " has printed:\n" + printed +
            (printed.ends_with('\n') ? "" : "\n");
  }
  return text;
}

} // namespace

int run(int argc, char** argv, const std::function<void(session&)>& body, const run_options& options) {
  open_standard_streams();
  enter_executor(true);
  if (auto table = function_table::instance().check(); !table) return complain(table.error());
  auto parsed = parse_program_options(argc, argv, options.defaults);
  if (!parsed) return complain(parsed.error());
  if (parsed->help) {
    std::cout << *parsed->help;
    return 0;
  }
  const auto& s = parsed->effective;
  if (parsed->node) {
    const node_run how{.config_file = parsed->node->file, .native = true};
    // The rest of main is for who has run the job; and not for an executor's keeper, which it forks.
    int code = 1;
    try {
      code = run_node(parsed->node->what, s, how);
    } catch (...) {
      std::cerr << "troupe: " << text_of_exception() << '\n';
    }
    end_process(code);
  }
  hear_of_children();
  session_guard guard;
  interruption stop{ending_time(s)};
  progress_display display{progress_mode_of(s.get(keys::progress), is_screen(STDERR_FILENO)), STDERR_FILENO};
  application::options opts;
  opts.effective = s;
  opts.on_progress = [&display](const job_progress& progress) { display.update(progress); };
  opts.on_end = [&display](const job_end& end) { display.end(end); };
  opts.before_making = [&guard](const std::string& directory) { guard.watch(directory); };
  auto app = application::start(std::move(opts));
  auto introduction = "troupe: " + printable(to_string(destination_of(s, parsed->cluster, parsed->asked)));
  if (const auto master = parse_master(s.get(keys::master));
      app && master && std::holds_alternative<local_cluster_master>(*master))
    introduction += "; tasks print to " + printable((*app)->directory()) + "/executor-*.err, which goes at the end";
  introduction += '\n';
  if (!app) {
    if (goes_to_driver(s)) std::cerr << introduction; // why it went there is a part of what is wrong
    return complain(app.error());
  }
  for (const auto& warning : (*app)->warnings()) std::cerr << "troupe: warning: " << printable(warning, true) << '\n';
  const auto jobs = (*app)->jobs();
  display.introduce(introduction);
  stop.on_signal((*app)->make_interruption());

  auto session_opts = (*app)->make_session_options();
  session_opts.arguments = parsed->arguments;
  int code = 0;
  std::string failure;
  std::string attempts;
  bool is_told = true; // an interruption explains all but a job that had failed before it
  try {
    session own{jobs, std::move(session_opts)};
    body(own);
  } catch (const job_error& e) {
    failure = e.what();
    code = exit_code_of(e.code());
    is_told = !stop.requested() || e.progress().state == job_state::failed;
    if (!goes_to_driver(s) && is_told) attempts = failed_attempts(*jobs, e.progress().job, (*app)->directory());
  } catch (...) {
    failure = text_of_exception();
    is_told = !stop.requested();
    code = 1;
  }
  if (auto lost = loss_of_output(); !lost.empty() && code == 0) {
    failure = std::move(lost);
    code = 1;
  }
  app->reset();
  display.finish();
  if (code != 0 && is_told) std::cerr << "troupe: " << printable(failure, true) << '\n' << printable(attempts, true);
  if (stop.requested()) {
    std::cerr << "troupe: interrupted\n";
    return 130;
  }
  return code;
}

} // namespace troupe
