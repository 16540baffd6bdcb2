// What a setting changes, seen from outside: each test sets keys and looks at what is different for it.

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include <unistd.h>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/launcher/machine_resources.hpp>
#include <troupe/launcher/process_log.hpp>
#include <troupe/launcher/session_registry.hpp>
#include <troupe/runtime/api/job_error.hpp>
#include <troupe/runtime/api/resource_profile_builder.hpp>
#include <troupe/tests/system/background.hpp>
#include <troupe/tests/system/rendezvous.hpp>
#include <troupe/tests/system/roles.hpp>
#include <troupe/tests/system/settings_support.hpp>
#include <troupe/tests/transfer/listener.hpp>

namespace troupe::system_tests {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::StartsWith;
namespace fs = std::filesystem;

std::string make_text(std::int64_t size) { return std::string(static_cast<std::size_t>(size), 'x'); }
constexpr auto text_task = task<"settings-text", make_text>;

/// The end of a job of one task that gives a text of so many bytes.
job_end end_of_text_job(const test_cluster& cluster, std::int64_t size) {
  job j{"text"};
  j.stage("make").run(text_task).arguments({size});
  auto& jobs = cluster.jobs();
  const auto options = cluster.app().make_session_options();
  return jobs.run(std::make_shared<const job_spec>(j.build(options.jobs, 0)));
}

/// Bytes of block files below a directory.
std::uintmax_t bytes_of_blocks(const std::string& directory) {
  std::uintmax_t bytes = 0;
  std::error_code gone; // what is being removed at this moment
  for (fs::recursive_directory_iterator it{directory, gone}, end; !gone && it != end; it.increment(gone)) {
    std::error_code unknown;
    if (it->path().string().find("/blocks-") == std::string::npos || !it->is_regular_file(unknown)) continue;
    if (const auto size = it->file_size(unknown); !unknown) bytes += size;
  }
  return bytes;
}

/// Names of all files below a directory, which may be going at this moment.
std::vector<std::string> files_below(const std::string& directory) {
  std::vector<std::string> files;
  std::error_code gone;
  for (fs::recursive_directory_iterator it{directory, gone}, end; !gone && it != end; it.increment(gone))
    if (std::error_code ignored; !it->is_directory(ignored)) files.push_back(it->path().string());
  return files;
}

// -- executors of the default profile

TEST(settings_in_effect, executors_and_tasks_of_the_default_profile_are_as_they_say) {
  testing::temporary_directory folder;
  const auto finds = script(folder, R"(echo '{"name": "fpga", "addresses": ["f0"]}')");
  test_cluster cluster{
      {.master = "local[4]",
       .conf = {"troupe.executor.cores=2", "troupe.executor.memory=64m", "troupe.executor.memory-overhead=32m",
                "troupe.executor.off-heap=16m", "troupe.executor.pyspark-memory=8m", "troupe.task.cpus=0.5",
                "troupe.executor.resource.gpu.addresses=7", "troupe.executor.resource.gpu.amount=1",
                "troupe.executor.resource.gpu.vendor=acme", "troupe.task.resource.gpu.amount=1/3",
                "troupe.executor.resource.fpga.discovery-script=" + finds, "troupe.executor.resource.fpga.amount=1"}}};
  auto session = cluster.make_session();
  EXPECT_EQ(session.range(0, 10, 4).count(), 10u);
  const auto executors = cluster.executors();
  ASSERT_THAT(executors, Not(IsEmpty()));
  const auto& info = executors.front().status.info;
  EXPECT_TRUE(info.in_process);
  EXPECT_EQ(info.capacity.cores, 2);
  EXPECT_EQ(info.capacity.memory, 64 << 20);
  EXPECT_EQ(info.capacity.memory_overhead, 32 << 20);
  EXPECT_EQ(info.capacity.off_heap, 16 << 20);
  EXPECT_EQ(info.capacity.pyspark_memory, 8 << 20);
  EXPECT_THAT(info.capacity.custom.at("gpu").addresses, ElementsAre("7"));
  EXPECT_THAT(info.capacity.custom.at("fpga").addresses, ElementsAre("f0"));
  EXPECT_EQ(info.profile.executor.at("gpu").vendor, "acme");
  EXPECT_EQ(info.slots, 3) << "four by cpus, three by shares of the gpu";
  for (const auto& p : session.last_placements()) EXPECT_EQ(p.holding.resources.at("gpu").at(0).address, "7");
  cluster.check_clean();
}

std::int64_t meet_here(const std::string& directory, std::int64_t n) {
  arrive(directory, "here");
  return n;
}

TEST(settings_in_effect, text_files_are_read_in_pieces_of_so_many_bytes) {
  const testing::temporary_directory directory;
  const auto path = directory.path() + "/text";
  std::ofstream{path} << "one\ntwo\nthree\nfour\nfive\n";
  test_cluster cluster{{.master = "local[2]", .conf = {"troupe.files.max-partition-bytes=10b"}}};
  auto session = cluster.make_session();
  EXPECT_EQ(session.text_files(path).count(), 5u);
  EXPECT_EQ(session.last_job().stages.at(0).tasks, 3u) << "24 bytes";
}

TEST(settings_in_effect, tasks_are_spread_or_packed) {
  for (const std::string placement : {"spread", "pack", "balance"}) {
    const rendezvous meeting;
    test_cluster cluster{{.master = "local-cluster[2,2,1g]",
                          .conf = {"troupe.scheduler.placement=" + placement, "troupe.executor.cores=2"}}};
    auto session = cluster.make_session();
    const auto meets = [&](const std::string& point, int tasks) {
      background<std::vector<std::int64_t>> job{
          cluster, [&] { return session.range(0, tasks, tasks).map(with(point), fn<meet_here>).collect(); }};
      const auto pids = meeting.await("here", tasks);
      meeting.open("here");
      job.get();
      return std::set<pid_t>{pids.begin(), pids.end()}.size();
    };
    EXPECT_EQ(meets(meeting.directory(), 4), 2u) << "both hosts are needed";
    const rendezvous again;
    background<std::vector<std::int64_t>> job{
        cluster, [&] { return session.range(0, 2, 2).map(with(again.directory()), fn<meet_here>).collect(); }};
    const auto pids = again.await("here", 2);
    const std::set<pid_t> processes{pids.begin(), pids.end()};
    EXPECT_EQ(processes.size(), placement == "pack" ? 1u : 2u) << placement;
    again.open("here");
    EXPECT_EQ(job.get().size(), 2u);
    cluster.check_clean();
  }
}

TEST(settings_in_effect, profiles_get_the_overhead_of_their_own_memory) {
  test_cluster cluster{
      {.master = "local[2]",
       .conf = {"troupe.executor.memory-overhead-factor=0.25", "troupe.executor.min-memory-overhead=64m"}}};
  auto session = cluster.make_session();
  const auto profile = resource_profile_builder{}.require(executor_resource_requests{}.cores(1).memory("512m")).build();
  EXPECT_EQ(session.range(0, 10, 2).with_resources(profile).count(), 10u);
  const auto executors = cluster.executors();
  ASSERT_THAT(executors, Not(IsEmpty()));
  EXPECT_EQ(executors.front().status.info.capacity.memory, 512 << 20);
  EXPECT_EQ(executors.front().status.info.capacity.memory_overhead, 128 << 20);
  cluster.check_clean();
}

// -- looking for resources

/// Without nvidia-smi, whatever the machine has.
class without_gpu : public ::testing::Test {
protected:
  void SetUp() override {
    before_ = std::getenv("PATH");
    setenv("PATH", empty_.path().c_str(), 1);
  }
  void TearDown() override { setenv("PATH", before_.c_str(), 1); }
  testing::temporary_directory empty_;
  std::string before_;
};

TEST_F(without_gpu, discovery_makes_addresses_up_only_where_it_is_told_to) {
  const auto made_up = resources_of_machine(settings_of({"troupe.gpu.discovery=probe-or-fake", "troupe.gpu.fake=3"}));
  ASSERT_TRUE(made_up) << made_up.error().message;
  EXPECT_THAT(made_up->pools.at("gpu").addresses, ElementsAre("fake-0", "fake-1", "fake-2"));
  EXPECT_THAT(made_up->fake, ElementsAre("gpu"));
  const auto none = resources_of_machine(settings_of({"troupe.gpu.discovery=none", "troupe.gpu.fake=3"}));
  ASSERT_TRUE(none) << none.error().message;
  EXPECT_THAT(none->pools, IsEmpty());
}

TEST_F(without_gpu, made_up_addresses_hide_real_ones_where_they_are_wanted) {
  const auto asked = empty_.path() + "/asked";
  fs::create_symlink(script(empty_, "echo >" + asked + "; echo 7, GPU-7"), empty_.path() + "/nvidia-smi");
  const auto made_up = resources_of_machine(settings_of({"troupe.gpu.discovery=fake"}));
  ASSERT_TRUE(made_up) << made_up.error().message;
  EXPECT_THAT(made_up->pools.at("gpu").addresses, ElementsAre("fake-0", "fake-1"));
  EXPECT_FALSE(fs::exists(asked));
}

TEST(settings_in_effect, nothing_is_discovered_where_an_amount_is_a_size_or_zero) {
  testing::temporary_directory folder;
  const auto asked = folder.path() + "/asked";
  const auto found = resources_of_machine(
      settings_of({"troupe.gpu.discovery=none", "troupe.executor.resource.gpu-memory.amount=40g",
                   "troupe.executor.resource.fpga.discovery-script=" + script(folder, "echo >" + asked),
                   "troupe.executor.resource.fpga.amount=0"}));
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_THAT(found->pools, ElementsAre(Pair("gpu-memory", resource_pool{std::int64_t{40} << 30, {}, true})));
  EXPECT_FALSE(fs::exists(asked));
}

TEST(settings_in_effect, what_a_script_finds_less_than_the_default_profile_has_is_noted) {
  testing::temporary_directory folder;
  const auto with_amount = [&](const std::string& amount) {
    auto found =
        resources_of_machine(settings_of({"troupe.gpu.discovery=none", "troupe.executor.resource.fpga.amount=" + amount,
                                          "troupe.executor.resource.fpga.discovery-script=" +
                                              script(folder, "echo '{\"name\": \"fpga\", \"addresses\": [\"f0\"]}'")}));
    EXPECT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->pools.at("fpga").amount, 1) << "others can use it";
    return found->notes;
  };
  EXPECT_THAT(with_amount("2"), ElementsAre(HasSubstr("resource fpga: 1 addresses were found, fewer than the 2 of "
                                                      "troupe.executor.resource.fpga.amount")));
  EXPECT_THAT(with_amount("1"), IsEmpty());
}

