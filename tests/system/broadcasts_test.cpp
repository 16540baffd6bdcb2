// Broadcasts between real processes.

#include <atomic>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/runtime/api/resource_profile_builder.hpp>
#include <troupe/runtime/api/session.hpp>
#include <troupe/tests/system/rendezvous.hpp>
#include <troupe/tests/system/roles.hpp>

namespace troupe::system_tests {
namespace {

namespace fs = std::filesystem;
using ::testing::Each;
using ::testing::SizeIs;

/// Copies of broadcasts in the directory that the processes of a cluster share below `base`.
std::size_t copies_below(const std::string& base) {
  std::size_t copies = 0;
  std::error_code gone; // what is being removed at this moment
  for (fs::recursive_directory_iterator entry{base, fs::directory_options::skip_permission_denied, gone}, end;
       !gone && entry != end; entry.increment(gone)) {
    const auto name = entry->path().filename().string();
    if (name.starts_with("broadcast.") && !name.ends_with(".lock")) ++copies;
  }
  return copies;
}

std::string large_text() {
  std::string text;
  for (int i = 0; text.size() < 3'000'000; ++i) text += std::to_string(i) + ' ';
  return text;
}

/// Reads the value in so many tasks, which all run at the same time. @returns their processes
std::set<pid_t> read_at_once(session& session, const broadcast<std::string>& handle, std::uint32_t tasks,
                             const resource_profile& profile = {}) {
  const rendezvous meeting;
  auto read = std::async(std::launch::async, [&] {
    return session.range(0, tasks, tasks)
        .map(with(handle, meeting.directory()),
             [](const auto& text, const std::string& where, std::int64_t) {
               const auto size = text->size();
               arrive(where, "read");
               return size;
             })
        .with_resources(profile)
        .collect();
  });
  const auto arrived = meeting.await("read", tasks);
  meeting.open("read");
  EXPECT_THAT(read.get(), Each(handle->size()));
  return {arrived.begin(), arrived.end()};
}

class broadcasts_of_a_cluster : public ::testing::TestWithParam<const char*> {};

TEST_P(broadcasts_of_a_cluster, reach_every_executor_and_are_dropped_with_the_last_handle) {
  test_cluster cluster{
      {.master = "local-cluster[2,1,1g]", .conf = {std::string{"troupe.transfer.same-host="} + GetParam()}}};
  const auto base = fs::path{cluster.app().directory()}.parent_path().string();
  auto session = cluster.make_session();
  std::optional handle = session.broadcast(large_text());
  EXPECT_EQ(copies_below(base), 1u);
  EXPECT_THAT(read_at_once(session, *handle, 2), SizeIs(2));
  EXPECT_EQ(copies_below(base), 1u) << "that of the program, which is on the same host";
  EXPECT_THAT(read_at_once(session, *handle, 2), SizeIs(2)) << "in another job";
  handle.reset();
  EXPECT_TRUE(testing::wait_until([&] { return copies_below(base) == 0; }));
  cluster.check_clean();
}
INSTANTIATE_TEST_SUITE_P(same_host, broadcasts_of_a_cluster, ::testing::Values("auto", "never"),
                         [](const auto& param) { return std::string{param.param}; });

/// A text that counts how often this process has decoded it.
struct counted_text {
  std::string text;
  static inline std::atomic<int> decoded = 0;
};
template <class Archive>
void troupe_serialize(Archive& archive, counted_text& t) {
  archive(t.text);
  if constexpr (std::is_same_v<Archive, decoder>) ++counted_text::decoded;
}

TEST(large_captures, are_broadcasts) {
  test_cluster cluster{{.master = "local-cluster[2,2,1g]"}};
  const auto base = fs::path{cluster.app().directory()}.parent_path().string();
  auto session = cluster.make_session();
  std::optional decoded =
      session.range(0, 40, 40).map(with(counted_text{large_text()}), [](const counted_text& t, std::int64_t) {
        return std::pair{t.text.size(), counted_text::decoded.load()};
      });
  EXPECT_EQ(copies_below(base), 1u);
  EXPECT_THAT(decoded->collect(), Each(::testing::Pair(large_text().size(), 1)));
  decoded.reset();
  EXPECT_TRUE(testing::wait_until([&] { return copies_below(base) == 0; }));
  cluster.check_clean();
}

TEST(broadcasts_of_one_process, are_the_very_value) {
  test_cluster cluster{{.master = "local[2]"}};
  auto session = cluster.make_session();
  const auto handle = session.broadcast(large_text());
  const auto addresses =
      session.range(0, 4, 4)
          .map(with(handle),
               [](const auto& text, std::int64_t) { return reinterpret_cast<std::uintptr_t>(text->data()); })
          .collect();
  EXPECT_THAT(addresses, Each(reinterpret_cast<std::uintptr_t>(handle->data())));
}

/// A driver in this process, and executors that were started by hand on what they take for another host: they share
/// nothing with the driver's.
class broadcasts_to_another_host : public ::testing::Test {
protected:
  broadcasts_to_another_host() {
    settings_builder builder{"/"};
    for (const auto& assignment : {std::string{"troupe.progress=none"}, "troupe.run-directory=" + here()})
      if (auto taken = builder.add_argument(assignment); !taken) throw test_cluster_error(taken.error().message);
    application::options opts;
    opts.effective = *builder.build();
    opts.by_hand = true;
    auto started = application::start(std::move(opts));
    if (!started) throw test_cluster_error(started.error().message);
    app = std::move(*started);
    for (const auto* name : {"one", "two"}) {
      auto own = run_directory::create(there(), name);
      if (!own) throw test_cluster_error(own.error().message);
      executors.push_back(std::make_unique<role_process>(
          "executor", std::vector<std::string>{to_string(*app->address()), app->cluster_id(), app->secret_file(),
                                               own->path(), name, "127.0.0.1"}));
      directories.push_back(std::move(*own));
    }
    testing::wait_until([&] {
      const auto status = app->jobs()->status();
      return status && status->executors.size() == 2;
    });
  }
  std::string here() const { return base.path() + "/here"; }
  std::string there() const { return base.path() + "/there"; }
  static resource_profile half_an_executor() {
    return resource_profile_builder{}
        .require(executor_resource_requests{}.cores(2).memory("64m"))
        .require(task_resource_requests{}.cpus(1))
        .build();
  }

