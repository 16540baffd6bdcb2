// Several processes and clusters: strangers, clients, services elsewhere, a driver that is killed.

#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <sstream>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <troupe/actors/driver.hpp>
#include <troupe/launcher/job_connection.hpp>
#include <troupe/launcher/node_system.hpp>
#include <troupe/messages/network.hpp>
#include <troupe/messages/type_ids.hpp>
#include <troupe/runtime/api/resource_profile_builder.hpp>
#include <troupe/runtime/api/session.hpp>
#include <troupe/runtime/config/profile_settings.hpp>
#include <troupe/tests/system/background.hpp>
#include <troupe/tests/system/rendezvous.hpp>
#include <troupe/tests/system/roles.hpp>
#include <troupe/tests/system/stages.hpp>

namespace troupe::system_tests {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

std::string content_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream{path}.rdbuf();
  return text.str();
}

std::size_t occurrences(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size()) ++n;
  return n;
}

/// A driver that waits for executors that are started by hand.
test_cluster::options by_hand() { return {.master = "127.0.0.1:1", .published = true}; }

std::vector<std::string> executor_arguments(const test_cluster& cluster, const std::string& secret_file,
                                            const std::string& name) {
  auto& app = cluster.app();
  return {to_string(*app.address()), app.cluster_id(), secret_file, app.directory(), name, "127.0.0.1"};
}

// -- strangers

TEST(an_executor_started_by_hand, joins_and_works) {
  test_cluster cluster{by_hand()};
  role_process executor{"executor", executor_arguments(cluster, cluster.app().secret_file(), "by-hand")};
  const auto admitted = cluster.await_executors(1).front();
  EXPECT_EQ(admitted.pid, executor.pid());
  EXPECT_EQ(admitted.status.info.host, "by-hand");
  EXPECT_EQ(admitted.status.info.slots, 2);
  auto session = cluster.make_session();
  const auto small = resource_profile_builder{}
                         .require(executor_resource_requests{}.cores(2).memory("64m"))
                         .require(task_resource_requests{}.cpus(1))
                         .build();
  EXPECT_EQ(session.range(0, 50, 5).with_resources(small).count(), 50u);
  cluster.close();
  EXPECT_EQ(executor.wait(), 0) << executor.output();
  cluster.check_clean();
}

TEST(an_executor_with_another_secret, is_refused_with_a_line_on_both_sides_and_changes_nothing) {
  test_cluster cluster{by_hand()};
  const testing::temporary_directory other;
  const auto file = other.path() + "/secret";
  ASSERT_TRUE(session_secret::generate().save(file));
  role_process executor{"executor", executor_arguments(cluster, file, "stranger")};
  const auto code = executor.wait();
  ASSERT_TRUE(code.has_value()) << "it did not end";
  EXPECT_NE(*code, 0);
  EXPECT_THAT(executor.output(), AllOf(HasSubstr("secret"), HasSubstr("troupe.security.secret-file")));
  EXPECT_EQ(occurrences(executor.output(), "\n"), 1u) << executor.output();
  EXPECT_TRUE(cluster.executors().empty());
  const auto log = cluster.app().directory() + "/driver.log";
  ASSERT_TRUE(testing::wait_until([&] { return content_of(log).find("hello-refused") != std::string::npos; }))
      << content_of(log);
  EXPECT_EQ(occurrences(content_of(log), "hello-refused"), 1u) << content_of(log);
  EXPECT_THAT(content_of(log), AllOf(HasSubstr("role=executor"), HasSubstr("does not know the secret")));
  // It stays what it was: nobody's.
  role_process welcome{"executor", executor_arguments(cluster, cluster.app().secret_file(), "by-hand")};
  cluster.await_executors(1);
  cluster.close();
  EXPECT_EQ(welcome.wait(), 0) << welcome.output();
  cluster.check_clean();
}

// -- several clusters, several clients

