#include <gmock/gmock-more-matchers.h>

#include <ctime>
#include <fstream>
#include <functional>
#include <thread>

#include <troupe/runtime/execution/output_publication.hpp>
#include <troupe/runtime/execution/publication_list.hpp>
#include <troupe/runtime/execution/staged_outputs.hpp>
#include <troupe/runtime/execution/staging_journal.hpp>
#include <troupe/runtime/execution/staging_root.hpp>

#include "process_fixture.hpp"

namespace troupe::testing_execution {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

class staging_root_test : public ::testing::Test {
protected:
  std::string root(stage_id stage = {1}, const std::string& below = "out/stage") const {
    return staging_root("s", stage, scratch.file(below));
  }
  /// Something that waits for an attempt.
  static std::string wait_in(const std::string& root, attempt_number attempt, executor_id executor) {
    const staging_place place{root, "0." + std::to_string(attempt) + "-" + std::to_string(executor.value), ""};
    std::ofstream{place.path()} << "text";
    return place.path();
  }
  static void make(const std::string& root) {
    const auto made = make_root(root);
    ASSERT_TRUE(made) << made.error().message;
  }

  scratch_directory scratch;
  std::string journal = scratch.file("journal");
};

TEST_F(staging_root_test, is_made_with_what_leads_to_it) {
  EXPECT_THAT(folders_missing_for(root()),
              ElementsAre(made_folder{scratch.file("out/stage")}, made_folder{scratch.file("out")}));
  const auto made = make_root(root());
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_THAT(*made, ElementsAre(identified(scratch.file("out")), identified(scratch.file("out/stage"))));
  const auto again = make_root(root()); // by another executor
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_THAT(*again, IsEmpty());
  EXPECT_TRUE(fs::is_directory(root()));
  EXPECT_THAT(folders_missing_for(root()), IsEmpty());
}

TEST_F(staging_root_test, goes_with_all_that_waits_there) {
  make(root());
  wait_in(root(), 0, {7});
  fs::create_directories(root() + "-over/0.0-7"); // of a process that was killed while it removed one
  remove_staging(root());
  EXPECT_TRUE(fs::is_empty(scratch.file("out/stage")));
  for (const bool by_who_finds_the_journal : {false, true}) {
    make(root());
    wait_in(root(), 0, {7});
    fs::rename(root(), root() + "-over");
    by_who_finds_the_journal ? remove_empty_root(root()) : remove_staging(root());
    EXPECT_TRUE(fs::is_empty(scratch.file("out/stage"))) << "also where only that is left";
  }
}

TEST_F(staging_root_test, goes_with_what_has_waited_there_for_long) {
  constexpr std::int64_t day = 24 * 3600;
  const auto now = std::time(nullptr);
  const auto out = scratch.file("out/stage");
  const auto in = [&](const std::string& name) { return out + "/.troupe/" + name; };
  for (const auto* name :
       {"00112233445566aa-1", "00112233445566aa-2-over", "00112233445566bb-1", "logs-1000", "mine"}) {
    fs::create_directories(in(name));
    wait_in(in(name), 0, {7});
  }
  fs::create_directories(in("00112233445566aa-3")); // of an attempt that may still run
  const auto old = wait_in(in("00112233445566aa-1"), 1, {7});
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours{1000}); // as its command has set it
  const auto names = [&] {
    std::vector<std::string> all;
    for (const auto& entry : fs::directory_iterator{out + "/.troupe"}) all.push_back(entry.path().filename());
    return all;
  };
  remove_stale_staging(out, "00112233445566bb", now + 13 * day);
  EXPECT_THAT(names(), ::testing::SizeIs(6));
  EXPECT_TRUE(fs::exists(old));
  remove_stale_staging(out, "00112233445566bb", now + 15 * day);
  EXPECT_THAT(names(),
              ::testing::UnorderedElementsAre("00112233445566aa-3", "00112233445566bb-1", "logs-1000", "mine"));
}

