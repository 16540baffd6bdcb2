// CAF's own rate between two processes, as the ceiling of what Troupe can reach: batches of 256 task descriptors (16
// bytes each, one string) go out, an equally large batch comes back for each, a window of batches in flight.
//
//   caf_rate [BATCHES [WINDOW]]     prints one line of JSON
#include <chrono>
#include <cstdint>
#include <iostream>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

#include <caf/event_based_actor.hpp>
#include <caf/io/middleman.hpp>

#include <troupe/launcher/node_system.hpp>
#include <troupe/messages/caf_compat.hpp>
#include <troupe/messages/network.hpp>

namespace {

constexpr std::size_t tasks_per_batch = 256;
constexpr std::size_t bytes_per_task = 16;

using echo_actor = troupe::handle<std::string(std::string)>;

echo_actor::behavior_type echo() {
  return {[](const std::string& batch) { return batch; }};
}

int child(int ready) {
  troupe::node_config config{true};
  if (!config.apply(troupe::settings{})) return 1;
  caf::actor_system system{config};
  const auto actor = system.spawn(echo);
  const auto port = troupe::publish(system, actor, 0, "127.0.0.1");
  const std::uint16_t number = port ? *port : 0;
  if (write(ready, &number, sizeof number) != sizeof number) return 1;
  char ignored;
  while (read(STDIN_FILENO, &ignored, 1) > 0) {} // until the parent is gone
  _exit(0);
}

int parent(int ready, std::uint32_t batches, std::uint32_t window) {
  std::uint16_t port = 0;
  if (read(ready, &port, sizeof port) != sizeof port || port == 0) return 1;
  troupe::node_config config{true};
  if (!config.apply(troupe::settings{})) return 1;
  caf::actor_system system{config};
  const auto peer = troupe::connect<echo_actor>(system, "127.0.0.1", port);
  if (!peer) {
    std::cerr << peer.error().message << '\n';
    return 1;
  }
  const auto start = std::chrono::steady_clock::now();
  {
    system.spawn([&, peer = *peer](caf::event_based_actor* self) {
      struct progress {
        std::uint32_t sent = 0;
        std::uint32_t back = 0;
        std::function<void()> next;
      };
      const auto p = std::make_shared<progress>();
      p->next = [=] {
        ++p->sent;
        troupe::ask(self, peer, std::chrono::seconds{60}, std::string(tasks_per_batch * bytes_per_task, 'x'))
            .then([=](const std::string&) {
              if (++p->back == batches) return self->quit();
              if (p->sent < batches) p->next();
            });
      };
      for (std::uint32_t i = 0; i < std::min(window, batches); ++i) p->next();
    });
    system.await_all_actors_done();
  }
  const auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::cout << "{\"what\": \"caf two processes, batches of 256\", \"window\": " << window
            << ", \"tasks_per_second\": " << static_cast<std::uint64_t>(batches * tasks_per_batch / seconds) << "}\n";
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  const auto number = [&](int i, std::uint32_t standard) {
    return argc > i ? static_cast<std::uint32_t>(std::stoul(argv[i])) : standard;
  };
  int ready[2];
  int alive[2];
  if (pipe(ready) != 0 || pipe(alive) != 0) return 1;
  const auto pid = fork();
  if (pid == 0) {
    dup2(alive[0], STDIN_FILENO);
    close(alive[1]);
    return child(ready[1]);
  }
  close(alive[0]);
  const int code = parent(ready[0], number(1, 20'000), number(2, 8));
  close(alive[1]);
  waitpid(pid, nullptr, 0);
  return code;
}
