// The command line of `troupe`.

#include <functional>
#include <iostream>

#include <CLI/CLI.hpp>

#include <troupe/launcher/commands/commands.hpp>
#include <troupe/launcher/executor_process.hpp>
#include <troupe/launcher/standard_streams.hpp>
#include <troupe/runtime/execution/signals.hpp>

namespace {

using namespace troupe::commands;

constexpr const char* overview =
    "Runs jobs whose stages need different machines.\n"
    "\n"
    "First steps:\n"
    "  troupe run JOB.yaml                             a job of commands, in a process below this one\n"
    "  troupe run JOB.yaml --master='local-cluster[2,2,2g]'\n"
    "                                                  the same on two hosts' worth of processes\n"
    "  troupe cluster up --config-file=CLUSTER.yaml    a cluster that takes jobs from many clients\n";

constexpr const char* exit_codes =
    "Exit codes: 0 ok, 1 job failed, 2 usage or configuration, 3 infeasible, 4 cluster unreachable, 130 interrupted.";

constexpr const char* how_to_run =
    "A job file describes stages of commands. Save this as hello.yaml:\n"
    "\n"
    "  name: hello\n"
    "  stages:\n"
    "    greet:\n"
    "      tasks: 3\n"
    "      run: [sh, -c, 'echo hello from task {partition} >\"$1\"', greet, \"{output}\"]\n"
    "    gather:\n"
    "      after: {greet: all}\n"
    "      run: [sort, -o, \"{output}\", \"{inputs}\"]\n"
    "      outputs: [all.txt]\n"
    "\n"
    "  troupe run hello.yaml && cat out/gather/all.txt\n"
    "\n"
    "It runs below this process, on `--master='local-cluster[2,2,2g]'` in executor processes, on a running cluster\n"
    "(troupe cluster up) without any flag. `troupe run --help` lists the options.\n";

/// Description and examples of a subcommand.
CLI::App* command(CLI::App& parent, const std::string& name, const std::string& what, const std::string& examples) {
  auto* out = parent.add_subcommand(name, what);
  out->footer("Examples:\n" + examples);
  return out;
}

void add_conf(CLI::App& app, setting_flags& flags) {
  app.add_option("--conf", flags.conf, "A setting, stronger than files and environment; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false); // what follows the value is something else, such as the job file
}

void add_config_file(CLI::App& app, setting_flags& flags, const std::string& what, bool required) {
  app.add_option("--config-file", flags.config_file, what)->type_name("FILE")->required(required);
}

void add_json(CLI::App& app, bool& json) {
  app.add_flag("--json", json, "Print JSON; where the command fails, {\"error\": {...}}, unless its usage is wrong");
}

void add_cluster(CLI::App& app, cluster_flags& flags) {
  app.add_option("--cluster", flags.which, "A running cluster of yours: its name, address or session")
      ->type_name("NAME");
  app.add_option("--master", flags.settings.master, "Address of a driver")->type_name("HOST:PORT");
  add_config_file(app, flags.settings, "Settings from a YAML file", false);
  add_conf(app, flags.settings);
  add_json(app, flags.json);
}

int finish(int code) {
  const auto lost = troupe::loss_of_output();
  if (lost.empty()) return code;
  std::cerr << "troupe: " << lost << '\n';
  return code == 0 ? 1 : code;
}

} // namespace

int main(int argc, char** argv) {
  troupe::open_standard_streams();
  troupe::hear_of_children();
  troupe::enter_executor(false);

  CLI::App app{overview, "troupe"};
  app.footer(exit_codes);
  app.require_subcommand(0, 1);
  std::function<int()> chosen;

  bool json = false;
  auto* version_app = command(app, "version", "Print the version", "  troupe version --json");
  add_json(*version_app, json);
  version_app->callback([&] { chosen = [&] { return version(json); }; });

  setting_flags settings;
  auto* config_app = app.add_subcommand("config", "Look at the configuration");
  config_app->require_subcommand(1);
  auto* show_app = command(*config_app, "show", "Print every effective setting with its origin",
                           "  troupe config show --config-file=configs/driver.yaml\n"
                           "  troupe config show --conf troupe.executor.cores=4 --json");
  add_config_file(*show_app, settings, "A node or cluster file, or one with settings alone", false);
  add_conf(*show_app, settings);
  add_json(*show_app, json);
  show_app->callback([&] { chosen = [&] { return config_show(settings, json); }; });

  std::string file;
  bool overwrite = false;
  auto* profile_app = app.add_subcommand("profile", "Look at resource profiles");
  profile_app->require_subcommand(1);
  auto* check_app = command(*profile_app, "check",
                            "Say how many slots executors of the profiles in a file have, what limits them, what idles",
                            "  troupe profile check configs/gpu.yaml");
  check_app->add_option("file", file, "A job or cluster file, or one with profiles alone")->required();
  add_config_file(*check_app, settings, "Settings from a YAML file", false);
  add_conf(*check_app, settings);
  add_json(*check_app, json);
  check_app->callback([&] { chosen = [&] { return profile_check(settings, file, json); }; });

  cluster_flags cluster;
  auto* run_app = command(app, "run", "Run a job file",
                          "  troupe run configs/reads.yaml\n"
                          "  troupe run configs/reads.yaml --master='local-cluster[2,2,2g]'\n"
                          "  troupe run configs/gpu.yaml --cluster local-cluster");
  run_app->add_option("job", file, "The job file (YAML)");
  run_app
      ->add_option("--master", cluster.settings.master,
                   "local[N], local[*], local-cluster[HOSTS,CORES,MEMORY], or HOST:PORT of a driver; without it, "
                   "your running cluster if there is one, else local[*]")
      ->type_name("WHERE");
  run_app->add_option("--cluster", cluster.which, "A running cluster of yours: its name, address or session")
      ->type_name("NAME");
  add_config_file(*run_app, cluster.settings, "Settings from a YAML file", false);
  add_conf(*run_app, cluster.settings);
  add_json(*run_app, cluster.json);
  run_app->add_flag("--overwrite", overwrite,
                    "Replace files at its outputs also where no job has made them, or another one");
  run_app->callback([&] {
    chosen = [&] {
      if (!file.empty()) return run(cluster, file, overwrite);
      std::cerr << how_to_run;
      return 2;
    };
  });

  auto* node_app = command(app, "node", "Be a driver, or an executor of one, as a file says",
                           "  troupe node --config-file=configs/driver.yaml\n"
                           "  troupe node --config-file=configs/executor.yaml --conf troupe.executor.cores=8");
  add_config_file(*node_app, settings, "The node file (YAML)", true);
  add_conf(*node_app, settings);
  node_app->add_flag("--json", json, "Print JSON when it is ready");
  node_app->callback([&] { chosen = [&] { return node(settings, json); }; });

  auto* cluster_app = app.add_subcommand("cluster", "Start, look at and end a cluster of processes on this machine");
  cluster_app->require_subcommand(1);
  bool foreground = false;
  auto* up_app = command(*cluster_app, "up", "Start a cluster from a file, in the background",
                         "  troupe cluster up --config-file=configs/cluster.yaml\n"
                         "  troupe cluster up --config-file=configs/cluster.yaml --foreground");
  add_config_file(*up_app, settings, "The cluster file (YAML)", true);
  add_conf(*up_app, settings);
  up_app->add_flag("--foreground", foreground, "Stay in the foreground until SIGINT or SIGTERM");
  bool detach = false;
  up_app->add_flag("--detach", detach, "Go to the background (what it does anyway)")->excludes("--foreground");
  add_json(*up_app, json);
  up_app->callback([&] { chosen = [&] { return cluster_up(settings, foreground, json); }; });
  const auto add_name = [&](CLI::App& to) {
    // One option for both ways to say it, so that they cannot differ.
    to.add_option("name,--cluster", cluster.which,
                  "Name, address or session of the cluster; may be left out for the only one");
    to.add_option("--master,--address", cluster.settings.master, "Address of a driver")->type_name("HOST:PORT");
    add_config_file(to, cluster.settings, "Settings from a YAML file", false);
    add_conf(to, cluster.settings);
    add_json(to, cluster.json);
  };
  auto* status_app = command(*cluster_app, "status", "Print the executors of a cluster",
                             "  troupe cluster status\n  troupe cluster status local-cluster --json");
  add_name(*status_app);
  status_app->callback([&] { chosen = [&] { return cluster_status(cluster); }; });
  auto* down_app = command(*cluster_app, "down", "End a cluster: its jobs are cancelled, its executors stopped",
                           "  troupe cluster down");
  add_name(*down_app);
  down_app->callback([&] { chosen = [&] { return cluster_down(cluster); }; });

  auto* jobs_app = command(app, "jobs", "Print the jobs of a cluster", "  troupe jobs\n  troupe jobs --json");
  add_cluster(*jobs_app, cluster);
  jobs_app->callback([&] { chosen = [&] { return jobs(cluster); }; });

  std::string job_number;
  std::string stage_number;
  auto* explain_app = command(
      app, "explain", "Say why a job waits (what fits, who is busy, what would help), and what has failed in it",
      "  troupe explain 3\n"
      "  troupe explain 3 1\n"
      "  troupe explain 3 --json");
  explain_app->add_option("job", job_number, "Its number, as `troupe jobs` prints it")->required();
  explain_app->add_option("stage", stage_number, "Only this stage of it, by its number there: the first one has 0");
  add_cluster(*explain_app, cluster);
  explain_app->callback([&] { chosen = [&] { return explain(cluster, job_number, stage_number); }; });

  cancel_flags ends;
  auto* cancel_app = command(app, "cancel", "End a job, one stage of it (the job then fails), or the jobs of a group",
                             "  troupe cancel 3\n"
                             "  troupe cancel 3 --stage 1\n"
                             "  troupe cancel --group nightly");
  auto* cancel_what = cancel_app->add_option_group("what");
  auto* cancel_number = cancel_what->add_option("job", ends.job, "Its number, as `troupe jobs` prints it");
  cancel_what->add_option("--group", ends.group, "Every unfinished job of this group")->type_name("NAME");
  cancel_what->require_option(1);
  cancel_app->add_option("--stage", ends.stage, "Only this stage of the job, by its number there: the first one has 0")
      ->type_name("N")
      ->needs(cancel_number);
  add_cluster(*cancel_app, cluster);
  cancel_app->callback([&] { chosen = [&] { return cancel(cluster, ends); }; });

  log_flags what;
  auto* logs_app = command(app, "logs", "Print what the attempts of a job wrote, or the log of an executor",
                           "  troupe logs 3\n"
                           "  troupe logs 3 --stderr\n"
                           "  troupe logs --executor 1");
  logs_app->add_option("job", what.job, "The job's number, as `troupe jobs` prints it");
  logs_app->add_option("--executor", what.executor, "An executor's number, as `troupe cluster status` prints it")
      ->type_name("N");
  logs_app->add_flag("--stderr", what.errors, "Only standard error");
  add_cluster(*logs_app, cluster);
  logs_app->callback([&] { chosen = [&] { return logs(cluster, what); }; });

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return finish(app.exit(e, std::cout, std::cerr) == 0 ? 0 : 2);
  }
  if (chosen) return finish(chosen());
  std::cout << app.help();
  return finish(2);
}