TEST(two_clusters_side_by_side, do_not_know_each_other) {
  test_cluster left{{.master = "local-cluster[2,1,1g]", .fake_gpus = 1}};
  test_cluster right{{.master = "local-cluster[1,2,1g]"}};
  auto left_session = left.make_session();
  auto right_session = right.make_session();
  background<std::uint64_t> a{left, [&] { return left_session.range(0, 3000, 6).count(); }};
  background<std::uint64_t> b{right, [&] { return right_session.range(0, 5000, 6).count(); }};
  EXPECT_EQ(a.get(), 3000u);
  EXPECT_EQ(b.get(), 5000u);
  for (const auto& l : left.executors())
    for (const auto& r : right.executors()) EXPECT_NE(l.pid, r.pid);
  right.close();
  EXPECT_EQ(left_session.range(0, 100, 4).count(), 100u) << "the other one's end was felt";
  left.await_idle();
  left.close();
  EXPECT_TRUE(testing::wait_until([&] { return testing::children_of(getpid()).empty(); }));
}

TEST(three_clients_at_once, each_get_their_own_results) {
  test_cluster cluster{{.master = "local-cluster[2,2,2g]"}};
  std::vector<std::unique_ptr<role_process>> clients;
  for (const auto* end : {"1000", "2000", "3000"})
    clients.push_back(std::make_unique<role_process>(
        "client",
        std::vector<std::string>{"--master", "troupe://" + to_string(*cluster.app().address()), "--conf",
                                 "troupe.security.secret-file=" + cluster.app().secret_file(), "--conf",
                                 "troupe.run-directory=" + cluster.app().directory() + "/../../clients", end}));
  auto session = cluster.make_session();
  EXPECT_EQ(session.range(0, 500, 5).count(), 500u) << "the driver's own process";
  const char* expected[] = {"counted 1000\n", "counted 2000\n", "counted 3000\n"};
  for (std::size_t i = 0; i < clients.size(); ++i) {
    EXPECT_EQ(clients[i]->wait(), 0) << clients[i]->output();
    EXPECT_THAT(clients[i]->output(), HasSubstr(expected[i]));
  }
  cluster.await_idle();
  cluster.check_clean();
}

TEST(a_client_that_dies, takes_its_jobs_along) {
  const rendezvous meeting;
  test_cluster cluster{{.master = "local-cluster[1,2,1g]"}};
  role_process client{"waiting-client",
                      {meeting.directory(), "--master", "troupe://" + to_string(*cluster.app().address()), "--conf",
                       "troupe.security.secret-file=" + cluster.app().secret_file(), "--conf",
                       "troupe.run-directory=" + cluster.app().directory() + "/../../clients"}};
  meeting.await("map", 1);
  client.kill(SIGKILL);
  EXPECT_EQ(client.wait(), 128 + SIGKILL);
  cluster.await_idle();
  const auto status = cluster.jobs().status();
  ASSERT_TRUE(status);
  ASSERT_EQ(status->jobs.size(), 1u);
  EXPECT_EQ(status->jobs[0].state, job_state::cancelled);
  cluster.check_clean();
}

// -- allocator and resource profile manager elsewhere

