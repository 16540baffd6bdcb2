#include <gmock/gmock-more-matchers.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include <troupe/runtime/execution/publication_list.hpp>
#include <troupe/runtime/execution/staging_root.hpp>
#include <troupe/runtime/execution/staging_roots.hpp>

#include "process_fixture.hpp"
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

TEST_F(staging_roots_test, removes_what_an_earlier_session_has_left_long_ago) {
  staging_roots late{{"s", executor_id{7}, {}, [] { return failure_logs::system_seconds() + 15 * 24 * 3600; }}};
  fs::create_directories(to + "/.troupe/00112233445566aa-1/0.0-1"); // waits
  for (auto* const both : {&roots, &late}) {
    both->install({3}, to);
    const auto root = both->root_of({3});
    ASSERT_TRUE(root) << root.error().message;
    EXPECT_EQ(fs::exists(to + "/.troupe/00112233445566aa-1"), both == &roots);
  }
}

TEST_F(staging_roots_test, makes_a_root_when_it_is_first_asked_for_and_never_again) {
  roots.install({3}, to);
  EXPECT_FALSE(fs::exists(to));
  const auto place = roots.place_for({3}, 5, 1);
  ASSERT_TRUE(place) << place.error().message;
  EXPECT_EQ(*place, place_of("s", {3}, 5, 1, {7}, to));
  EXPECT_TRUE(fs::is_directory(to + "/.troupe/s-3"));
  remove_staging(place->root);
  roots.install({3}, to); // for another attempt of the stage
  EXPECT_EQ(*roots.root_of({3}), to + "/.troupe/s-3");
  EXPECT_FALSE(fs::exists(place->root)) << "the job is over";
}

TEST_F(staging_roots_test, takes_a_root_that_another_executor_has_made) {
  fs::create_directories(to + "/.troupe/s-3/0.0-8");
  roots.install({3}, to);
  EXPECT_TRUE(roots.root_of({3}));
  EXPECT_TRUE(fs::exists(to + "/.troupe/s-3/0.0-8"));
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
  EXPECT_EQ(roots.forget({4}), to + "/.troupe/s-4");
  EXPECT_FALSE(roots.place_for({4}, 0, 0));
}

TEST_F(staging_roots_test, are_noted_from_before_they_are_made_until_they_are_removed) {
  const auto folder = [](const made_folder& f) {
    return "folder " + std::to_string(f.inode) + " " + std::to_string(f.born) + " " + f.path + '\0';
  };
  staging_roots noting{{"s", executor_id{7}, scratch.file("journal-")}};
  noting.install({3}, to);
  EXPECT_FALSE(fs::exists(scratch.file("journal-7")));
  ASSERT_TRUE(noting.root_of({3}));
  const std::vector<made_folder> made{identified(to), identified(scratch.file("made/on")),
                                      identified(scratch.file("made"))};
  const auto noted = "7 " + to + "/.troupe/s-3" + '\0';
  EXPECT_EQ(content_of(scratch.file("journal-7")), noted + folder(made[0]) + folder(made[1]) + folder(made[2]));
  noting.install({4}, scratch.file("made/other"));
  ASSERT_TRUE(noting.root_of({4}));
  const auto root = noting.forget({3});
  ASSERT_TRUE(root);
  noting.remove(*root, true);
  EXPECT_FALSE(fs::exists(scratch.file("made/on")));
  EXPECT_EQ(content_of(scratch.file("journal-7")), "7 " + scratch.file("made/other/.troupe/s-4") + '\0' +
                                                       folder(identified(scratch.file("made"))) +
                                                       folder(identified(scratch.file("made/other"))))
      << "the root of another stage lies in what was made for the first";
  noting.remove(*noting.forget({4}), true);
  EXPECT_FALSE(fs::exists(scratch.file("made")));
  EXPECT_EQ(content_of(scratch.file("journal-7")), "");
  staging_roots cannot{{"s", executor_id{7}, scratch.file("no/folder")}};
  cannot.install({5}, to);
  EXPECT_FALSE(cannot.root_of({5}));
  EXPECT_FALSE(fs::exists(to + "/.troupe")) << "what is not noted is not made";
}

TEST_F(staging_roots_test, go_with_what_waits_of_their_executor_alone) {
  const auto waiting = [&](const char* name) {
    std::ofstream{to + "/.troupe/s-3/" + name} << "text";
    return to + "/.troupe/s-3/" + name;
  };
  roots.install({3}, to);
  ASSERT_TRUE(roots.root_of({3}));
  const auto own = waiting("0.0-7");
  const auto other = waiting("0.0-8");
  const auto root = *roots.forget({3});
  roots.remove(root, false);
  EXPECT_FALSE(fs::exists(own));
  EXPECT_TRUE(fs::exists(other));
  fs::remove(other);
  roots.remove(root, false);
  EXPECT_TRUE(fs::exists(root)) << "others may still work on the stage";
  roots.remove(root, true);
  EXPECT_FALSE(fs::exists(scratch.file("made")));
}