TEST_F(staging_root_test, leaves_no_folder_that_was_made_for_it_and_is_empty) {
  fs::create_directories(scratch.file("out/stage"));
  const auto known = identified(scratch.file("out/stage"));
  EXPECT_NE(known.inode, 0u);
  EXPECT_FALSE(remove_made_folder(identified(scratch.file("out"))));
  EXPECT_TRUE(remove_made_folder(known));
  EXPECT_FALSE(fs::exists(scratch.file("out/stage")));
  EXPECT_TRUE(remove_made_folder(known)) << "it is not there";
  fs::rename(scratch.file("out"), scratch.file("moved"));
  fs::create_directory(scratch.file("out"));
  EXPECT_TRUE(remove_made_folder(identified(scratch.file("moved"))));
  EXPECT_TRUE(remove_made_folder({scratch.file("out"), 1, 1}));
  EXPECT_TRUE(fs::exists(scratch.file("out"))) << "it is another one";
  EXPECT_TRUE(remove_made_folder({scratch.file("out")}));
  EXPECT_FALSE(fs::exists(scratch.file("out"))) << "it may have been made at any moment";
}

TEST_F(staging_root_test, does_not_lie_behind_a_link) {
  fs::create_directories(scratch.file("out/stage"));
  fs::create_directory(scratch.file("elsewhere"));
  fs::create_directory_symlink(scratch.file("elsewhere"), scratch.file("out/stage/.troupe"));
  const auto failed = make_root(root());
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr(scratch.file("out/stage/.troupe")));
  EXPECT_TRUE(fs::is_empty(scratch.file("elsewhere")));
}

/// Several outputs of an attempt of which the first was moved when somebody was killed.
TEST_F(staging_root_test, never_takes_away_what_is_being_put_in_place) {
  const auto begun = [&](const std::string& in) {
    const staging_place place{in, "0.0-7", scratch.file("out/stage")};
    fs::create_directories(place.path());
    std::ofstream{place.path() + "/b"} << "beta";
    EXPECT_EQ(write_publication_list(place, {"a", "b"}), 0);
    wait_in(in, 1, {7});
  };
  const auto target = scratch.file("out/stage/b");
  const std::vector<std::function<void()>> removals{[&] { remove_own_staging(root(), {7}); },
                                                    [&] { remove_staging(root()); },
                                                    [&] {
                                                      fs::rename(root(), root() + "-over");
                                                      remove_empty_root(root());
                                                    }};
  for (const auto& remove : removals) {
    make(root());
    begun(root());
    fs::create_directory(target); // so it cannot go on
    remove();
    const auto kept = fs::exists(root()) ? root() : root() + "-over";
    EXPECT_EQ(content_of(kept + "/0.0-7/b"), "beta");
    EXPECT_FALSE(fs::exists(kept + "/0.1-7")) << "nobody has begun with that";
    fs::remove(target);
    EXPECT_TRUE(complete_earlier_publications(scratch.file("out/stage"), "another"));
    EXPECT_EQ(content_of(target), "beta");
    fs::remove_all(scratch.file("out"));

    make(root());
    begun(root());
    remove();
    EXPECT_EQ(content_of(target), "beta");
    EXPECT_FALSE(fs::exists(root() + "/0.0-7") || fs::exists(root() + "-over"));
    fs::remove_all(scratch.file("out"));
  }
}

/// Executors make it and end, and the driver removes it, all at once.
TEST_F(staging_root_test, is_made_though_others_remove_it) {
  for (int round = 0; round < 50; ++round) {
    std::vector<std::thread> all;
    for (int i = 0; i < 3; ++i)
      all.emplace_back([&] {
        const auto made = make_root(root());
        EXPECT_TRUE(made) << made.error().message;
        remove_empty_root(root());
        for (const auto* folder : {"out/stage", "out"}) remove_made_folder({scratch.file(folder)});
      });
    all.emplace_back([&] { remove_staging(root()); });
    for (auto& thread : all) thread.join();
    remove_empty_root(root());
    for (const auto* folder : {"out/stage", "out"}) remove_made_folder({scratch.file(folder)});
    ASSERT_FALSE(fs::exists(scratch.file("out"))) << "round " << round;
  }
}

