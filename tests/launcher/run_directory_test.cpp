#include <troupe/launcher/run_directory.hpp>
#include <troupe/runtime/execution/attempts_directories.hpp>
#include <troupe/runtime/execution/staging_journal.hpp>
#include <troupe/runtime/execution/staging_root.hpp>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe {
namespace {

namespace fs = std::filesystem;

class run_directories : public ::testing::Test {
protected:
  void SetUp() override {
    auto pattern = (fs::temp_directory_path() / "run-directories-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    scratch = pattern;
    base = scratch + "/base";
  }
  void TearDown() override { fs::remove_all(scratch); }
  std::string scratch;
  std::string base;
};

TEST_F(run_directories, are_private_and_go_with_their_last_holder) {
  auto first = run_directory::create(base, "one");
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(fs::status(base).permissions(), fs::perms::owner_all);
  EXPECT_EQ(fs::status(first->path()).permissions(), fs::perms::owner_all);
  auto second = run_directory::join(first->path());
  ASSERT_TRUE(second) << second.error().message;
  { const auto gone = std::move(*first); }
  EXPECT_TRUE(fs::exists(base + "/one")) << "somebody still holds it";
  { const auto gone = std::move(*second); }
  EXPECT_FALSE(fs::exists(base + "/one"));
}

TEST_F(run_directories, are_shared_by_who_does_not_know_the_first) {
  auto first = run_directory::share(base, "host");
  ASSERT_TRUE(first) << first.error().message;
  auto second = run_directory::share(base, "host");
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(first->path(), second->path());
  { const auto gone = std::move(*first); }
  EXPECT_TRUE(fs::exists(base + "/host"));
  { const auto gone = std::move(*second); }
  EXPECT_FALSE(fs::exists(base + "/host"));
}

TEST_F(run_directories, are_there_for_everybody_who_shares_them_whoever_comes_and_goes) {
  std::vector<std::thread> all;
  std::atomic<int> missing = 0;
  for (int i = 0; i < 4; ++i)
    all.emplace_back([&, i] {
      for (int round = 0; round < 50; ++round) {
        const auto shared = run_directory::share(base, "host");
        const auto file = base + "/host/" + std::to_string(i);
        if (!shared || !std::ofstream{file} || !fs::exists(file)) ++missing;
      }
    });
  for (auto& one : all) one.join();
  EXPECT_EQ(missing, 0);
  EXPECT_FALSE(fs::exists(base + "/host"));
}

TEST_F(run_directories, are_swept_when_nobody_holds_them) {
  const auto held = run_directory::create(base, "held");
  ASSERT_TRUE(held);
  fs::create_directory(base + "/left");
  fs::copy_file(held->path() + "/lock", base + "/left/lock");
  run_directory::sweep(base);
  EXPECT_TRUE(fs::exists(base + "/held"));
  EXPECT_FALSE(fs::exists(base + "/left"));
}

TEST_F(run_directories, go_with_their_control_groups_and_stay_while_one_is_occupied) {
  // To the functions that remove groups, a directory is one; a file in it keeps it as a process would.
  const auto group = scratch + "/troupe-x";
  fs::create_directories(group + "/executor-1/self");
  std::ofstream{group + "/executor-1/self/process"};
  {
    const auto held = run_directory::create(base, "one");
    ASSERT_TRUE(held);
    std::ofstream{held->path() + "/" + group_list_name} << group << '\n';
  }
  EXPECT_TRUE(fs::exists(base + "/one")) << "nobody would know of the group any more";
  fs::remove(group + "/executor-1/self/process");
  run_directory::sweep(base);
  EXPECT_FALSE(fs::exists(base + "/one"));
  EXPECT_FALSE(fs::exists(group));
}

TEST_F(run_directories, of_others_names_no_groups_to_us) {
  const auto group = scratch + "/troupe-x";
  const auto other = scratch + "/other";
  fs::create_directories(group);
  fs::create_directories(other);
  const auto list = [&](const std::string& name) {
    const auto held = run_directory::create(base, name);
    std::ofstream{held->path() + "/" + group_list_name} << group << '\n' << other << '\n';
    fs::permissions(held->path(), name == "open" ? fs::perms::all : fs::perms::owner_all);
  };
  list("open");
  EXPECT_TRUE(fs::exists(group)) << "anybody can have written the list";
  list("closed");
  EXPECT_FALSE(fs::exists(group));
  EXPECT_TRUE(fs::exists(other)) << "not of a name that we give";
}

/// Outputs that an executor has left in `root`, as the journal of the directory says.
void leave_outputs(const std::string& directory, const char* journal, const std::string& root) {
  ASSERT_TRUE(write_staging_journal(directory + "/" + journal + "7", {7}, {root}, folders_missing_for(root)));
  ASSERT_TRUE(make_root(root));
  std::ofstream{root + "/0.0-7"} << "text";
}

TEST_F(run_directories, go_with_what_waits_of_their_executors) {
  const auto root = scratch + "/out/.troupe/s-1";
  {
    const auto held = run_directory::create(base, "session");
    leave_outputs(held->path(), staging_journal_name, root);
  }
  EXPECT_FALSE(fs::exists(scratch + "/out"));
  {
    const auto held = run_directory::create(base, "by-hand");
    leave_outputs(held->path(), own_staging_journal_name, root);
  }
  EXPECT_TRUE(fs::exists(root + "/0.0-7")) << "its driver may publish it";
  fs::remove_all(scratch + "/out");
  for (const auto* journal : {own_staging_journal_name, staging_journal_name}) {
    fs::create_directory(base + "/killed");
    fs::permissions(base + "/killed", fs::perms::owner_all);
    std::ofstream{base + "/killed/lock"};
    leave_outputs(base + "/killed", journal, root);
    run_directory::sweep(base);
    EXPECT_FALSE(fs::exists(root + "/0.0-7")) << journal;
    EXPECT_EQ(fs::exists(root), journal == own_staging_journal_name) << "others may want to wait there";
    fs::remove_all(scratch + "/out");
  }
}

TEST_F(run_directories, go_with_their_local_directories_wherever_these_lie) {
  const auto disk = scratch + "/disk/" + run_directory::private_name();
  const auto held = run_directory::create(disk, "held");
  for (const auto& directory : {base + "/killed", disk + "/killed", disk + "/other"}) {
    fs::create_directories(directory);
    std::ofstream{directory + "/lock"};
    fs::permissions(directory, fs::perms::owner_all);
  }
  fs::permissions(base, fs::perms::owner_all);
  ASSERT_TRUE(make_attempts_directories(base + "/killed", {disk + "/killed"}, "executor-1"));
  run_directory::sweep(base);
  EXPECT_FALSE(fs::exists(base + "/killed"));
  EXPECT_FALSE(fs::exists(disk + "/killed"));
  EXPECT_TRUE(fs::exists(disk + "/held"));
}

/// Whoever can write to the base could name any directory to us.
TEST_F(run_directories, of_a_base_that_others_may_enter_are_left_alone) {
  const auto victim = scratch + "/lib/" + run_directory::private_name() + "/session";
  for (const auto& directory : {base + "/session", victim}) {
    fs::create_directories(directory);
    fs::permissions(directory, fs::perms::owner_all);
    std::ofstream{directory + "/lock"};
  }
  fs::create_directory_symlink(victim + "/attempts", base + "/session/attempts-x");
  fs::create_directory(victim + "/attempts");
  fs::permissions(base, fs::perms::all);
  run_directory::sweep(base);
  EXPECT_TRUE(fs::exists(base + "/session"));
  fs::permissions(base, fs::perms::owner_all);
  fs::permissions(base + "/session", fs::perms::all);
  run_directory::sweep(base);
  EXPECT_FALSE(fs::exists(base + "/session"));
  EXPECT_TRUE(fs::exists(victim)) << "anybody can have made that link";
  const auto other = scratch + "/lib/other/session";
  fs::create_directories(other + "/attempts");
  std::ofstream{other + "/lock"};
  fs::permissions(scratch + "/lib/other", fs::perms::owner_all);
  fs::create_directories(base + "/session");
  fs::permissions(base + "/session", fs::perms::owner_all);
  std::ofstream{base + "/session/lock"};
  fs::create_directory_symlink(other + "/attempts", base + "/session/attempts-x");
  run_directory::sweep(base);
  EXPECT_TRUE(fs::exists(other)) << "it is not of a name that we give";
}

TEST_F(run_directories, believe_no_journal_that_others_may_write) {
  const auto root = scratch + "/out/.troupe/s-1";
  fs::create_directories(base + "/open");
  fs::permissions(base, fs::perms::owner_all);
  std::ofstream{base + "/open/lock"};
  leave_outputs(base + "/open", staging_journal_name, root);
  fs::permissions(base + "/open", fs::perms::all);
  run_directory::sweep(base);
  EXPECT_FALSE(fs::exists(base + "/open"));
  EXPECT_TRUE(fs::exists(root + "/0.0-7"));
}

TEST_F(run_directories, that_were_never_finished_are_swept_a_minute_later) {
  ASSERT_TRUE(run_directory::create(base, "any"));
  fs::create_directory(base + "/.new-half");
  const auto now = std::time(nullptr);
  run_directory::sweep(base, now);
  EXPECT_TRUE(fs::exists(base + "/.new-half")) << "somebody may be making it";
  run_directory::sweep(base, now + 120);
  EXPECT_FALSE(fs::exists(base + "/.new-half"));
}

TEST_F(run_directories, that_were_never_finished_go_at_once_where_their_maker_is_dead) {
  ASSERT_TRUE(run_directory::create(base, "any"));
  const auto child = ::fork();
  if (child == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  const auto own = base + "/.new-half." + std::to_string(::getpid());
  const auto left = base + "/.new-half." + std::to_string(child);
  for (const auto& path : {own, left, left + ".3"}) fs::create_directory(path);
  const auto now = std::time(nullptr);
  run_directory::sweep(base, now);
  EXPECT_TRUE(fs::exists(left)) << "it may be made in another container";
  run_directory::sweep(base, now + 10);
  EXPECT_TRUE(fs::exists(own));
  EXPECT_FALSE(fs::exists(left));
  EXPECT_FALSE(fs::exists(left + ".3"));
}

/// Sets a variable, until it goes.
class variable {
public:
  variable(const char* name, const std::string& value) : name_(name) {
    if (const char* const given = std::getenv(name)) before_ = given;
    ::setenv(name, value.c_str(), 1);
  }
  ~variable() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }
  variable(const variable&) = delete;
  variable& operator=(const variable&) = delete;

private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST_F(run_directories, lie_where_this_user_has_a_place) {
  const auto own = run_directory::private_name();
  const auto usual = run_directory::temporary_base();
  fs::create_directory(base);
  {
    const variable runtime{"XDG_RUNTIME_DIR", base};
    EXPECT_EQ(run_directory::base_of(""), base + "/troupe");
    if (::geteuid() == 0 && ::chown(base.c_str(), 1, static_cast<gid_t>(-1)) == 0)
      EXPECT_EQ(run_directory::base_of(""), usual) << "another user's";
  }
  {
    const variable runtime{"XDG_RUNTIME_DIR", scratch + "/none"};
    EXPECT_EQ(run_directory::base_of(""), usual);
    const variable temporary{"TMPDIR", scratch};
    if (::access("/tmp", W_OK | X_OK) == 0)
      EXPECT_EQ(run_directory::base_of(""), "/tmp/" + own) << "one for all shells";
  }
  EXPECT_EQ(run_directory::base_of(base), base);
  ASSERT_EQ(::chmod(base.c_str(), 01777), 0);
  EXPECT_EQ(run_directory::base_of(base), base + "/" + own) << "everybody's";
  const auto made = run_directory::create(run_directory::base_of(base), "one");
  EXPECT_TRUE(made) << made.error().message;
}

TEST_F(run_directories, below_one_that_others_may_enter_are_refused) {
  fs::create_directory(base);
  fs::permissions(base, fs::perms::all);
  const auto refused = run_directory::create(base, "one");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("troupe.run-directory"), std::string::npos) << refused.error().message;
}

} // namespace
} // namespace troupe