TEST(services_in_another_process, do_the_work_of_those_in_the_drivers) {
  const testing::temporary_directory base;
  const settings effective;
  auto directory = run_directory::create(base.path() + "/run", make_random_name());
  ASSERT_TRUE(directory);
  const auto secret = session_secret::generate();
  const auto secret_file = directory->path() + "/secret";
  ASSERT_TRUE(secret.save(secret_file));
  node_config config{true};
  ASSERT_TRUE(config.apply(effective));
  caf::actor_system system{config};
  driver_config d;
  d.cluster_id = make_random_name();
  d.session_id = make_random_name();
  d.master = "services elsewhere";
  d.secret = std::make_shared<const session_secret>(secret);
  d.defaults = *default_profile(effective);
  d.remote_services = true;
  const auto cluster_id = d.cluster_id;
  auto driver = spawn_driver(system, std::move(d));
  const auto port = publish(system, driver, 0, "127.0.0.1");
  ASSERT_TRUE(port);
  {
    job_connection::options connection;
    connection.driver = driver;
    auto jobs = std::make_shared<job_connection>(system, std::move(connection));
    session session{jobs, {}};
    // Submitted before anybody could run it.
    auto early = std::async(std::launch::async, [&] { return session.range(0, 700, 7).count(); });
    role_process services{"services",
                          {"127.0.0.1:" + std::to_string(*port), cluster_id, secret_file, directory->path()}};
    ASSERT_EQ(early.wait_for(testing::patience()), std::future_status::ready) << services.output();
    EXPECT_EQ(early.get(), 700u);
    const auto gpu = resource_profile_builder{}
                         .require(executor_resource_requests{}.cores(2).memory("64m"))
                         .require(task_resource_requests{}.cpus(2))
                         .build();
    EXPECT_EQ(session.range(0, 70, 7).with_resources(gpu).count(), 70u) << "a profile of its own";
    const auto status = jobs->status();
    ASSERT_TRUE(status);
    ASSERT_FALSE(status->executors.empty());
    for (const auto& e : status->executors) {
      const auto keeper = testing::look_at(testing::look_at(static_cast<pid_t>(e.info.pid)).parent);
      EXPECT_EQ(keeper.parent, services.pid()) << "started by another process: " << keeper.text();
    }
    EXPECT_TRUE(jobs->stop("the test is over", testing::patience()));
    services.kill(SIGTERM);
    EXPECT_EQ(services.wait(), 0) << services.output();
    jobs->close();
  }
  shut_down(driver);
  driver = nullptr;
  EXPECT_TRUE(testing::wait_until([&] { return testing::processes_of(directory->path()).empty(); }));
}

TEST(an_interrupted_program, takes_its_executors_along_though_it_computes_on) {
  const testing::temporary_directory base;
  const auto run = base.path() + "/run";
  // It is given an hour to end after the first signal; its executors do not use it, and are not idle for so long.
  role_process client{"stubborn-client",
                      {"--master", "local-cluster[2,1,1g]", "--conf", "troupe.run-directory=" + run, "--conf",
                       "troupe.task.kill-grace=1h", "--conf", "troupe.dynamic-allocation.executor-idle-timeout=1h"}};
  ASSERT_TRUE(testing::wait_until([&] { return client.printed().find("counted 100") != std::string::npos; }))
      << client.output();
  EXPECT_GE(testing::processes_of(run).size(), 2u) << "an executor with its keeper";
  client.kill(SIGINT);
  std::vector<testing::seen_process> left;
  EXPECT_TRUE(testing::wait_until([&] {
    left = testing::processes_of(run);
    // The program itself and the guard of its session stay.
    std::erase_if(left, [&](const auto& process) { return !testing::is_executor(process.pid); });
    return left.empty();
  })) << left.front().text();
  EXPECT_TRUE(testing::is_alive(client.pid())) << "it computes on: " << client.output();
  // The system wakes who waits for a signal also for none of them, as behind Ctrl-Z and fg. It waits again.
  const auto waits = [&](const char state) {
    std::error_code gone;
    for (fs::directory_iterator thread{"/proc/" + std::to_string(client.pid()) + "/task", gone}, end;
         !gone && thread != end; thread.increment(gone)) {
      std::ifstream file{thread->path() / "stat"};
      const std::string stat{std::istreambuf_iterator<char>{file}, {}};
      if (stat.find("(troupe-signals) " + std::string(1, state)) != stat.npos) return true;
    }
    return false;
  };
  client.kill(SIGSTOP);
  EXPECT_TRUE(testing::wait_until([&] { return waits('T'); }));
  client.kill(SIGCONT);
  EXPECT_TRUE(testing::wait_until([&] { return waits('S'); })) << client.output();
  client.kill(SIGINT); // a second signal ends it at once
  EXPECT_EQ(client.wait(), 130) << client.output();
  EXPECT_TRUE(testing::wait_until([&] { return (left = testing::processes_of(run)).empty(); })) << left.front().text();
}

TEST(an_interrupted_program, says_why_its_job_had_failed_before) {
  const testing::temporary_directory base;
  role_process client{"failing-client",
                      {base.path(), "--master", "local[2]", "--conf", "troupe.task.max-failures=1", "--conf",
                       "troupe.task.kill-grace=1h"}};
  ASSERT_TRUE(testing::wait_until([&] { return client.output().find("failed after") != std::string::npos; }))
      << client.output();
  client.kill(SIGINT);
  std::ofstream{base.path() + "/go"} << "";
  EXPECT_EQ(client.wait(), 130) << client.output();
  EXPECT_THAT(client.output(), ::testing::AllOf(HasSubstr("the cause\n"), HasSubstr("troupe: interrupted\n")));
}

