#include <troupe/launcher/node_system.hpp>

#include <algorithm>
#include <string>
#include <thread>

#include <caf/io/middleman.hpp>

#include <troupe/actors/embedding.hpp>
#include <troupe/messages/caf_compat.hpp>
#include <troupe/messages/type_ids.hpp>

namespace troupe {

node_config::node_config(bool networked) {
  init_types();
  prepare(*this);
  if (networked) load<caf::io::middleman>();
}

result<void> node_config::apply(const settings& s) {
  // Work stealing makes idle pool threads poll and take the cores that tasks should have; unlimited throughput lets a
  // busy sender starve the socket loop.
  const auto threads = std::clamp(std::thread::hardware_concurrency() / 2, 1u, 8u);
  // CAF takes its own lateness for a peer's silence, so its time-out is long: it only ends connections of which nothing
  // is heard any more. Executors and drivers are judged by their heartbeats, which know better.
  const auto connection_timeout =
      std::max<duration>({std::chrono::seconds{60}, 2 * s.get(keys::executor_heartbeat_timeout),
                          s.get(keys::executor_abandon_timeout) + s.get(keys::executor_heartbeat_timeout)});
  const auto text = [](duration d) {
    return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(d).count()) + "ms";
  };
  const std::pair<std::string, std::string> defaults[] = {
      {"scheduler.policy", "sharing"},
      {"scheduler.max-throughput", "100"},
      {"scheduler.max-threads", std::to_string(threads)},
      {"middleman.workers", "0"},
      {"middleman.heartbeat-interval", text(s.get(keys::executor_heartbeat_interval))},
      {"middleman.connection-timeout", text(connection_timeout)},
  };
  for (const auto& [key, value] : defaults) {
    if (s.caf().contains(key)) continue;
    if (auto set = set_caf_option(*this, key, value); !set) return set.error();
  }
  for (const auto& [key, given] : s.caf())
    if (auto set = set_caf_option(*this, key, given.text); !set)
      return make_error(set.error().code, to_string(given.origin) + ": " + set.error().message);
  return {};
}

} // namespace troupe
