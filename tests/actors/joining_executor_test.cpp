// Executors that join the embedded driver of another actor system, over the network.

#include <algorithm>
#include <filesystem>
#include <functional>
#include <future>
#include <mutex>
#include <optional>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/actors/joining_executor.hpp>
#include <troupe/tests/actors/embedded_application.hpp>
#include <troupe/tests/support/process_probe.hpp>

namespace troupe::actor_tests {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

closed_door common_door;
std::string meet_at_the_door(std::int64_t number) {
  common_door.pass();
  return std::string(static_cast<std::size_t>(number), 'x');
}
constexpr auto meeting = task<"joining-executor-meeting", meet_at_the_door>;

/// One actor system of an application.
struct application {
  node_config config{true};
  std::optional<caf::actor_system> system{std::in_place, config};
  testing::temporary_directory folder;
};

class joining_executor : public ::testing::Test {
protected:
  embedded_options listening() {
    embedded_options options;
    options.directory = ours.folder.path();
    options.max_inline_result = 1;
    options.listen.emplace();
    options.listen->secret_file = secret;
    return options;
  }
  void start() {
    auto made = spawn_embedded(*ours.system, listening());
    ASSERT_TRUE(made) << made.error().message;
    cluster = *made;
  }
  /// Of one core.
  result<executor_actor> join(const std::string& secret_file, joining_options options = {},
                              const resource_profile& profile = {}) {
    options.max_inline_result = 1;
    options.on_end = [this](const error& why) { ended.set_value({why, fs::is_empty(theirs.folder.path())}); };
    return spawn_joining_executor(*theirs.system, cluster.address, secret_file, profile, theirs.folder.path(),
                                  std::move(options));
  }
  std::string refusal(const std::string& secret_file, joining_options options = {}) {
    const auto joined = join(secret_file, std::move(options));
    return joined ? "" : joined.error().message;
  }
  /// Why the executor ended, and whether it has left nothing.
  std::pair<error, bool> end_of_it() {
    auto future = ended.get_future();
    if (future.wait_for(testing::patience()) != std::future_status::ready)
      return {make_error(ec::internal, "it does not end"), false};
    return future.get();
  }
  void TearDown() override {
    common_door.open();
    if (cluster.driver) shut_down(cluster.driver);
    cluster = {};
    theirs.system.reset();
    ours.system.reset();
    EXPECT_TRUE(fs::is_empty(ours.folder.path())) << "also where nobody has stopped the session";
  }