TEST(settings_in_effect, a_discovery_script_has_so_much_time) {
  testing::temporary_directory folder;
  const auto found = resources_of_machine(
      settings_of({"troupe.gpu.discovery=none", "troupe.resources.discovery-timeout=50ms",
                   "troupe.executor.resource.fpga.discovery-script=" + script(folder, "exec sleep 600"),
                   "troupe.executor.resource.fpga.amount=1"}));
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message, HasSubstr("50 ms"));
}

// -- logs and folders

TEST(settings_in_effect, logs_have_a_level_for_all_and_one_for_each_actor) {
  testing::temporary_directory folder;
  const auto path = folder.path() + "/x.log";
  {
    const process_log log{settings_of({"troupe.log.level=warn", "troupe.log.level.driver=trace"}), path};
    const auto loggers = log.loggers();
    loggers("executor")->info("an executor's word");
    loggers("executor")->warn("an executor's warning");
    loggers("driver")->trace("a driver's whisper");
    loggers("driver")->flush();
  }
  const auto text = read(path);
  EXPECT_THAT(text, Not(HasSubstr("an executor's word")));
  EXPECT_THAT(text, HasSubstr("an executor's warning"));
  EXPECT_THAT(text, HasSubstr("a driver's whisper"));
}

TEST(settings_in_effect, log_files_are_so_large_and_so_many) {
  testing::temporary_directory folder;
  {
    const process_log log{settings_of({"troupe.log.file-size=64k", "troupe.log.files=2"}), folder.path() + "/x.log"};
    const auto logger = log.loggers()("driver");
    for (int i = 0; i < 400; ++i) logger->info(std::string(1000, 'x'));
  }
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator{folder.path()}) {
    ++files;
    EXPECT_LE(entry.file_size(), 66u << 10) << entry.path();
  }
  EXPECT_EQ(files, 3u) << "the current one and two older ones";
}

