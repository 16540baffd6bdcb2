// What users meet in practice: each has an outcome that docs/bad-input.md states. With real processes.

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <sched.h>
#include <sys/mount.h>

#include <troupe/runtime/api/job_error.hpp>
#include <troupe/runtime/api/session.hpp>
#include <troupe/tests/system/rendezvous.hpp>

namespace troupe::system_tests {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

template <class Action>
std::string message_of(Action action) {
  try {
    action();
  } catch (const job_error& e) {
    return e.what();
  }
  return "no error";
}

/// A directory that a few megabytes fill; only this test and the processes that it starts see it.
class small_disk {
public:
  explicit small_disk(const std::string& path) {
    is_there_ = ::unshare(CLONE_NEWNS) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                ::mount("tmpfs", path.c_str(), "tmpfs", 0, "size=16m") == 0;
    if (is_there_) path_ = path;
  }
  ~small_disk() {
    if (is_there_) ::umount2(path_.c_str(), MNT_DETACH);
  }
  small_disk(const small_disk&) = delete;
  small_disk& operator=(const small_disk&) = delete;

  bool is_there() const noexcept { return is_there_; }

private:
  bool is_there_ = false;
  std::string path_;
};

test_cluster::options two_executors(std::vector<std::string> conf = {}, const std::string& memory = "128m") {
  conf.insert(conf.begin(), "troupe.executor.memory=" + memory);
  return {.master = "local-cluster[2,1," + memory + "]", .conf = std::move(conf)};
}

dataset<std::pair<std::int64_t, std::string>> pairs(session& in, std::int64_t count, std::int64_t size) {
  return in.range(0, count, 4).map(with(size), [](std::int64_t bytes, std::int64_t n) {
    return std::pair{n, std::string(static_cast<std::size_t>(bytes), static_cast<char>(n))};
  });
}

TEST(bad_input, empty_datasets_pass_through_everything) {
  test_cluster cluster{two_executors()};
  auto session = cluster.make_session();
  const auto nothing = session.parallelize(std::vector<std::int64_t>{}, 3);
  EXPECT_THAT(nothing.collect(), IsEmpty());
  EXPECT_THAT(nothing.sorted().collect(), IsEmpty());
  EXPECT_EQ(nothing.reduce([](std::int64_t a, std::int64_t b) { return a + b; }), std::nullopt);
  const auto keyed = nothing.map([](std::int64_t n) { return std::pair{n, n}; });
  EXPECT_EQ(keyed.group_by_key(2).count(), 0u);
  EXPECT_EQ(keyed.reduce_by_key(std::plus<>{}, 2).count(), 0u);
  EXPECT_EQ(keyed.join(keyed, 2).count(), 0u);
  EXPECT_EQ(keyed.cache().count(), 0u);
  cluster.check_clean();
}

TEST(bad_input, records_larger_than_any_chunk_arrive_whole) {
  // Of three records: all as they are, two as blocks, one as the page it came in and one as a page that is written.
  test_cluster cluster{
      two_executors({"troupe.reducer.max-size-in-flight=64k", "troupe.transfer.same-host=never"}, "256m")};
  auto session = cluster.make_session();
#if defined(__SANITIZE_THREAD__) // which takes several bytes for each
  constexpr std::int64_t size = 4'000'000;
#else
  constexpr std::int64_t size = 15'000'000;
#endif
  const auto sizes = pairs(session, 4, size)
                         .group_by_key(2)
                         .map([](const std::pair<std::int64_t, std::vector<std::string>>& group) {
                           const auto& text = group.second.at(0);
                           const bool right = text == std::string(text.size(), static_cast<char>(group.first));
                           return right ? static_cast<std::int64_t>(text.size()) : 0;
                         })
                         .collect();
  EXPECT_EQ(sizes, std::vector<std::int64_t>(4, size));
  cluster.check_clean();
}

TEST(bad_input, one_giant_key_is_grouped_where_it_fits) {
  test_cluster cluster{two_executors()};
  auto session = cluster.make_session();
  const auto groups = session.range(0, 200'000, 4)
                          .map([](std::int64_t n) {
                            return std::pair{std::string{"all"}, n};
                          })
                          .group_by_key(2)
                          .map([](const auto& group) { return group.second.size(); })
                          .collect();
  EXPECT_EQ(groups, std::vector<std::size_t>{200'000});
  cluster.check_clean();
}

TEST(bad_input, functions_that_throw_fail_the_job_with_what_they_said) {
  test_cluster cluster{two_executors()};
  auto session = cluster.make_session();
  const auto bad = session.range(0, 8, 8).map([](std::int64_t n) {
    if (n == 5) throw std::runtime_error("five is right out");
    return n;
  });
  EXPECT_THAT(message_of([&] { bad.count(); }), AllOf(HasSubstr("partition 5"), HasSubstr("five is right out")));
  EXPECT_EQ(session.range(0, 8, 8).count(), 8u) << "the session goes on";
  cluster.check_clean();
}

TEST(bad_input, files_that_go_while_their_job_runs_fail_it_after_some_attempts) {
  testing::temporary_directory directory;
  const auto path = directory.path() + "/a";
  std::ofstream{path} << "one\ntwo\n";
  test_cluster cluster{two_executors({"troupe.task.max-failures=3"})};
  auto session = cluster.make_session();
  const auto lines = session.text_files(path);
  EXPECT_EQ(lines.count(), 2u);
  fs::resize_file(path, 4);
  EXPECT_THAT(message_of([&] { lines.count(); }), HasSubstr("'" + path + "' has shrunk while the job read it"));
  EXPECT_EQ(session.last_job().stages.at(0).failures, 3u);
  fs::remove(path);
  fs::create_directory(path);
  EXPECT_THAT(message_of([&] { lines.count(); }), HasSubstr("cannot read '" + path + "': Is a directory"));
  EXPECT_EQ(session.last_job().stages.at(0).failures, 3u);
  cluster.check_clean();
}

TEST(bad_input, a_full_disk_fails_the_job_with_the_reason) {
  testing::temporary_directory directory;
  const small_disk disk{directory.path()};
  if (!disk.is_there()) GTEST_SKIP() << "this process may not mount anything";
  {
    test_cluster cluster{two_executors({"troupe.local.dir=" + directory.path()})};
    auto session = cluster.make_session();
    EXPECT_THAT(message_of([&] { pairs(session, 4'000, 100'000).group_by_key(4).count(); }),
                AllOf(HasSubstr("No space left on device"), HasSubstr(directory.path())));
    EXPECT_EQ(session.range(0, 8, 8).count(), 8u) << "the session goes on";
    cluster.check_clean();
  }
  for (const auto& user : fs::directory_iterator{directory.path()})
    EXPECT_TRUE(fs::is_empty(user.path())) << "nothing of the session is left";
  test_cluster cluster{two_executors()};
  auto session = cluster.make_session();
  const auto lines = session.range(0, 400, 4).map([](std::int64_t) { return std::string(100'000, 'x'); });
  EXPECT_THAT(message_of([&] { lines.save_as_text(directory.path() + "/out"); }),
              AllOf(HasSubstr("No space left on device"), HasSubstr(directory.path() + "/out")));
  EXPECT_FALSE(fs::exists(directory.path() + "/out"));
  // What an attempt that fails has written makes way for the next one: there is room for one of them.
  const auto twice =
      session.range(0, 101, 1).map(with(directory.path() + "/was-here"), [](const std::string& mark, std::int64_t n) {
        if (n == 100 && fs::create_directory(mark)) throw std::runtime_error("not yet");
        return std::string(100'000, 'x');
      });
  twice.save_as_text(directory.path() + "/out");
  EXPECT_EQ(fs::file_size(directory.path() + "/out/part-00000"), 101u * 100'001);
  cluster.check_clean();
}

TEST(bad_input, blocks_that_are_damaged_on_disk_are_made_again) {
  const rendezvous meeting;
  testing::temporary_directory directory;
  test_cluster cluster{two_executors({"troupe.local.dir=" + directory.path()})};
  auto session = cluster.make_session();
  auto sizes = std::async(std::launch::async, [&] {
    return session.range(0, 3'000, 30)
        .map(with(meeting.directory()),
             [](const std::string& where, std::int64_t n) {
               if (n == 2'999) arrive(where, "last");
               return std::pair{n, std::string(100'000, static_cast<char>(n))};
             })
        .group_by_key(4)
        .map([](const std::pair<std::int64_t, std::vector<std::string>>& group) {
          const auto& text = group.second.at(0);
          return text == std::string(100'000, static_cast<char>(group.first)) ? 1 : 0;
        })
        .reduce([](int a, int b) { return a + b; });
  });
  meeting.await("last");
  int damaged = 0;
  std::error_code gone; // some files live for a moment only
  for (fs::recursive_directory_iterator entry{directory.path(), gone}, end; !gone && entry != end && damaged < 3;
       entry.increment(gone)) {
    std::error_code unknown;
    if (!entry->is_regular_file(unknown)) continue;
    const auto size = entry->file_size(unknown);
    if (unknown || size < 100'000) continue;
    std::fstream file{entry->path(), std::ios::in | std::ios::out | std::ios::binary};
    file.seekp(static_cast<std::streamoff>(size / 2));
    if (file << "damaged") ++damaged;
  }
  EXPECT_EQ(damaged, 3) << "300 MB do not fit in memory";
  meeting.open("last");
  EXPECT_EQ(sizes.get(), 3'000);
  EXPECT_GT(session.last_job().stages.at(0).attempt, 0u) << "some map tasks ran again";
  cluster.check_clean();
}

} // namespace
} // namespace troupe::system_tests
