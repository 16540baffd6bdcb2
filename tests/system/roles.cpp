#include <troupe/runtime/api/resource_profile_builder.hpp>
#include <troupe/tests/system/roles.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>

#include <troupe/launcher/executor_process.hpp>
#include <troupe/runtime/api/run.hpp>
#include <troupe/runtime/config/job_file.hpp>
#include <troupe/tests/system/rendezvous.hpp>
#include <troupe/tests/system/services_role.hpp>
#include <troupe/tests/system/stages.hpp>

namespace troupe::system_tests {
namespace {

/// What executors that are started by hand are good for.
resource_profile executor_by_hand() {
  return resource_profile_builder{}
      .require(executor_resource_requests{}.cores(2).memory("64m"))
      .require(task_resource_requests{}.cpus(1))
      .build();
}

/// A driver with executors of its own and a job whose tasks wait at their points. ARGUMENTS: master, parent of the run
/// directory, directory of the rendezvous.
int play_driver(const std::vector<std::string>& arguments) {
  settings_builder builder{"/"};
  for (const auto& assignment : {"troupe.master=" + arguments.at(0), "troupe.run-directory=" + arguments.at(1)})
    if (auto taken = builder.add_argument(assignment); !taken) throw std::runtime_error(taken.error().message);
  application::options opts;
  opts.effective = *builder.build();
  auto app = application::start(std::move(opts));
  if (!app) throw std::runtime_error(app.error().message);
  session session{(*app)->jobs(), (*app)->make_session_options()};
  run_three_stages(session, arguments.at(2));
  return 0;
}

/// Takes those that are settings out of the arguments.
std::vector<std::string> take_settings(std::vector<std::string>& arguments) {
  const auto first = std::stable_partition(arguments.begin(), arguments.end(),
                                           [](const std::string& a) { return !a.starts_with("troupe."); });
  std::vector<std::string> taken(first, arguments.end());
  arguments.erase(first, arguments.end());
  return taken;
}

/// A driver on one of several hosts, whose executors are started by hand. ARGUMENTS: its address, parent of the run
/// directory, file for what executors need to know, directory of the rendezvous, number of executors to wait for; and,
/// anywhere, settings.
std::unique_ptr<application> start_driver_of_hosts(std::vector<std::string>& arguments) {
  settings_builder builder{"/"};
  const auto given = take_settings(arguments);
  for (const auto& assignment :
       {"troupe.master=" + arguments.at(0) + ":1", "troupe.driver.bind-address=" + arguments.at(0),
        "troupe.run-directory=" + arguments.at(1), std::string{"troupe.security.insecure=true"},
        std::string{"troupe.transfer.same-host=never"}})
    if (auto taken = builder.add_default(assignment); !taken) throw std::runtime_error(taken.error().message);
  for (const auto& assignment : given)
    if (auto taken = builder.add_argument(assignment); !taken) throw std::runtime_error(taken.error().message);
  const auto effective = builder.build();
  if (!effective) throw std::runtime_error(effective.error().message);
  application::options opts;
  opts.effective = *effective;
  opts.by_hand = effective->get(keys::master).find('[') == std::string::npos;
  auto started = application::start(std::move(opts));
  if (!started) throw std::runtime_error(started.error().message);
  auto& app = **started;
  std::ofstream{arguments.at(2)} << to_string(*app.address()) << ' ' << app.cluster_id() << ' ' << app.secret_file()
                                 << ' ' << app.directory() << '\n';
  const auto wanted = std::stoul(arguments.at(4));
  if (!testing::wait_until([&] {
        const auto status = app.jobs()->status();
        return status && status->executors.size() == wanted;
      }))
    throw std::runtime_error("the executors did not come");
  return std::move(*started);
}

/// It runs a job whose tasks wait at their points, or that of a job file, where one more argument names it.
int play_driver_of_hosts(std::vector<std::string> arguments) {
  const auto app = start_driver_of_hosts(arguments);
  if (arguments.size() > 5) {
    auto job = load_job(arguments[5], {2});
    if (!job) throw std::runtime_error(job.error().message);
    const auto end = app->jobs()->run(std::make_shared<const job_spec>(std::move(*job)));
    std::cout << (end.failure ? end.failure.message : "the job has succeeded") << std::endl;
    return end.failure ? 1 : 0;
  }
  session session{app->jobs(), app->make_session_options()};
  const bool right = run_three_stages(session, arguments.at(3), executor_by_hand()) == expected_of_three_stages();
  std::cout << (right ? "as expected" : "wrong") << std::endl;
  return right ? 0 : 1;
}

/// Takes MEGABYTES through a shuffle, keeps them for a second job, or takes them to all executors as a broadcast.
/// @returns whether all of it came
bool move_data(session& session, const std::string& what, std::int64_t megabytes) {
  constexpr std::int64_t size = 10'000;
  const auto count = megabytes * 1'000'000 / size;
  if (what == "shuffle") {
    const auto bytes = session.range(0, count, 8)
                           .map([](std::int64_t n) {
                             return std::pair{n, std::string(size, static_cast<char>(n))};
                           })
                           .with_resources(executor_by_hand())
                           .group_by_key(8)
                           .map([](const std::pair<std::int64_t, std::vector<std::string>>& group) {
                             return static_cast<std::int64_t>(group.second.at(0).size());
                           })
                           .with_resources(executor_by_hand())
                           .reduce([](std::int64_t a, std::int64_t b) { return a + b; });
    return bytes == count * size;
  }
  if (what == "cache") {
    const auto kept = session.range(0, count, 64)
                          .map([](std::int64_t n) { return std::string(size, static_cast<char>(n)); })
                          .with_resources(executor_by_hand())
                          .persist(storage_level::memory_and_disk);
    const auto bytes = [&] {
      return kept.map([](const std::string& text) { return static_cast<std::int64_t>(text.size()); })
          .reduce([](std::int64_t a, std::int64_t b) { return a + b; });
    };
    return bytes() == count * size && bytes() == count * size;
  }
  const auto value = session.broadcast(std::string(static_cast<std::size_t>(megabytes) * 1'000'000, 'b'));
  const auto sizes = session.range(0, 64, 64)
                         .map(with(value), [](const auto& text, std::int64_t) { return text->size(); })
                         .with_resources(executor_by_hand())
                         .collect();
  return std::all_of(sizes.begin(), sizes.end(), [&](std::size_t s) { return s == value->size(); });
}

/// It moves data between "begin" and "end". Two more arguments: shuffle, cache or broadcast, and megabytes.
int play_driver_of_data(std::vector<std::string> arguments) {
  const auto app = start_driver_of_hosts(arguments);
  session session{app->jobs(), app->make_session_options()};
  arrive(arguments.at(3), "begin");
  const bool right = move_data(session, arguments.at(5), std::stoll(arguments.at(6)));
  arrive(arguments.at(3), "end");
  std::cout << (right ? "as expected" : "wrong") << std::endl;
  return right ? 0 : 1;
}

/// An executor as a person would start it by hand. ARGUMENTS: the driver's host:port, cluster id, file of the secret,
/// run directory, own name, own address, then settings.
int play_executor(const std::vector<std::string>& arguments) {
  settings_builder builder{"/"};
  for (std::size_t i = 6; i < arguments.size(); ++i)
    if (auto taken = builder.add_argument(arguments[i]); !taken) throw std::runtime_error(taken.error().message);
  if (auto taken = builder.add_argument("troupe.executor.bind-address=" + arguments.at(5)); !taken)
    throw std::runtime_error(taken.error().message);
  const auto effective = builder.build();
  if (!effective) throw std::runtime_error(effective.error().message);
  executor_start start;
  const auto driver = parse_endpoint(arguments.at(0));
  if (!driver) throw std::runtime_error(driver.error().message);
  start.driver = *driver;
  start.cluster_id = arguments.at(1);
  start.secret_file = arguments.at(2);
  start.run_directory = arguments.at(3);
  start.info.host = arguments.at(4);
  start.info.profile = executor_by_hand();
  start.info.capacity.cores = 2;
  start.info.capacity.memory = 64 << 20;
  std::string why;
  const int code = run_executor(start, *effective, {arguments.at(4), false, {}}, why);
  if (!why.empty()) std::cerr << "troupe: executor: " << why << std::endl;
  return code;
}

/// A program that is a job. ARGUMENTS: those of troupe::run, then the number to count to.
int play_client(int argc, char** argv) {
  return run(argc, argv, [](session& session) {
    const auto end = std::stoll(session.arguments().at(0));
    std::cout << "counted " << session.range(0, end, 6).map([](std::int64_t n) { return n + 1; }).count() << std::endl;
  });
}

/// A program whose job waits at the points of a rendezvous. ARGUMENTS: its directory, then those of troupe::run.
int play_waiting_client(int argc, char** argv) {
  const std::string directory = argv[1];
  argv[1] = argv[0];
  return run(argc - 1, argv + 1, [&](session& session) { run_three_stages(session, directory); });
}

/// A program that goes on computing whatever becomes of its job. ARGUMENTS: those of troupe::run.
int play_stubborn_client(int argc, char** argv) {
  return run(argc, argv, [](session& session) {
    std::cout << "counted " << session.range(0, 100, 4).count() << std::endl;
    testing::wait_until([] { return false; }, 2 * testing::patience()); // longer than the test waits
  });
}

/// A program whose job has failed while a task of it still runs, until there is a file `go` in its directory.
/// ARGUMENTS: the directory, then those of troupe::run.
int play_failing_client(int argc, char** argv) {
  const std::string directory = argv[1];
  argv[1] = argv[0];
  return run(argc - 1, argv + 1, [&](session& session) {
    session.range(0, 2, 2).foreach (with(directory), [](const std::string& folder, std::int64_t number) {
      if (number == 1) {
        testing::wait_until([&] { return std::filesystem::exists(folder + "/begun"); });
        throw std::runtime_error("the cause");
      }
      std::ofstream{folder + "/begun"} << "";
      testing::wait_until([&] { return std::filesystem::exists(folder + "/go"); });
    });
  });
}

} // namespace

std::optional<int> play_role(int argc, char** argv) {
  constexpr std::string_view prefix = "--role=";
  if (argc < 2 || !std::string_view{argv[1]}.starts_with(prefix)) return std::nullopt;
  const std::string role = argv[1] + prefix.size();
  const std::vector<std::string> arguments(argv + 2, argv + argc);
  try {
    if (role == "driver") return play_driver(arguments);
    if (role == "driver-of-hosts") return play_driver_of_hosts(arguments);
    if (role == "driver-of-data") return play_driver_of_data(arguments);
    if (role == "executor") return play_executor(arguments);
    if (role == "services") return play_services(arguments);
    argv[1] = argv[0];
    if (role == "client") return play_client(argc - 1, argv + 1);
    if (role == "failing-client") return play_failing_client(argc - 1, argv + 1);
    if (role == "stubborn-client") return play_stubborn_client(argc - 1, argv + 1);
    if (role == "waiting-client") return play_waiting_client(argc - 1, argv + 1);
    std::cerr << "there is no role " << role << std::endl;
  } catch (const std::exception& e) {
    std::cerr << role << ": " << e.what() << std::endl;
  }
  return 99;
}

namespace {

std::vector<std::string> words_of(const std::string& role, const std::vector<std::string>& arguments,
                                  std::vector<std::string> words) {
  words.push_back(std::filesystem::read_symlink("/proc/self/exe").string());
  words.push_back("--role=" + role);
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

} // namespace

role_process::role_process(const std::string& role, const std::vector<std::string>& arguments,
                           const std::vector<std::string>& prefix)
  : program_process(words_of(role, arguments, prefix)) {}

} // namespace troupe::system_tests
