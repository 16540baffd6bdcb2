#include <troupe/launcher/run_directory.hpp>

#include <filesystem>

#include <gtest/gtest.h>

#include <stdlib.h>
#include <sys/stat.h>

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

TEST_F(run_directories, are_swept_when_nobody_holds_them) {
  const auto held = run_directory::create(base, "held");
  ASSERT_TRUE(held);
  fs::create_directory(base + "/left");
  fs::copy_file(held->path() + "/lock", base + "/left/lock");
  run_directory::sweep(base);
  EXPECT_TRUE(fs::exists(base + "/held"));
  EXPECT_FALSE(fs::exists(base + "/left"));
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

TEST_F(run_directories, below_one_that_others_may_enter_are_refused) {
  fs::create_directory(base);
  fs::permissions(base, fs::perms::all);
  const auto refused = run_directory::create(base, "one");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("troupe.run-directory"), std::string::npos) << refused.error().message;
}

} // namespace
} // namespace troupe