TEST_F(staging_root_test, is_left_to_others_by_an_executor_that_removes_its_own) {
  make(root());
  const auto own = wait_in(root(), 0, {7});
  const auto other = wait_in(root(), 1, {17});
  fs::create_directory(root() + "/0.2-7");
  remove_own_staging(root(), {7});
  EXPECT_FALSE(fs::exists(own) || fs::exists(root() + "/0.2-7"));
  EXPECT_TRUE(fs::exists(other));
  remove_empty_root(root());
  EXPECT_TRUE(fs::exists(other));
  remove_own_staging(root(), {17});
  EXPECT_TRUE(fs::exists(root())) << "others may want to wait there";
  remove_empty_root(root());
  EXPECT_FALSE(fs::exists(root()));
  remove_own_staging(root(), {7});
}

/// What a process that was killed had put aside.
TEST_F(staging_root_test, goes_with_what_was_put_aside) {
  make(root());
  wait_in(root(), 0, {7});
  fs::rename(root() + "/0.0-7", root() + "/over-0.0-7");
  std::ofstream{root() + "/0.list-new"} << "cut";
  remove_own_staging(root(), {7});
  remove_empty_root(root());
  EXPECT_FALSE(fs::exists(root()));
}

TEST_F(staging_root_test, that_cannot_be_made_is_named) {
  std::ofstream{scratch.file("file")} << "in the way";
  const auto failed = make_root(root({1}, "file"));
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr(root({1}, "file")));
}

/// All of a session have ended, or were killed: what was noted is known to who finds the note.
TEST_F(staging_root_test, is_found_by_what_was_noted_of_it) {
  const auto second = root({2}, "out/other");
  const auto one = scratch.file("journal-7");
  const auto other = scratch.file("journal-8");
  auto folders = folders_missing_for(root());
  for (const auto& folder : folders_missing_for(second)) folders.push_back(folder);
  ASSERT_TRUE(write_staging_journal(one, {7}, {root()}, {}));
  ASSERT_TRUE(write_staging_journal(one, {7}, {root(), second}, folders)) << "anew";
  ASSERT_TRUE(write_staging_journal(other, {8}, {root()}, {}));
  for (const auto& path : {root(), second}) make(path);
  wait_in(root(), 0, {7});
  wait_in(root(), 1, {8});
  const auto foreign = wait_in(second, 0, {9}); // of an executor of another session directory
  remove_noted({one, other}, noted::empty_folders);
  EXPECT_TRUE(fs::exists(root() + "/0.1-8"));
  remove_noted({one, other}, noted::own_outputs);
  EXPECT_TRUE(fs::is_empty(root())) << "others work on the stage";
  remove_noted({one, other}, noted::all);
  EXPECT_FALSE(fs::exists(scratch.file("out/stage")));
  EXPECT_TRUE(fs::exists(foreign));
  fs::remove_all(scratch.file("out/other/.troupe"));
  remove_noted({one}, noted::empty_folders);
  EXPECT_FALSE(fs::exists(scratch.file("out")));
  remove_noted({scratch.file("nothing")}, noted::all);
}

TEST_F(staging_root_test, is_the_only_thing_that_a_note_can_remove) {
  const auto victim = scratch.file("precious");
  fs::create_directory(victim);
  std::ofstream{victim + "/0.0-7"} << "text";
  std::ofstream{journal} << "7 " << victim << '\0' << "7 relative/.troupe/s-1" << '\0' << "x " << root() << '\0' << "7"
                         << '\0' << '\0' << "folder 0 0 " << victim << '\0' << "folder 0 0 " << victim << "/0.0-7"
                         << '\0' << "folder 1 1 " << scratch.file("other") << '\0' << "folder " << scratch.file("other")
                         << '\0' << "folder 0 0 " << scratch.file("own");
  fs::create_directory(scratch.file("own"));
  fs::create_directory(scratch.file("other"));
  remove_noted({journal}, noted::all);
  EXPECT_TRUE(fs::exists(victim + "/0.0-7"));
  EXPECT_TRUE(fs::exists(scratch.file("other"))) << "it is another one";
  EXPECT_TRUE(fs::exists(scratch.file("own"))) << "an entry that was cut off may be the beginning of another path";
  EXPECT_FALSE(write_staging_journal(scratch.file("no/folder"), {7}, {root()}, {}));
}

} // namespace
} // namespace troupe::testing_execution
