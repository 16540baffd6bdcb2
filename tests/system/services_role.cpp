#include <troupe/tests/system/services_role.hpp>

#include <csignal>
#include <filesystem>
#include <iostream>
#include <stdexcept>

#include <unistd.h>

#include <troupe/launcher/node_system.hpp>
#include <troupe/launcher/process_backend.hpp>
#include <troupe/launcher/services.hpp>
#include <troupe/messages/network.hpp>
#include <troupe/messages/type_ids.hpp>
#include <troupe/runtime/config/cluster_file.hpp>
#include <troupe/runtime/config/profile_settings.hpp>
#include <troupe/tests/system/program_process.hpp>

namespace troupe::system_tests {

int play_services(const std::vector<std::string>& arguments) {
  sigset_t waited;
  sigemptyset(&waited);
  sigaddset(&waited, SIGTERM);
  sigaddset(&waited, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &waited, nullptr);
  const auto effective = settings{};
  const auto where = parse_endpoint(arguments.at(0));
  auto secret = session_secret::load(arguments.at(2));
  if (!where || !secret) throw std::runtime_error("bad arguments");
  node_config config{true};
  if (auto applied = config.apply(effective); !applied) throw std::runtime_error(applied.error().message);
  caf::actor_system system{config};
  auto driver = connect<driver_actor>(system, where->host, where->port);
  if (!driver) throw std::runtime_error(driver.error().message);

  services_options opts;
  opts.driver = *driver;
  opts.cluster_id = arguments.at(1);
  opts.secret = std::make_shared<const session_secret>(*secret);
  opts.name = "services:" + std::to_string(getpid());
  opts.defaults = *default_profile(effective);
  opts.overhead = overhead_rule_of(effective);
  process_backend::options processes;
  processes.hosts = cluster_of({2, 2, std::int64_t{2} << 30}, {}).hosts;
  processes.described_by = "the test's services process";
  processes.program = std::filesystem::read_symlink("/proc/self/exe").string();
  processes.start.driver = *where;
  processes.start.cluster_id = opts.cluster_id;
  processes.start.secret_file = arguments.at(2);
  processes.start.run_directory = arguments.at(3);
  processes.effective = effective;
  opts.backend = std::make_shared<process_backend>(std::move(processes));
  auto services = start_services(system, std::move(opts));
  if (!services) throw std::runtime_error(services.error().message);
  std::cout << "services work" << std::endl;
  int signal = 0;
  while (signal != SIGTERM) sigwait(&waited, &signal);
  shut_down(services->allocator);
  shut_down(services->profiles);
  return 0;
}

} // namespace troupe::system_tests
