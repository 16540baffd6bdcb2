#include <gmock/gmock-more-matchers.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <troupe/runtime/execution/failure_logs.hpp>

#include "elsewhere.hpp"
#include "process_fixture.hpp"

namespace troupe::testing_execution {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;
namespace fs = std::filesystem;

class failure_logs_test : public ::testing::Test {
protected:
  failure_logs_test() { fs::create_directory(attempt); }
  void print(const std::string& on_output, const std::string& on_error, std::int64_t ago = 0) {
    write("/stdout", on_output, ago);
    write("/stderr", on_error, ago);
  }
  /// A new file, as old as it is by the clock of these tests.
  void write(const std::string& name, const std::string& text, std::int64_t ago = 0) {
    fs::remove(attempt + name);
    std::ofstream{attempt + name} << text;
    const std::array<timespec, 2> times{timespec{now - ago, 0}, timespec{now - ago, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, (attempt + name).c_str(), times.data(), 0), 0);
  }
  failure_logs logs(log_limits limits = {}) {
    return failure_logs{"s", limits, [this] { return now; }};
  }
  /// Files that are kept, below the folder of logs.
  std::vector<std::string> all() const {
    std::vector<std::string> names;
    if (!fs::exists(folder)) return names;
    for (const auto& entry : fs::recursive_directory_iterator{folder})
      if (!entry.is_directory()) names.push_back(fs::relative(entry.path(), folder));
    std::sort(names.begin(), names.end());
    return names;
  }

