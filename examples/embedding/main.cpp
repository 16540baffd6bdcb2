// An ordinary CAF application that counts primes: prime_counter [LIMIT]. Two drivers run in its one actor system.
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include <caf/scoped_actor.hpp>

#include "desk.hpp"

namespace {

/// News come as often as the count moves; a line for each quarter of it is enough.
primes::listener_actor::behavior_type print_progress() {
  return {[quarter = 0u](const primes::count_progress& p) mutable {
    if (p.tasks == 0 || p.done * 4 / p.tasks <= quarter) return;
    quarter = p.done * 4 / p.tasks;
    std::cout << "  " << p.done << " of " << p.tasks << " parts\n" << std::flush;
  }};
}

bool count(caf::scoped_actor& self, const primes::desk_actor& desk, std::int64_t limit) {
  bool good = false;
  troupe::ask(self, desk, std::chrono::seconds{100}, primes::count_request{limit, 40})
      .receive(
          [&](const primes::count_reply& reply) {
            std::cout << reply.primes << " primes below " << reply.limit << ", counted in " << reply.tasks
                      << " tasks on " << reply.executors << " executors\n";
            good = true;
          },
          [&](const caf::error& why) { std::cerr << troupe::from_caf_error(self->system(), why).message << '\n'; });
  return good;
}

void stop(caf::scoped_actor& self, const troupe::embedded_cluster& cluster) {
  troupe::ask(self, cluster.driver, std::chrono::seconds{10}, troupe::box(troupe::stop_session{"all is counted"}))
      .receive([](const troupe::boxed<troupe::acknowledged>&) {},
               [&](const caf::error& why) { std::cerr << troupe::describe(self->system(), why) << '\n'; });
  troupe::shut_down(cluster.driver);
}

} // namespace

int main(int argc, char** argv) {
  const std::int64_t limit = argc > 1 ? std::strtoll(argv[1], nullptr, 10) : 2'000'000;
  auto folder = (std::filesystem::temp_directory_path() / "primes-XXXXXX").string();
  if (!mkdtemp(folder.data())) return 1;
  bool good = true;
  {
    primes::config config;
    caf::actor_system system{config};
    caf::scoped_actor self{system};
    // Two drivers, each with two executors in this process. What they share is the actor system.
    std::vector<troupe::embedded_cluster> clusters;
    for (const auto* name : {"first", "second"}) {
      troupe::embedded_options options;
      options.directory = folder + "/" + name;
      std::filesystem::create_directory(options.directory);
      auto cluster = troupe::spawn_embedded(system, std::move(options));
      if (cluster)
        clusters.push_back(*std::move(cluster));
      else
        std::cerr << cluster.error().message << '\n';
    }
    good = clusters.size() == 2;
    auto below = limit;
    for (const auto& cluster : clusters) {
      const auto desk = primes::spawn_desk(system, cluster.driver, system.spawn(print_progress));
      good = count(self, desk, below) && good;
      troupe::shut_down(desk);
      below *= 5;
    }
    for (const auto& cluster : clusters) stop(self, cluster);
  } // the actor system waits for its actors: all have ended
  std::filesystem::remove_all(folder);
  return good ? 0 : 1;
}
