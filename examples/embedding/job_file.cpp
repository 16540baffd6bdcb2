// Runs a job file on executors that `troupe node` starts, with the driver in this application:
//   job_file SECRET-FILE JOB.yaml
// Stages for those executors alone ask for a resource that only they have: this process has two executors of one core.
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>

#include <caf/io/middleman.hpp>
#include <caf/scoped_actor.hpp>

#include <troupe/actors/embedding.hpp>
#include <troupe/actors/submission.hpp>
#include <troupe/runtime/config/job_file.hpp>

namespace {

struct config : caf::actor_system_config {
  config() {
    troupe::prepare(*this);
    load<caf::io::middleman>();
  }
};

int run(caf::actor_system& system, const std::string& folder, const std::string& secret_file, const std::string& file) {
  auto job = troupe::load_job(std::filesystem::absolute(file), {});
  if (!job) {
    std::cerr << job.error().message << '\n';
    return 2;
  }
  troupe::embedded_options options;
  options.directory = folder;
  options.listen.emplace();
  options.listen->secret_file = std::filesystem::absolute(secret_file);
  options.scheduler.infeasible_timeout = std::chrono::hours{1}; // in which executors may join
  const auto cluster = troupe::spawn_embedded(system, std::move(options));
  if (!cluster) {
    std::cerr << cluster.error().message << '\n';
    return 1;
  }
  std::cout << "listens at " << troupe::to_string(cluster->address) << std::endl;
  const auto end =
      troupe::submit(system, cluster->driver, std::make_shared<const troupe::job_spec>(std::move(*job))).get();
  if (end.failure)
    std::cerr << end.failure.message << '\n';
  else
    std::cout << "done by " << end.progress.stages[0].executors << " executors" << std::endl;
  caf::scoped_actor self{system};
  troupe::ask(self, cluster->driver, std::chrono::seconds{10}, troupe::box(troupe::stop_session{"the job is done"}))
      .receive([](const troupe::boxed<troupe::acknowledged>&) {}, [](const caf::error&) {});
  troupe::shut_down(cluster->driver);
  return end.failure ? 1 : 0;
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: job_file SECRET-FILE JOB.yaml\n";
    return 2;
  }
  auto folder = (std::filesystem::temp_directory_path() / "job-file-XXXXXX").string();
  if (!mkdtemp(folder.data())) return 1;
  int code = 1;
  {
    config settings;
    caf::actor_system system{settings};
    code = run(system, folder, argv[1], argv[2]);
  } // the actor system waits for its actors: all have ended
  std::filesystem::remove_all(folder);
  return code;
}
