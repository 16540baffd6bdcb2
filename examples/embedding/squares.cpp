// The shortest application with jobs in its own actor system.
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <caf/actor_system.hpp>
#include <caf/scoped_actor.hpp>

#include <troupe/actors/embedding.hpp>
#include <troupe/actors/submission.hpp>
#include <troupe/runtime/api/job.hpp>

// What a task does, under a name that is the same in all processes of the program.
std::int64_t square(std::int64_t n) { return n * n; }
constexpr auto square_task = troupe::task<"square", square>;

struct config : caf::actor_system_config {
  config() { troupe::prepare(*this); } // announces Troupe's message types
};

bool run_jobs(caf::actor_system& system, const std::string& folder) {
  troupe::embedded_options options;
  options.directory = folder;
  const auto cluster = troupe::spawn_embedded(system, std::move(options)); // a driver with two executors of one core
  if (!cluster) {
    std::cerr << cluster.error().message << '\n';
    return false;
  }
  troupe::job job{"squares"};
  job.stage("square").run(square_task).arguments(std::vector<std::int64_t>{1, 2, 3, 4}); // a task for each
  const auto spec = std::make_shared<const troupe::job_spec>(job.build({}, 0)); // with results of the last stage
  const troupe::job_end end = troupe::submit(system, cluster->driver, spec).get();
  std::int64_t sum = 0;
  for (std::size_t i = 0; !end.failure && i < end.results->values.size(); ++i)
    sum += troupe::decode_value<std::int64_t>(end.results->values[i]);
  std::cout << (end.failure ? end.failure.message : "sum of squares: " + std::to_string(sum)) << '\n';

  caf::scoped_actor self{system};
  troupe::ask(self, cluster->driver, std::chrono::seconds{10}, troupe::box(troupe::stop_session{"all is done"}))
      .receive([](const troupe::boxed<troupe::acknowledged>&) {}, [](const caf::error&) {});
  troupe::shut_down(cluster->driver);
  return !end.failure;
}

int main() {
  auto folder = (std::filesystem::temp_directory_path() / "squares-XXXXXX").string();
  if (!mkdtemp(folder.data())) return 1;
  bool good = false;
  {
    config settings;
    caf::actor_system system{settings};
    good = run_jobs(system, folder);
  } // waits for all actors of the system
  std::filesystem::remove_all(folder);
  return good ? 0 : 1;
}