TEST(settings_in_effect, the_run_directory_stands_where_it_is_wanted) {
  testing::temporary_directory folder;
  test_cluster cluster{{.conf = {"troupe.run-directory=" + folder.path() + "/here"}}};
  EXPECT_THAT(cluster.app().directory(), StartsWith(folder.path() + "/here/"));
  EXPECT_TRUE(fs::is_directory(cluster.app().directory()));
  cluster.check_clean();
  EXPECT_TRUE(!fs::exists(folder.path() + "/here") || fs::is_empty(folder.path() + "/here"));
}

/// Blocks in files of executors in this process, and of processes.
class blocks_elsewhere : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(masters, blocks_elsewhere, ::testing::Values("local[2]", "local-cluster[1,1,1g]"),
                         [](const auto& at) { return std::string{at.index == 0 ? "in_process" : "processes"}; });

TEST_P(blocks_elsewhere, are_kept_where_they_are_wanted_until_the_session_ends) {
  testing::temporary_directory folder;
  test_cluster cluster{{.master = GetParam(),
                        .conf = {"troupe.local.dir=" + folder.path(), "troupe.memory.storage-fraction=0",
                                 "troupe.task.max-inline-result=1k"}}};
  const auto end = end_of_text_job(cluster, 5000);
  ASSERT_TRUE(end.results) << end.failure.message;
  EXPECT_GE(bytes_of_blocks(folder.path()), 5000u);
  EXPECT_EQ(bytes_of_blocks(cluster.app().directory()), 0u);
  EXPECT_TRUE(cluster.jobs().fetch(end.results->elsewhere.at(0)));
  for (const auto& e : cluster.executors())
    if (!e.status.info.in_process) cluster.kill(e); // its own files are left to the session
  cluster.check_clean();
  EXPECT_THAT(files_below(folder.path()), IsEmpty());
}