  scratch_directory scratch;
  std::string attempt = scratch.file("attempt");
  std::string out = scratch.file("out/stage");
  std::string folder = scratch.file("out/.troupe/logs");
  std::int64_t now = 1'800'000'000;
};

TEST_F(failure_logs_test, say_why_for_the_whole_job) {
  auto l = logs();
  EXPECT_EQ(l.keep_report(out, {5}, "long ago, in a galaxy"), folder + "/s-5/why.txt");
  EXPECT_EQ(l.keep_report(out, {5}, "why"), folder + "/s-5/why.txt");
  EXPECT_EQ(content_of(folder + "/s-5/why.txt"), "why");
  EXPECT_EQ(fs::status(folder + "/s-5/why.txt").permissions(), fs::perms::owner_read | fs::perms::owner_write);
  // Nothing is written through a link that somebody has put there.
  fs::remove(folder + "/s-5/why.txt");
  std::ofstream{scratch.file("precious")} << "mine";
  fs::create_symlink(scratch.file("precious"), folder + "/s-5/why.txt");
  const auto second = folder + "-" + std::to_string(::geteuid());
  EXPECT_EQ(l.keep_report(out, {5}, "why"), second + "/s-5/why.txt");
  EXPECT_EQ(content_of(scratch.file("precious")), "mine");
  // In the folder of outputs it is kept where logs are kept there.
  for (const auto& place : {folder, second}) {
    fs::remove_all(place);
    std::ofstream{place} << "in its way";
  }
  EXPECT_EQ(l.keep_report(out, {5}, "why"), "");
  EXPECT_FALSE(fs::exists(out + "/.troupe"));
  print("", "no luck");
  EXPECT_NE(l.keep(out, {5}, "1.0.0", attempt).err, "");
  EXPECT_EQ(l.keep_report(out, {5}, "why"), out + "/.troupe/logs/s-5/why.txt");
  EXPECT_EQ(logs({.age = duration::zero()}).keep_report(out, {6}, "why"), "");
  EXPECT_EQ(logs({.bytes = 2}).keep_report(out, {6}, "why"), "");
  EXPECT_FALSE(fs::exists(folder + "/s-6"));
}

TEST_F(failure_logs_test, leave_no_part_of_a_report_where_there_is_no_room) {
  auto l = logs();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto kept = l.keep_report(out, {5}, "why it has failed");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(kept, "");
  EXPECT_TRUE(fs::is_empty(fs::path{folder}.parent_path()));
}

TEST_F(failure_logs_test, are_whole_and_beside_the_outputs) {
  print("printed", std::string(100'000, 'x'));
  auto l = logs();
  const auto kept = l.keep(out, {5}, "1.0.2", attempt);
  EXPECT_EQ(kept.out, folder + "/s-5/1.0.2.out");
  EXPECT_EQ(kept.err, folder + "/s-5/1.0.2.err");
  fs::remove_all(attempt);
  EXPECT_EQ(content_of(kept.out), "printed");
  EXPECT_EQ(content_of(kept.err), std::string(100'000, 'x'));
  struct stat status {};
  ASSERT_EQ(::stat((folder + "/s-5").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0700u) << "what it says may be for nobody else";
}

TEST_F(failure_logs_test, are_copied_from_another_file_system) {
  const elsewhere other{scratch.path()};
  if (other.path.empty()) GTEST_SKIP() << "/dev/shm is no other file system here";
  std::ofstream{other.path + "/stderr"} << "from afar";
  now = failure_logs::system_seconds();
  auto l = logs();
  EXPECT_EQ(content_of(l.keep(out, {5}, "1.0.0", other.path).err), "from afar");
}

TEST_F(failure_logs_test, are_kept_behind_no_link) {
  fs::create_directories(out);
  fs::create_directory(scratch.file("elsewhere"));
  fs::create_directory_symlink(scratch.file("elsewhere"), scratch.file("out/.troupe"));
  print("printed", "");
  EXPECT_EQ(logs().keep(out, {5}, "1.0.0", attempt).out, out + "/.troupe/logs/s-5/1.0.0.out");
  EXPECT_TRUE(fs::is_empty(scratch.file("elsewhere")));
}

TEST_F(failure_logs_test, of_what_was_not_printed_are_not_made) {
  auto l = logs();
  print("", "");
  EXPECT_EQ(l.keep(out, {5}, "1.0.0", attempt).err, "");
  EXPECT_FALSE(fs::exists(scratch.file("out")));
  print("", "text");
  EXPECT_EQ(l.keep(out, {5}, "1.0.0", attempt).out, "");
  EXPECT_THAT(all(), ElementsAre("s-5/1.0.0.err"));
  auto none = logs({.age = duration::zero()});
  EXPECT_EQ(none.keep(out, {5}, "1.0.1", attempt).err, "");
  EXPECT_THAT(all(), ElementsAre("s-5/1.0.0.err"));
}

TEST_F(failure_logs_test, that_cannot_be_kept_say_where_and_why) {
  print("printed", "text");
  fs::create_directories(out);
  for (const auto& folder_of_all : {scratch.file("out/.troupe"), out + "/.troupe"})
    std::ofstream{folder_of_all} << "in its way";
  auto l = logs();
  EXPECT_EQ(l.keep(out, {5}, "1.0.0", attempt).fault, folder + ": Not a directory");
  fs::remove(out + "/.troupe");
  const std::string too_long(300, 'x');
  EXPECT_EQ(l.keep(out, {5}, too_long, attempt).fault, out + "/.troupe/logs: File name too long")
      << "which is not about a place that is somebody else's";
  const scratch_directory other;
  EXPECT_EQ(l.keep(other.file("out/stage"), {5}, too_long, attempt).fault,
            other.file("out/.troupe/logs") + ": File name too long")
      << "of the first place where it is the same everywhere";
  const auto kept = l.keep(out, {5}, "1.0.0", attempt);
  EXPECT_EQ(kept.err, out + "/.troupe/logs/s-5/1.0.0.err");
  EXPECT_EQ(kept.fault, "");
  print("", "");
  EXPECT_EQ(l.keep(out, {5}, "1.0.1", attempt).fault, "") << "there is nothing to keep";
}

TEST_F(failure_logs_test, are_kept_once_where_somebody_was_killed_in_the_middle) {
  print("printed", "");
  logs().keep(out, {5}, "1.0.0", attempt);
  write("/stderr", "text");
  const auto kept = logs().keep(out, {5}, "1.0.0", attempt);
  EXPECT_EQ(kept.fault, "");
  EXPECT_EQ(kept.out, folder + "/s-5/1.0.0.out");
  EXPECT_THAT(all(), ElementsAre("s-5/1.0.0.err", "s-5/1.0.0.out"));
}

TEST_F(failure_logs_test, say_so_where_one_of_them_cannot_be_kept) {
  print("printed", "text");
  fs::create_directories(folder + "/s-5/1.0.0.err");
  const auto kept = logs().keep(out, {5}, "1.0.0", attempt);
  EXPECT_EQ(kept.out, folder + "/s-5/1.0.0.out");
  EXPECT_EQ(kept.err, "");
  EXPECT_THAT(kept.fault, StartsWith(folder + ": "));
}

TEST_F(failure_logs_test, go_when_they_are_old) {
  constexpr std::int64_t day = 24 * 60 * 60;
  auto l = logs();
  print("", "of yesterday", day);
  l.keep(out, {5}, "1.0.0", attempt);
  print("", "older", 14 * day - 1);
  l.keep(out, {5}, "1.0.1", attempt);
  print("", "younger", 0);
  l.keep(out, {6}, "1.0.0", attempt);
  now += 2;
  l.tidy_once(out);
  EXPECT_THAT(all(), ElementsAre("s-5/1.0.0.err", "s-5/1.0.1.err", "s-6/1.0.0.err")) << "it was looked at before";
  auto other = logs();
  other.tidy_once(out);
  EXPECT_THAT(all(), ElementsAre("s-5/1.0.0.err", "s-6/1.0.0.err"));
  now += 20 * day;
  logs().tidy_once(out);
  EXPECT_FALSE(fs::exists(folder));
  EXPECT_TRUE(fs::exists(scratch.file("out")));
}

TEST_F(failure_logs_test, go_when_they_are_too_many_the_oldest_first) {
  auto l = logs({.bytes = 1000});
  print("", std::string(400, 'a'), 30);
  l.keep(out, {5}, "1.0.0", attempt);
  print("", std::string(400, 'b'), 20);
  l.keep(out, {5}, "1.0.1", attempt);
  EXPECT_THAT(all(), ElementsAre("s-5/1.0.0.err", "s-5/1.0.1.err"));
  print("", std::string(400, 'c'), 10);
  l.keep(out, {6}, "1.0.0", attempt);
  EXPECT_THAT(all(), ElementsAre("s-5/1.0.1.err", "s-6/1.0.0.err"));
  print("", std::string(1001, 'd'));
  EXPECT_EQ(l.keep(out, {6}, "1.0.1", attempt).err, "") << "alone it is too much";
  EXPECT_THAT(all(), ElementsAre("s-5/1.0.1.err", "s-6/1.0.0.err"));
  EXPECT_EQ(l.keep(scratch.file("other"), {6}, "1.0.1", attempt).err, "");
  EXPECT_FALSE(fs::exists(scratch.file("other"))) << "no folder is made for nothing";
}

TEST_F(failure_logs_test, of_many_small_failures_are_looked_through_now_and_then) {
  auto l = logs({.bytes = 10'000});
  for (int i = 0; i < 2000; ++i) {
    print("", "0123456789", 2000 - i);
    l.keep(out, {5}, "1." + std::to_string(i) + ".0", attempt);
  }
  EXPECT_LE(all().size(), 1000u + 256u);
  EXPECT_GE(all().size(), 1000u);
}

TEST_F(failure_logs_test, are_never_put_behind_a_link) {
  print("", "text");
  fs::create_directories(scratch.file("elsewhere"));
  auto l = logs();
  for (const auto& link : {scratch.file("out/.troupe"), folder, folder + "/s-5"}) {
    fs::create_directories(fs::path{link}.parent_path());
    fs::create_directory_symlink(scratch.file("elsewhere"), link);
    const auto kept = l.keep(out, {5}, "1.0.0", attempt).err;
    EXPECT_EQ(content_of(kept), "text") << "in another place: " << kept;
    EXPECT_FALSE(kept.starts_with(link + "/")) << kept;
    EXPECT_TRUE(fs::is_empty(scratch.file("elsewhere"))) << link;
    fs::create_directories(scratch.file("elsewhere/logs/old"));
    for (const auto* old : {"elsewhere/logs/old/file", "elsewhere/old"}) {
      std::ofstream{scratch.file(old)} << "the user's";
      fs::last_write_time(scratch.file(old), fs::file_time_type::min());
    }
    logs().tidy_once(out);
    EXPECT_TRUE(fs::exists(scratch.file("elsewhere/logs/old/file")) && fs::exists(scratch.file("elsewhere/old")));
    fs::remove_all(scratch.file("elsewhere"));
    fs::create_directory(scratch.file("elsewhere"));
    fs::remove_all(scratch.file("out"));
  }
}

} // namespace
} // namespace troupe::testing_execution
