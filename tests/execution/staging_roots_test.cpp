#include <gmock/gmock-more-matchers.h>

#include <filesystem>
#include <fstream>

#include <troupe/runtime/execution/staging_root.hpp>
#include <troupe/runtime/execution/staging_roots.hpp>

#include "runner_fixture.hpp"

namespace troupe::testing_execution {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class staging_roots_test : public ::testing::Test {
protected:
  scratch_directory scratch;
  std::string to = scratch.file("made/on/demand");
  staging_roots roots{{"s", executor_id{7}}};
};

TEST_F(staging_roots_test, makes_a_root_when_it_is_first_asked_for_and_never_again) {
  roots.install({3}, to);
  EXPECT_FALSE(fs::exists(to));
  const auto place = roots.place_for({3}, 5, 1);
  ASSERT_TRUE(place) << place.error().message;
  EXPECT_EQ(*place, place_of("s", {3}, 5, 1, {7}, to));
  EXPECT_TRUE(fs::is_directory(to + "/.troupe-s-3"));
  remove_staging(place->root);
  roots.install({3}, to); // for another attempt of the stage
  EXPECT_EQ(*roots.root_of({3}), to + "/.troupe-s-3");
  EXPECT_FALSE(fs::exists(place->root)) << "the job is over";
}

TEST_F(staging_roots_test, takes_a_root_that_another_executor_has_made) {
  fs::create_directories(to + "/.troupe-s-3/0.0-8");
  roots.install({3}, to);
  EXPECT_TRUE(roots.root_of({3}));
  EXPECT_TRUE(fs::exists(to + "/.troupe-s-3/0.0-8"));
}

TEST_F(staging_roots_test, a_stage_that_is_not_known_gets_none) {
  EXPECT_EQ(roots.forget({3}), std::nullopt);
  roots.install({3}, to);
  EXPECT_EQ(roots.forget({3}), std::nullopt) << "none was made";
  const auto late = roots.root_of({3});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ec::cancelled);
  EXPECT_FALSE(fs::exists(to));
  roots.install({4}, to);
  ASSERT_TRUE(roots.root_of({4}));
  EXPECT_EQ(roots.forget({4}), (made_root{to + "/.troupe-s-4", {to, scratch.file("made/on"), scratch.file("made")}}));
  EXPECT_FALSE(roots.place_for({4}, 0, 0));
}

TEST_F(staging_roots_test, are_noted_before_they_are_made) {
  const auto journal = scratch.file("journal");
  staging_roots noting{{"s", executor_id{7}, journal}};
  noting.install({3}, to);
  EXPECT_FALSE(fs::exists(journal));
  ASSERT_TRUE(noting.root_of({3}));
  EXPECT_EQ(content_of(journal), "7 " + to + "/.troupe-s-3" + '\0' + "folder " + to + '\0' + "folder " +
                                     scratch.file("made/on") + '\0' + "folder " + scratch.file("made") + '\0');
  staging_roots cannot{{"s", executor_id{7}, scratch.file("no/folder")}};
  cannot.install({4}, to);
  EXPECT_FALSE(cannot.root_of({4}));
  EXPECT_FALSE(fs::exists(to + "/.troupe-s-4")) << "what is not noted is not made";
}

TEST_F(staging_roots_test, a_place_that_cannot_be_made_is_named) {
  std::ofstream{to = scratch.file("file")} << "in the way";
  roots.install({3}, to);
  const auto failed = roots.root_of({3});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ec::io);
  EXPECT_THAT(failed.error().message, HasSubstr(to + "/.troupe-s-3"));
  fs::remove(to);
  EXPECT_TRUE(roots.root_of({3})) << "the next attempt tries again";
}

} // namespace
} // namespace troupe::testing_execution