TEST_P(blocks_elsewhere, are_dealt_to_all_directories) {
  testing::temporary_directory folder;
  const auto first = folder.path() + "/first";
  const auto second = folder.path() + "/second";
  for (const auto& path : {first, second}) std::filesystem::create_directory(path);
  test_cluster cluster{{.master = GetParam(),
                        .conf = {"troupe.local.dir=" + first + "," + second, "troupe.memory.storage-fraction=0",
                                 "troupe.task.max-inline-result=1k"}}};
  // Of three jobs on at most two executors one of these keeps two results.
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(end_of_text_job(cluster, 5000).results);
  EXPECT_GE(bytes_of_blocks(first), 5000u);
  EXPECT_GE(bytes_of_blocks(second), 5000u);
  cluster.check_clean();
  EXPECT_THAT(files_below(folder.path()), IsEmpty());
}

TEST_P(blocks_elsewhere, do_not_outlive_a_program_that_was_killed) {
  const rendezvous meeting;
  testing::temporary_directory folder;
  const auto blocks = folder.path() + "/blocks";
  meeting.open("map");
  role_process program{"waiting-client",
                       {meeting.directory(), "--master", GetParam(), "--conf",
                        "troupe.run-directory=" + folder.path() + "/run", "--conf", "troupe.local.dir=" + blocks,
                        "--conf", "troupe.memory.storage-fraction=0"}};
  meeting.await("reduce");
  EXPECT_GT(bytes_of_blocks(blocks), 0u);
  program.kill(SIGKILL);
  program.wait();
  if (GetParam() != std::string_view{"local[2]"}) {
    // Executor processes live on for a while, and may be killed by their keepers: the next session removes the rest.
    ASSERT_TRUE(testing::wait_until([&] { return testing::processes_of(folder.path()).empty(); }));
    test_cluster next{{.conf = {"troupe.local.dir=" + blocks}}};
    next.check_clean();
  }
  std::vector<std::string> left;
  EXPECT_TRUE(testing::wait_until([&] { return (left = files_below(blocks)).empty(); })) << left.front();
}

// -- what is shown

TEST(settings_in_effect, progress_is_shown_as_it_is_wanted) {
  testing::temporary_directory folder;
  const auto output = [&](const std::string& how) {
    role_process program{"client",
                         {"--master", "local[2]", "--conf", "troupe.run-directory=" + folder.path() + "/run", "--conf",
                          "troupe.progress=" + how, "10"}};
    EXPECT_EQ(program.wait(), 0);
    return program.output();
  };
  EXPECT_EQ(output("none"), "counted 10\n");
  const auto* const where = "troupe: jobs go to local[2] (--master)\n";
  const auto plain = output("plain");
  EXPECT_THAT(plain, AllOf(HasSubstr("counted 10\n"), HasSubstr("troupe: job 1 "), HasSubstr(where)));
  EXPECT_LT(plain.find(where), plain.find("troupe: job 1 "));
  EXPECT_THAT(output("bar"), AllOf(HasSubstr("counted 10\n"), HasSubstr("job 1 "), Not(HasSubstr("troupe: job 1 ")),
                                   HasSubstr(where)));
}