TEST(an_interrupted_program, ends_after_its_grace_though_it_computes_on) {
  const testing::temporary_directory base;
  const auto run = base.path() + "/run";
  role_process client{"stubborn-client",
                      {"--master", "local-cluster[2,1,1g]", "--conf", "troupe.run-directory=" + run, "--conf",
                       "troupe.task.kill-grace=0", "--conf", "troupe.shutdown.grace=0"}};
  ASSERT_TRUE(testing::wait_until([&] { return client.printed().find("counted 100") != std::string::npos; }))
      << client.output();
  client.kill(SIGINT); // one signal
  EXPECT_EQ(client.wait(), 130) << client.output();
  EXPECT_TRUE(testing::wait_until([&] { return testing::processes_of(run).empty(); }));
}

// -- what others of this machine may see

TEST(the_secret, is_in_its_file_alone) {
  test_cluster cluster{{.master = "local-cluster[2,1,1g]", .conf = {"troupe.log.level=trace"}}};
  EXPECT_EQ(cluster.make_session().range(0, 100, 4).count(), 100u);
  const auto& run = cluster.app().directory();
  const auto& file = cluster.app().secret_file();
  const auto read = [](const fs::path& path) {
    std::ifstream in{path, std::ios::binary};
    return std::string{std::istreambuf_iterator<char>{in}, {}};
  };
  auto secret = read(file);
  secret.erase(secret.find_last_not_of("\n") + 1);
  ASSERT_GE(secret.size(), 32u);
  EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(fs::status(run).permissions(), fs::perms::owner_all);

  const auto processes = testing::processes_of(run);
  EXPECT_GE(processes.size(), 2u) << "an executor with its keeper";
  for (const auto& process : processes)
    for (const auto* what : {"cmdline", "environ"})
      EXPECT_EQ(read("/proc/" + std::to_string(process.pid) + "/" + what).find(secret), std::string::npos)
          << what << " of " << process.text();
  std::size_t looked_at = 0;
  std::error_code gone; // what is being removed at this moment
  for (fs::recursive_directory_iterator entry{run, gone}, end; !gone && entry != end; entry.increment(gone)) {
    if (std::error_code unknown; !entry->is_regular_file(unknown) || entry->path() == file) continue;
    ++looked_at;
    EXPECT_EQ(read(entry->path()).find(secret), std::string::npos) << entry->path();
  }
  EXPECT_GE(looked_at, 2u) << "logs, and what executors print";
}

// -- kill -9 of the driver

class killed_drivers : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(stages, killed_drivers, ::testing::ValuesIn(three_points),
                         [](const auto& stage) { return std::string{stage.param}; });

TEST_P(killed_drivers, leave_no_process_behind) {
  const rendezvous meeting;
  const testing::temporary_directory base;
  const auto run = base.path() + "/run";
  for (const auto* point : three_points) {
    if (point == std::string_view{GetParam()}) break;
    meeting.open(point);
  }
  role_process driver{"driver", {"local-cluster[2,1,1g]", run, meeting.directory()}};
  const auto busy = meeting.await(GetParam(), 2);
  ASSERT_GE(testing::processes_of(run).size(), 4u) << "two executors with their keepers";
  driver.kill(SIGKILL);
  EXPECT_EQ(driver.wait(), 128 + SIGKILL);
  std::vector<testing::seen_process> left;
  EXPECT_TRUE(testing::wait_until([&] { return (left = testing::processes_of(run)).empty(); }))
      << left.size() << " processes, among them " << left.front().text();
  for (const auto pid : busy) EXPECT_FALSE(testing::is_alive(pid));
  // Files are removed by the last survivor, or by the user's next command.
  run_directory::sweep(run);
  EXPECT_TRUE(fs::is_empty(run)) << fs::directory_iterator { run } -> path();
}

} // namespace
} // namespace troupe::system_tests