  testing::temporary_directory base;
  std::unique_ptr<application> app;
  std::vector<run_directory> directories;
  std::vector<std::unique_ptr<role_process>> executors;
};

TEST_F(broadcasts_to_another_host, are_copied_there_once) {
  {
    session session{app->jobs(), app->make_session_options()};
    std::optional handle = session.broadcast(large_text());
    EXPECT_EQ(copies_below(here()), 1u);
    EXPECT_EQ(copies_below(there()), 0u);
    EXPECT_THAT(read_at_once(session, *handle, 4, half_an_executor()), SizeIs(2));
    EXPECT_EQ(copies_below(there()), 1u);
    handle.reset();
    EXPECT_TRUE(testing::wait_until([&] { return copies_below(here()) == 0; }));
    EXPECT_TRUE(testing::wait_until([&] { return copies_below(there()) == 0; })) << "executors are told";
  }
  app.reset();
  for (auto& executor : executors) EXPECT_EQ(executor->wait(), 0) << executor->output();
  directories.clear();
  EXPECT_TRUE(fs::is_empty(there())) << "what the executors shared goes with the last of them";
}

TEST_F(broadcasts_to_another_host, of_a_client_go_with_it) {
  {
    settings_builder builder{"/"};
    for (const auto& assignment :
         {"troupe.master=" + to_string(*app->address()), "troupe.security.secret-file=" + app->secret_file(),
          "troupe.run-directory=" + base.path() + "/client"})
      if (auto taken = builder.add_argument(assignment); !taken) throw test_cluster_error(taken.error().message);
    application::options opts;
    opts.effective = *builder.build();
    auto client = application::start(std::move(opts));
    ASSERT_TRUE(client) << client.error().message;
    session session{(*client)->jobs(), (*client)->make_session_options()};
    const auto handle = session.broadcast(large_text());
    EXPECT_THAT(read_at_once(session, handle, 4, half_an_executor()), SizeIs(2));
    EXPECT_EQ(copies_below(there()), 1u);
    (*client).reset(); // it does not come to withdraw it
  }
  EXPECT_TRUE(testing::wait_until([&] { return copies_below(there()) == 0; }));
  app.reset();
  for (auto& executor : executors) EXPECT_EQ(executor->wait(), 0) << executor->output();
}

} // namespace
} // namespace troupe::system_tests