TEST(settings_in_effect, a_driver_is_known_by_its_name) {
  testing::temporary_directory folder;
  const auto file = folder.path() + "/driver.yaml";
  std::ofstream{file} << "node: {role: driver}\ntroupe.app.name: somebody\n";
  role_process driver{"client", {"--config-file", file, "--conf", "troupe.run-directory=" + folder.path() + "/run"}};
  ASSERT_TRUE(testing::wait_until([&] { return !running_sessions(folder.path() + "/run").empty(); }))
      << driver.output();
  const auto found = choose_session(running_sessions(folder.path() + "/run"), "somebody");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->name, "somebody");
  EXPECT_EQ(found->pid, driver.pid());
  driver.kill(SIGTERM);
  EXPECT_EQ(driver.wait(), 0) << driver.output();
}

// -- addresses

TEST(settings_in_effect, driver_and_executors_listen_where_they_are_told_to) {
  test_cluster cluster{{.master = "local-cluster[1,1,1g]",
                        .conf = {"troupe.driver.bind-address=127.0.0.2", "troupe.executor.bind-address=127.0.0.3"}}};
  ASSERT_TRUE(cluster.app().address());
  EXPECT_EQ(cluster.app().address()->host, "127.0.0.2");
  auto session = cluster.make_session();
  const auto sums = session.range(0, 10, 2)
                        .map([](std::int64_t n) {
                          return std::pair{n % 2, n};
                        })
                        .reduce_by_key(std::plus<>{})
                        .count();
  EXPECT_EQ(sums, 2u);
  const auto executors = cluster.executors();
  ASSERT_THAT(executors, SizeIs(1));
  EXPECT_FALSE(executors[0].status.info.in_process);
  EXPECT_EQ(executors[0].status.info.blocks.host, "127.0.0.3");
  cluster.check_clean();
}

TEST(settings_in_effect, the_driver_takes_the_port_it_is_given_or_says_that_it_is_taken) {
  const testing_transfer::listener taken{1, false};
  const auto port = std::to_string(taken.port());
  try {
    const test_cluster cluster{{.conf = {"troupe.driver.port=" + port}, .published = true}};
    ADD_FAILURE() << "it listens elsewhere";
  } catch (const test_cluster_error& e) {
    EXPECT_THAT(e.what(), HasSubstr("127.0.0.1:" + port));
  }
}

TEST(settings_in_effect, a_client_needs_the_secret_file_of_its_cluster) {
  test_cluster cluster{{.published = true}};
  testing::temporary_directory folder;
  const auto address = cluster.app().address();
  ASSERT_TRUE(address);
  const std::vector<std::string> common{"troupe.master=" + address->host + ":" + std::to_string(address->port),
                                        "troupe.run-directory=" + folder.path() + "/run"};
  auto with = common;
  with.push_back("troupe.security.secret-file=" + cluster.app().secret_file());
  application::options client;
  client.effective = settings_of(with);
  {
    auto good = application::start(client);
    ASSERT_TRUE(good) << good.error().message;
    EXPECT_TRUE((*good)->jobs()->status());
  }
  client.effective = settings_of(common);
  const auto bad = application::start(client);
  ASSERT_FALSE(bad);
  EXPECT_THAT(bad.error().message, HasSubstr("troupe.security.secret-file"));
}

// -- jobs

TEST(settings_in_effect, a_task_may_fail_so_often) {
  test_cluster cluster{{.conf = {"troupe.task.max-failures=2"}}};
  auto session = cluster.make_session();
  try {
    session.range(0, 1, 1)
        .map([](std::int64_t n) -> std::int64_t { throw std::runtime_error{std::to_string(n)}; })
        .count();
    ADD_FAILURE() << "the job succeeded";
  } catch (const job_error& e) {
    EXPECT_THAT(e.what(), HasSubstr("failure 2 of 2 allowed"));
  }
  cluster.check_clean();
}

TEST(settings_in_effect, results_that_come_to_the_driver_are_bounded) {
  test_cluster cluster{{.conf = {"troupe.driver.max-result-size=2k"}}};
  const auto small = end_of_text_job(cluster, 1500);
  EXPECT_TRUE(small.results) << small.failure.message;
  const auto large = end_of_text_job(cluster, 2500);
  EXPECT_EQ(large.failure.code, ec::overloaded);
  EXPECT_THAT(large.failure.message, AllOf(HasSubstr("2048 bytes"), HasSubstr("troupe.driver.max-result-size")));
  cluster.check_clean();
}