  application ours;
  application theirs;
  testing::temporary_directory secrets;
  std::string secret = secrets.path() + "/made/secret";
  embedded_cluster cluster;
  std::promise<std::pair<error, bool>> ended;
  std::promise<job_end> over;
};

TEST_F(joining_executor, runs_tasks_beside_those_of_the_driver_and_serves_their_results) {
  start();
  common_door.close();
  const auto executor = join(secret);
  ASSERT_TRUE(executor) << executor.error().message;
  // There are two executors of one core where the driver is: the third task waits for this one.
  submit(*ours.system, cluster.driver, job_of(meeting, {1000, 2000, 3000}),
         {.on_end = [&](const job_end& e) { over.set_value(e); }, .keep_results = true});
  ASSERT_TRUE(common_door.await(3));
  common_door.open();
  const auto end = over.get_future().get();
  ASSERT_FALSE(end.failure) << end.failure.message;
  std::size_t bytes = 0;
  for (const auto& where : end.results->elsewhere) {
    EXPECT_NE(where.endpoint.port, 0) << "others can read it";
    const auto text = fetch_result(cluster, where);
    ASSERT_TRUE(text) << text.error().message;
    bytes += decode_value<std::string>(*text).size();
  }
  EXPECT_EQ(bytes, 6000u);
  shut_down(*executor);
  const auto [why, is_clean] = end_of_it();
  EXPECT_FALSE(why) << why.message;
  EXPECT_TRUE(is_clean);
}

TEST_F(joining_executor, is_waited_for_by_a_job_that_only_it_can_run) {
  start();
  common_door.open();
  resource_profile profile;
  profile.executor["worker"].amount = 1;
  profile.task["worker"] = share::whole(1);
  job one{"one"};
  one.stage("only").run(meeting).arguments({1}).profile(profile);
  std::promise<void> accepted;
  auto ends = std::make_shared<std::promise<job_end>>();
  submit(
      *ours.system, cluster.driver, std::make_shared<const job_spec>(one.build({}, 0)),
      {.on_accepted = [&](job_id) { accepted.set_value(); }, .on_end = [ends](const auto& e) { ends->set_value(e); }});
  accepted.get_future().wait();
  joining_options options;
  options.addresses["worker"] = {"mine"};
  const auto executor = join(secret, std::move(options), profile);
  ASSERT_TRUE(executor) << executor.error().message;
  EXPECT_FALSE(ends->get_future().get().failure);
  shut_down(*executor);
  EXPECT_TRUE(end_of_it().second);
}

TEST_F(joining_executor, ends_with_its_driver) {
  start();
  const auto executor = join(secret);
  ASSERT_TRUE(executor) << executor.error().message;
  ask(caf::scoped_actor{*ours.system}, cluster.driver, testing::patience(), box(stop_session{"closing"}))
      .receive([](const boxed<acknowledged>&) {}, [](const caf::error&) { ADD_FAILURE(); });
  EXPECT_TRUE(end_of_it().second);
}

TEST_F(joining_executor, has_to_know_the_secret_and_is_told_what_is_wrong) {
  start();
  EXPECT_EQ(fs::status(secret).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(cluster.address.host, "127.0.0.1");
  const auto another = secrets.path() + "/another";
  ASSERT_TRUE(session_secret::generate().save(another));
  const auto stranger = join(another);
  ASSERT_FALSE(stranger);
  EXPECT_EQ(stranger.error().code, ec::unauthenticated);
  EXPECT_THAT(refusal(secrets.path() + "/none"), HasSubstr(secrets.path() + "/none"));
  joining_options wrong;
  wrong.addresses["gpu"] = {"0"};
  EXPECT_THAT(refusal(secret, wrong), HasSubstr("addresses are given for gpu, which profile does not have"));
  wrong = {};
  wrong.bind_address = "192.0.2.1";
  EXPECT_THAT(refusal(secret, wrong), HasSubstr("192.0.2.1 is not a loopback address"));
  EXPECT_TRUE(fs::is_empty(theirs.folder.path()));
}

TEST_F(joining_executor, finds_no_driver_where_the_door_cannot_be_opened) {
  const auto refused = [&](const std::function<void(embedded_options&)>& change) {
    auto options = listening();
    change(options);
    auto made = spawn_embedded(*ours.system, std::move(options));
    if (!made) return made.error().message;
    shut_down(made->driver);
    return std::string{};
  };
  EXPECT_THAT(refused([](auto& o) { o.listen->address = "0.0.0.0"; }), HasSubstr("listen.address is '0.0.0.0'"));
  EXPECT_THAT(refused([](auto& o) { o.listen->address = "localhost"; }), HasSubstr("listen.address is 'localhost'"));
  EXPECT_THAT(refused([](auto& o) { o.listen->address = "192.0.2.1"; }), HasSubstr("set insecure"));
  EXPECT_THAT(refused([](auto& o) { o.listen->secret_file = ""; }), HasSubstr("give an absolute path"));
  EXPECT_THAT(refused([](auto& o) { o.listen->last_port = 5; }), HasSubstr("listen.last_port is 5"));
  start();
  const auto taken = cluster.address.port;
  EXPECT_THAT(refused([&](auto& o) { o.listen->port = taken; }), HasSubstr("somebody listens there"));
  if (taken < 65'535) // of a range the next one is tried
    EXPECT_EQ(refused([&](auto& o) {
                o.listen->port = taken;
                o.listen->last_port = 65'535;
              }),
              "");
  // The port goes with its driver, not with the actor system.
  const auto listens = [&] {
    const auto ports = testing::listening_ports();
    return std::any_of(ports.begin(), ports.end(), [&](const auto& each) { return each.second == taken; });
  };
  EXPECT_TRUE(listens());
  shut_down(cluster.driver);
  EXPECT_TRUE(testing::wait_until([&] { return !listens(); }));
  node_config config{false};
  caf::actor_system unprepared{config};
  const auto made = spawn_embedded(unprepared, listening());
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("load<caf::io::middleman>()"));
}

} // namespace
} // namespace troupe::actor_tests