/// As where two executors end one after the other.
TEST_F(staging_roots_test, folders_that_were_not_empty_go_later_unless_they_are_somebody_elses_by_now) {
  roots.install({3}, to);
  ASSERT_TRUE(roots.root_of({3}));
  std::ofstream{to + "/other"} << "of another executor";
  roots.remove(*roots.forget({3}), true);
  EXPECT_TRUE(fs::exists(to));
  fs::remove(to + "/other");
  const auto again = scratch.file("elsewhere");
  roots.install({4}, again);
  ASSERT_TRUE(roots.root_of({4}));
  roots.remove(*roots.forget({4}), true);
  EXPECT_FALSE(fs::exists(scratch.file("made")));
  EXPECT_FALSE(fs::exists(again));

  roots.install({5}, to);
  ASSERT_TRUE(roots.root_of({5}));
  std::ofstream{to + "/output"} << "published";
  roots.remove(*roots.forget({5}), true);
  fs::rename(scratch.file("made"), scratch.file("results")); // so the user has another one of that name
  fs::create_directories(to);
  roots.install({6}, again);
  ASSERT_TRUE(roots.root_of({6}));
  roots.remove(*roots.forget({6}), true);
  EXPECT_TRUE(fs::exists(to)) << "the user's";
}

TEST_F(staging_roots_test, are_made_by_several_at_once) {
  for (std::uint64_t stage = 0; stage < 20; ++stage) {
    roots.install({stage}, to);
    std::vector<std::thread> all;
    for (int i = 0; i < 3; ++i)
      all.emplace_back([&] {
        const auto made = roots.root_of({stage});
        EXPECT_TRUE(made) << made.error().message;
      });
    for (auto& thread : all) thread.join();
    roots.remove(*roots.forget({stage}), true);
    ASSERT_FALSE(fs::exists(scratch.file("made"))) << "whoever of them has made which folder";
  }
}

/// As where a job is cancelled while its first tasks begin.
TEST_F(staging_roots_test, leave_nothing_where_their_stage_is_forgotten_while_several_make_them) {
  for (std::uint64_t stage = 0; stage < 1000; ++stage) {
    roots.install({stage}, to);
    std::atomic<int> begun = 0;
    std::vector<std::thread> all;
    for (int i = 0; i < 2; ++i)
      all.emplace_back([&] {
        for (++begun; begun < 2;) std::this_thread::yield();
        static_cast<void>(roots.root_of({stage}));
      });
    while (!fs::exists(to)) std::this_thread::yield();
    if (const auto root = roots.forget({stage})) roots.remove(*root, true);
    for (auto& thread : all) thread.join();
    ASSERT_FALSE(fs::exists(to)) << "round " << stage;
  }
}

TEST_F(staging_roots_test, put_in_place_first_what_an_earlier_job_has_left_half_published) {
  const staging_place earlier{to + "/.troupe/killed-1", "0.0-7", to};
  fs::create_directories(earlier.path());
  std::ofstream{earlier.path() + "/b"} << "beta";
  ASSERT_EQ(write_publication_list(earlier, {"a", "b"}), 0);
  fs::create_directory(to + "/b");
  roots.install({3}, to);
  const auto blocked = roots.root_of({3});
  ASSERT_FALSE(blocked) << "what it publishes would be replaced later by what is older";
  EXPECT_THAT(blocked.error().message, HasSubstr("a directory is in its place"));
  fs::remove(to + "/b");
  EXPECT_TRUE(roots.root_of({3}));
  EXPECT_EQ(content_of(to + "/b"), "beta");

  const staging_place own{to + "/.troupe/s-3", "0.0-7", to};
  fs::create_directories(own.path());
  std::ofstream{own.path() + "/d"} << "delta";
  ASSERT_EQ(write_publication_list(own, {"c", "d"}), 0);
  roots.install({4}, to);
  EXPECT_TRUE(roots.root_of({4}));
  EXPECT_TRUE(fs::exists(own.path() + "/d")) << "its session is at it";
  fs::rename(own.root, own.root + "-over");
  roots.install({5}, to);
  EXPECT_TRUE(roots.root_of({5}));
  EXPECT_EQ(content_of(to + "/d"), "delta") << "its job is over";
}

TEST_F(staging_roots_test, a_place_that_cannot_be_made_is_named) {
  std::ofstream{to = scratch.file("file")} << "in the way";
  roots.install({3}, to);
  const auto failed = roots.root_of({3});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ec::invalid_argument) << "nor could it be another time";
  EXPECT_THAT(failed.error().message, HasSubstr(to + "/.troupe/s-3"));
  fs::remove(to);
  EXPECT_TRUE(roots.root_of({3})) << "the next attempt tries again";
}

} // namespace
} // namespace troupe::testing_execution