TEST(settings_in_effect, so_many_ended_jobs_are_remembered) {
  test_cluster cluster{{.conf = {"troupe.driver.retained-jobs=2"}}};
  auto session = cluster.make_session();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(session.range(0, 1, 1).count(), 1u);
  const auto status = cluster.jobs().status();
  ASSERT_TRUE(status);
  EXPECT_THAT(status->jobs, SizeIs(2));
  cluster.check_clean();
}

TEST(settings_in_effect, blocks_go_to_files_where_no_part_of_the_memory_is_theirs) {
  test_cluster cluster{{.conf = {"troupe.task.max-inline-result=1k", "troupe.memory.fraction=0"}}};
  const auto end = end_of_text_job(cluster, 5000);
  ASSERT_TRUE(end.results) << end.failure.message;
  EXPECT_GE(bytes_of_blocks(cluster.app().directory()), 5000u);
  cluster.jobs().release(end.job);
  cluster.check_clean();
}

TEST(settings_in_effect, blocks_are_compressed_on_request) {
  test_cluster cluster{{.conf = {"troupe.task.max-inline-result=1k", "troupe.memory.storage-fraction=0",
                                 "troupe.io.compression.codec=zstd"}}};
  const auto end = end_of_text_job(cluster, 50'000);
  ASSERT_TRUE(end.results) << end.failure.message;
  ASSERT_THAT(end.results->elsewhere, SizeIs(1));
  const auto bytes = bytes_of_blocks(cluster.app().directory());
  EXPECT_GT(bytes, 0u);
  EXPECT_LT(bytes, 5000u);
  const auto value = cluster.jobs().fetch(end.results->elsewhere[0]);
  ASSERT_TRUE(value);
  EXPECT_GE(value->size(), 50'000u);
  cluster.jobs().release(end.job);
  cluster.check_clean();
}

/// Sockets of block servers in the directory that the cluster's processes on this host share, and ends of connections
/// to them.
std::size_t local_sockets(const test_cluster& cluster) {
  std::ifstream all{"/proc/net/unix"};
  const auto base = std::filesystem::path{cluster.app().directory()}.parent_path().string();
  std::size_t count = 0;
  for (std::string line; std::getline(all, line);)
    if (line.find(base + "/host-" + cluster.app().cluster_id() + "/blocks.") != std::string::npos) ++count;
  return count;
}

TEST(settings_in_effect, blocks_of_the_same_host_are_lent_unless_they_are_to_take_the_network) {
  for (const auto* const way : {"auto", "never"}) {
    test_cluster cluster{
        {.master = "local-cluster[1,1,1g]",
         .conf = {"troupe.task.max-inline-result=1k", std::string{"troupe.transfer.same-host="} + way}}};
    const auto end = end_of_text_job(cluster, 200'000);
    ASSERT_TRUE(end.results) << end.failure.message;
    ASSERT_THAT(end.results->elsewhere, SizeIs(1));
    const auto servers = std::string_view{way} == "auto" ? cluster.executors().size() : 0;
    EXPECT_TRUE(testing::wait_until([&] { return local_sockets(cluster) == servers; })) << local_sockets(cluster);
    const auto value = cluster.jobs().fetch(end.results->elsewhere[0]);
    ASSERT_TRUE(value) << value.error().message;
    EXPECT_GE(value->size(), 200'000u);
    const auto connections = std::string_view{way} == "auto" ? 1u : 0u;
    EXPECT_TRUE(testing::wait_until([&] { return local_sockets(cluster) == servers + connections; }))
        << "the result did not come over the socket, or did though it may not: " << local_sockets(cluster);
    cluster.jobs().release(end.job);
    cluster.check_clean();
  }
}

TEST(settings_in_effect, results_above_a_size_stay_on_their_executor_and_go_to_files_without_memory) {
  test_cluster cluster{{.conf = {"troupe.task.max-inline-result=1k", "troupe.memory.storage-fraction=0"}}};
  const auto small = end_of_text_job(cluster, 500);
  ASSERT_TRUE(small.results) << small.failure.message;
  EXPECT_THAT(small.results->elsewhere, IsEmpty());
  const auto large = end_of_text_job(cluster, 5000);
  ASSERT_TRUE(large.results) << large.failure.message;
  ASSERT_THAT(large.results->elsewhere, SizeIs(1));
  EXPECT_GE(bytes_of_blocks(cluster.app().directory()), 5000u);
  EXPECT_TRUE(cluster.jobs().fetch(large.results->elsewhere[0]));
  cluster.jobs().release(large.job);
  cluster.check_clean();
}

} // namespace
} // namespace troupe::system_tests
