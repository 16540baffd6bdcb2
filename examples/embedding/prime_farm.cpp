// Counts primes on executors of other processes:
//   prime_farm serve SECRET-FILE WORKERS LIMIT    has the driver, prints where it listens, counts when all are there
//   prime_farm work HOST:PORT SECRET-FILE         has one executor, until the driver ends
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <iostream>
#include <string>
#include <vector>

#include <caf/io/middleman.hpp>
#include <caf/scoped_actor.hpp>

#include <troupe/actors/joining_executor.hpp>
#include <troupe/actors/submission.hpp>
#include <troupe/runtime/api/job.hpp>
#include <troupe/runtime/api/resource_profile_builder.hpp>

#include "desk.hpp"

namespace {

/// The network part of CAF is loaded by who wants it.
struct networked_config : primes::config {
  networked_config() { load<caf::io::middleman>(); }
};

/// Executors of this profile have a `worker`, which those of the driver's own process have not.
troupe::resource_profile worker_profile() {
  return troupe::resource_profile_builder{}
      .require(troupe::executor_resource_requests{}.cores(1).memory("1g").resource("worker", 1))
      .require(troupe::task_resource_requests{}.cpus(1).resource("worker", 1))
      .build();
}

/// A task of a gang, which starts when there is room for all of them.
std::int64_t meet() { return 0; }
constexpr auto meet_task = troupe::task<"meet", meet>;

std::shared_ptr<const troupe::job_spec> make_meeting(std::uint32_t workers) {
  troupe::job job{"meeting of " + std::to_string(workers)};
  job.stage("meet").run(meet_task).tasks(workers).barrier().profile(worker_profile());
  return std::make_shared<const troupe::job_spec>(job.build({}, 0));
}

int serve(caf::actor_system& system, const std::string& folder, const std::string& secret_file, std::uint32_t workers,
          std::int64_t limit) {
  troupe::embedded_options options;
  options.directory = folder;
  options.listen.emplace();
  options.listen->secret_file = secret_file;
  // That a job waits for workers which nobody here can start.
  options.scheduler.infeasible_timeout = std::chrono::hours{1};
  const auto cluster = troupe::spawn_embedded(system, std::move(options));
  if (!cluster) {
    std::cerr << cluster.error().message << '\n';
    return 1;
  }
  std::cout << "listens at " << troupe::to_string(cluster->address) << std::endl;
  auto end = troupe::submit(system, cluster->driver, make_meeting(workers)).get();
  if (!end.failure)
    end = troupe::submit(system, cluster->driver, primes::make_job({limit, 40}, worker_profile())).get();
  if (!end.failure)
    std::cout << primes::total(end) << " primes below " << limit << ", counted by " << end.progress.stages[0].executors
              << " workers" << std::endl;
  else
    std::cerr << end.failure.message << '\n';
  caf::scoped_actor self{system};
  troupe::ask(self, cluster->driver, std::chrono::seconds{10}, troupe::box(troupe::stop_session{"all is counted"}))
      .receive([](const troupe::boxed<troupe::acknowledged>&) {}, [](const caf::error&) {});
  troupe::shut_down(cluster->driver);
  return end.failure ? 1 : 0;
}

int work(caf::actor_system& system, const std::string& folder, const std::string& driver,
         const std::string& secret_file) {
  const auto where = troupe::parse_endpoint(driver);
  if (!where) {
    std::cerr << where.error().message << '\n';
    return 1;
  }
  std::promise<troupe::error> ended;
  troupe::joining_options options;
  options.on_admitted = [](troupe::executor_id id) { std::cout << "works as executor " << id.value << std::endl; };
  options.on_end = [&](const troupe::error& why) { ended.set_value(why); };
  const auto executor =
      troupe::spawn_joining_executor(system, *where, secret_file, worker_profile(), folder, std::move(options));
  if (!executor) {
    std::cerr << executor.error().message << '\n';
    return 1;
  }
  const auto why = ended.get_future().get();
  if (why) std::cerr << why.message << '\n';
  return why ? 1 : 0;
}

} // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const bool serves = words.size() == 4 && words[0] == "serve";
  if (!serves && !(words.size() == 3 && words[0] == "work")) {
    std::cerr << "usage: prime_farm serve SECRET-FILE WORKERS LIMIT\n       prime_farm work HOST:PORT SECRET-FILE\n";
    return 2;
  }
  auto folder = (std::filesystem::temp_directory_path() / "primes-XXXXXX").string();
  if (!mkdtemp(folder.data())) return 1;
  int code = 0;
  {
    networked_config config;
    caf::actor_system system{config};
    code = serves ? serve(system, folder, words[1],
                          static_cast<std::uint32_t>(std::strtoul(words[2].c_str(), nullptr, 10)),
                          std::strtoll(words[3].c_str(), nullptr, 10))
                  : work(system, folder, words[1], words[2]);
  } // the actor system waits for its actors: all have ended
  std::filesystem::remove_all(folder);
  return code;
}
