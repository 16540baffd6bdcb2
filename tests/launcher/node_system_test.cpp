#include <troupe/launcher/node_system.hpp>

#include <chrono>
#include <string>

#include <caf/settings.hpp>

#include <gtest/gtest.h>

namespace troupe {
namespace {

using namespace std::chrono_literals;

caf::timespan connection_timeout_with(const std::string& argument) {
  settings_builder builder{"/base"};
  EXPECT_TRUE(builder.add_argument(argument));
  const auto built = builder.build();
  EXPECT_TRUE(built);
  node_config config{true};
  EXPECT_TRUE(config.apply(*built));
  return caf::get_or(config, "middleman.connection-timeout", caf::timespan{});
}

TEST(node_system, lets_a_peer_be_silent_far_longer_than_heartbeats_do) {
  EXPECT_EQ(connection_timeout_with("troupe.executor.heartbeat-timeout=4s"), 64s) << "as long as executors wait";
  EXPECT_EQ(connection_timeout_with("troupe.executor.heartbeat-timeout=70s"), 140s);
  EXPECT_EQ(connection_timeout_with("troupe.executor.abandon-timeout=5min"), 310s);
}

} // namespace
} // namespace troupe
