#include <gmock/gmock-more-matchers.h>

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <stdexcept>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <troupe/runtime/execution/output_publication.hpp>
#include <troupe/runtime/execution/publication_list.hpp>
#include <troupe/runtime/execution/staged_outputs.hpp>
#include <troupe/runtime/execution/staging_root.hpp>

#include "as_anybody.hpp"
#include "elsewhere.hpp"
#include "process_fixture.hpp"

namespace troupe::testing_execution {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

class staging : public ::testing::Test {
protected:
  staging() {
    fs::create_directory(from);
    make("a", "alpha");
    make("b", "beta");
    fs::create_directories(place().root);
  }
  void make(const std::string& name, const std::string& text) {
    fs::create_directories(fs::path{from + "/" + name}.parent_path());
    std::ofstream{from + "/" + name} << text;
  }
  staging_place place(attempt_number attempt = 0, executor_id executor = {7}, partition_index partition = 3) const {
    return place_of("session", {12}, partition, attempt, executor, to);
  }
  /// What `publish_staged` says of an attempt that was staged.
  published publish(const std::vector<std::string>& names, attempt_number attempt = 0) {
    const auto staged = stage_outputs(from, place(attempt), names);
    if (!staged) return {publication_outcome::failed, staged.error().message};
    return publish_staged(place(attempt), names);
  }
  std::string at(const std::string& name) const { return content_of(to + "/" + name); }
  /// All that lies below the output directory, but the root.
  std::vector<std::string> all() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator{to})
      if (entry.path() != place().root && entry.path() != to + "/.troupe")
        names.push_back(fs::relative(entry.path(), to));
    std::sort(names.begin(), names.end());
    return names;
  }

  scratch_directory scratch;
  std::string from = scratch.file("attempt");
  std::string to = scratch.file("out");
};

TEST_F(staging, outputs_wait_until_they_are_published) {
  make("sub/c", "gamma");
  const std::vector<std::string> names{"a", "b", "sub/c"};
  const auto bytes = stage_outputs(from, place(), names);
  ASSERT_TRUE(bytes) << bytes.error().message;
  EXPECT_EQ(*bytes, 14u);
  EXPECT_EQ(place().path(), to + "/.troupe/session-12/3.0-7");
  EXPECT_EQ(content_of(place().path() + "/sub/c"), "gamma");
  EXPECT_FALSE(fs::exists(from + "/a"));
  EXPECT_FALSE(fs::exists(to + "/a"));
  EXPECT_EQ(publish_staged(place(), names), published{});
  EXPECT_EQ(at("a") + at("b") + at("sub/c"), "alphabetagamma");
  EXPECT_THAT(all(), ElementsAre("a", "b", "sub", "sub/c"));
  EXPECT_TRUE(fs::is_empty(place().root));
}

TEST_F(staging, a_single_output_takes_the_place_itself) {
  make("sub/c", "gamma");
  ASSERT_TRUE(stage_outputs(from, place(), {"sub/c"}));
  EXPECT_EQ(content_of(place().path()), "gamma");
  EXPECT_FALSE(fs::exists(to + "/sub"));
  EXPECT_EQ(publish_staged(place(), {"sub/c"}), published{});
  EXPECT_THAT(all(), ElementsAre("sub", "sub/c"));
  EXPECT_TRUE(fs::is_empty(place().root));
}

TEST_F(staging, replaces_what_an_earlier_attempt_has_published) {
  EXPECT_EQ(publish({"a"}, 0), published{});
  make("a", "newer");
  EXPECT_EQ(publish({"a"}, 1), published{});
  EXPECT_EQ(at("a"), "newer");
  EXPECT_THAT(all(), ElementsAre("a"));
}

TEST_F(staging, a_missing_output_is_named_and_nothing_is_staged) {
  const auto failed = stage_outputs(from, place(), {"a", "absent"});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ec::not_found);
  EXPECT_THAT(failed.error().message, HasSubstr("'absent'"));
  EXPECT_THAT(all(), IsEmpty());
  EXPECT_TRUE(fs::exists(from + "/a"));
}

TEST_F(staging, only_regular_files_count) {
  fs::create_symlink("/etc/passwd", from + "/link");
  fs::create_directory(from + "/directory");
  EXPECT_FALSE(stage_outputs(from, place(), {"link"}));
  EXPECT_FALSE(stage_outputs(from, place(), {"directory"}));
}

TEST_F(staging, takes_outputs_out_of_folders_that_are_read_only) {
  fs::permissions(scratch.path(), fs::perms::all);
  fs::permissions(place().root, fs::perms::all);
  const as_anybody here;
  const auto own = scratch.file("of-anybody");
  fs::create_directories(own + "/sub");
  std::ofstream{own + "/sub/c"} << "gamma";
  for (const auto& folder : {own + "/sub", own}) fs::permissions(folder, fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_TRUE(stage_outputs(own, place(), {"sub/c"}));
  EXPECT_EQ(content_of(place().path()), "gamma");
}

TEST_F(staging, says_what_no_other_attempt_would_change) {
  fs::permissions(scratch.path(), static_cast<fs::perms>(0755));
  fs::permissions(place().root, static_cast<fs::perms>(0555));
  {
    const as_anybody here;
    const auto failed = stage_outputs(from, place(), {"a"});
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, ec::refused) << failed.error().message;
  }
  fs::permissions(place().root, static_cast<fs::perms>(0755));
}

TEST_F(staging, takes_nothing_from_behind_a_link) {
  fs::create_directory(scratch.file("data"));
  std::ofstream{scratch.file("data/c")} << "the user's";
  fs::create_directory_symlink(scratch.file("data"), from + "/sub");
  const auto failed = stage_outputs(from, place(), {"sub/c"});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ec::invalid_argument);
  EXPECT_THAT(failed.error().message, HasSubstr("lies behind a link"));
  EXPECT_EQ(content_of(scratch.file("data/c")), "the user's");
}

TEST_F(staging, nothing_leaves_the_output_directory) {
  for (const auto* name : {"/etc/x", "../x", "sub/../../x", "", "a/", "./a", "stdout", "stderr", ".troupe-x"}) {
    const auto failed = stage_outputs(from, place(), {name});
    ASSERT_FALSE(failed) << name;
    EXPECT_EQ(failed.error().code, ec::invalid_argument) << name;
  }
  std::ofstream{place().root + "/x"} << "of another attempt";
  fs::create_directory(place().path());
  EXPECT_EQ(publish_staged(place(), {"../x", "a"}).outcome, publication_outcome::failed);
  std::ofstream{place().path()} << "of this one";
  EXPECT_EQ(publish_staged(place(), {"../session-12/x"}).outcome, publication_outcome::failed);
  EXPECT_EQ(content_of(place().root + "/x"), "of another attempt");
}

TEST_F(staging, all_or_none_where_a_directory_is_in_the_way) {
  fs::create_directories(to + "/b");
  ASSERT_TRUE(stage_outputs(from, place(), {"a", "b"}));
  const auto end = publish_staged(place(), {"a", "b"});
  EXPECT_EQ(end.outcome, publication_outcome::failed);
  EXPECT_THAT(end.reason, HasSubstr("output 'b' as " + to + "/b: a directory is in its place"));
  EXPECT_THAT(all(), ElementsAre("b")) << "neither the first output nor what was staged";
}

TEST_F(staging, all_or_none_where_one_cannot_be_staged) {
  const auto failed = stage_outputs(from, place(), {"a", "b", "a"});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ec::io);
  EXPECT_THAT(all(), IsEmpty());
}

/// Two of three were moved when something came into the way of the third.
TEST_F(staging, goes_on_later_where_one_of_several_could_not_be_moved) {
  const std::vector<std::string> names{"a", "b", "sub/c"};
  make("sub/c", "gamma");
  ASSERT_TRUE(stage_outputs(from, place(), names));
  ASSERT_EQ(write_publication_list(place(), names), 0);
  fs::rename(place().path() + "/a", to + "/a");
  fs::create_directories(to + "/sub/c");
  const auto end = publish_staged(place(), names);
  EXPECT_EQ(end.outcome, publication_outcome::failed);
  EXPECT_TRUE(end.begun);
  EXPECT_THAT(end.reason, AllOf(HasSubstr("output 'sub/c' as"), HasSubstr("of its 3 outputs 2 are in place (a, b)"),
                                HasSubstr("the others wait in " + to + "/.troupe")));
  EXPECT_EQ(at("a") + at("b"), "alphabeta") << "what lay there before them cannot be brought back";
  give_up_staged(place());
  EXPECT_EQ(publish_staged(place(), names).outcome, publication_outcome::failed);
  EXPECT_EQ(content_of(place().path() + "/sub/c"), "gamma") << "it is never given up half way";
  fs::remove(to + "/sub/c");
  EXPECT_EQ(publish_staged(place(), names), published{});
  EXPECT_EQ(at("sub/c"), "gamma");
  EXPECT_TRUE(fs::is_empty(place().root));
}

/// The first is a file whose move fails, which nobody can see beforehand.
TEST_F(staging, leaves_all_as_it_was_where_the_first_of_several_could_not_be_moved) {
  const elsewhere other{scratch.path()};
  if (other.path.empty()) GTEST_SKIP() << "/dev/shm is no other file system here";
  fs::create_directory_symlink(other.path, to + "/sub");
  std::ofstream{to + "/a"} << "earlier";
  make("sub/c", "gamma");
  const std::vector<std::string> names{"sub/c", "a"};
  ASSERT_TRUE(stage_outputs(from, place(), names));
  // In the way of the copy beside the target.
  fs::create_directory(other.path + "/.troupe-session-12-3.0-7");
  const auto first = publish_staged(place(), names);
  EXPECT_EQ(first.outcome, publication_outcome::failed);
  EXPECT_FALSE(first.begun);
  EXPECT_THAT(first.reason, Not(HasSubstr("in place (")));
  EXPECT_EQ(at("a"), "earlier");
  EXPECT_TRUE(fs::is_empty(place().root));
}

/// The process that publishes is killed when some files were moved.
TEST_F(staging, that_was_cut_off_is_completed_by_who_finds_it) {
  const std::vector<std::string> names{"a", "b", "sub/c"};
  make("sub/c", "gamma");
  ASSERT_TRUE(stage_outputs(from, place(), names));
  ASSERT_EQ(write_publication_list(place(), names), 0);
  fs::rename(place().path() + "/a", to + "/a");
  EXPECT_TRUE(complete_publications(place().root));
  EXPECT_EQ(at("a") + at("b") + at("sub/c"), "alphabetagamma");
  EXPECT_TRUE(fs::is_empty(place().root));
  EXPECT_TRUE(complete_publications(place().root)) << "others may have done it";
  EXPECT_TRUE(complete_publications(scratch.file("nothing")));
}

TEST_F(staging, of_an_earlier_attempt_is_void_when_a_later_one_is_published) {
  const std::vector<std::string> names{"a", "b"};
  ASSERT_TRUE(stage_outputs(from, place(0), names));
  ASSERT_EQ(write_publication_list(place(0), names), 0);
  fs::rename(place(0).path() + "/a", to + "/a");
  make("a", "newer");
  make("b", "newest");
  EXPECT_EQ(publish(names, 1), published{});
  EXPECT_TRUE(complete_publications(place().root));
  EXPECT_EQ(at("a") + at("b"), "newernewest");
  EXPECT_TRUE(fs::is_empty(place().root));
}

TEST_F(staging, is_not_completed_by_a_list_that_is_none) {
  ASSERT_TRUE(stage_outputs(from, place(), {"a", "b"}));
  const auto list = list_of(place());
  ASSERT_EQ(write_publication_list(place(), {"a", "b"}), 0);
  const auto whole = content_of(list);
  const auto refused = [&](const std::string& content, const char* why) {
    std::ofstream{list} << content;
    EXPECT_EQ(read_publication_list(list), std::nullopt) << why;
    EXPECT_TRUE(complete_publications(place().root)) << why;
    EXPECT_TRUE(fs::exists(place().path() + "/a")) << why;
  };
  const auto with = [&](std::string_view what, std::string_view other) {
    auto changed = whole;
    return changed.replace(changed.find(what), what.size(), other);
  };
  refused("", "empty");
  refused(whole.substr(0, whole.size() - 1), "cut off");
  refused(with("outputs of", "inputs of"), "something else");
  refused(with("3.0-7", "../3"), "a place elsewhere");
  refused(with("3.0-7", "3.0-7/sub"), "a place within another");
  refused(whole + "../../a" + '\0' + "7" + '\0', "a name that leads away");
  refused(whole + "c" + '\0', "a name without its size");
  refused(whole + "c" + '\0' + "7 or so" + '\0', "a size that is no number");
  refused(whole.substr(0, whole.find("3.0-7") + 6), "no names");
  std::ofstream{list} << whole;
  EXPECT_EQ(read_publication_list(list), (publication_list{"3.0-7", {"a", "b"}, {5, 4}}));
  fs::rename(list, list + "-target");
  fs::create_symlink(list + "-target", list);
  EXPECT_EQ(read_publication_list(list), std::nullopt) << "a link";
  fs::rename(list + "-target", list);
  if (::geteuid() == 0 && ::chown(list.c_str(), 1, static_cast<gid_t>(-1)) == 0)
    EXPECT_EQ(read_publication_list(list), std::nullopt) << "another user's";
}

/// A copy needs descriptors, which are wanting here as room may be.
TEST_F(staging, waits_for_what_others_may_give_back) {
  const elsewhere other{scratch.path()};
  if (other.path.empty()) GTEST_SKIP() << "no other file system";
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const auto allow = [&](rlim_t files) {
    const rlimit few{files, before.rlim_max};
    return ::setrlimit(RLIMIT_NOFILE, &few) == 0;
  };
  for (const bool is_given_back : {false, true}) {
    for (const auto* name : {"a", "b"}) std::ofstream{other.path + "/" + name} << name;
    int asked = 0;
    ASSERT_TRUE(allow(0));
    const auto staged = stage_outputs(other.path, place(), {"a", "b"}, [&] {
      return ++asked < 3 && (asked < 2 || !is_given_back || allow(before.rlim_cur));
    });
    ASSERT_TRUE(allow(before.rlim_cur));
    EXPECT_EQ(static_cast<bool>(staged), is_given_back);
    EXPECT_EQ(asked, is_given_back ? 2 : 3);
    EXPECT_EQ(fs::exists(place().path() + "/b"), is_given_back);
    EXPECT_EQ(fs::exists(other.path + "/b"), !is_given_back) << "nothing is lost";
    if (!staged) EXPECT_THAT(staged.error().message, HasSubstr("cannot bring output 'a' to "));
  }
  EXPECT_FALSE(stage_outputs(from, {scratch.file("none"), "x", to}, {"a"}, []() -> bool {
    throw std::logic_error{"asked"};
  })) << "where none is, it does not pass";
}

TEST_F(staging, where_no_list_can_be_written_nothing_is_moved) {
  ASSERT_TRUE(stage_outputs(from, place(), {"a", "b"}));
  fs::create_directory(list_of(place()) + "-new");
  const auto end = publish_staged(place(), {"a", "b"});
  EXPECT_EQ(end.outcome, publication_outcome::failed);
  EXPECT_THAT(end.reason, HasSubstr(list_of(place())));
  EXPECT_THAT(all(), ElementsAre(".troupe/session-12/3.list-new"));
}

TEST_F(staging, its_own_maker_cannot_say_that_it_is_not_seen) {
  fs::permissions(scratch.path(), static_cast<fs::perms>(0755));
  ASSERT_TRUE(stage_outputs(from, place(), {"a"}));
  fs::permissions(to, static_cast<fs::perms>(0555));
  {
    const as_anybody here;
    EXPECT_EQ(publish_own(place(), {"a"}).outcome, publication_outcome::failed);
  }
  fs::permissions(to, static_cast<fs::perms>(0755));
  discard_staged(place());
  EXPECT_EQ(publish_own(place(), {"a"}).outcome, publication_outcome::not_seen) << "it is gone";
}

TEST_F(staging, a_removed_root_is_not_made_again) {
  make("sub/c", "gamma");
  remove_staging(place().root);
  for (const auto& names : {std::vector<std::string>{"a"}, {"sub/c"}, {"a", "sub/c"}}) {
    const auto late = stage_outputs(from, place(), names);
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code, ec::cancelled);
    EXPECT_THAT(late.error().message, AllOf(HasSubstr("its job is over"), HasSubstr(place().root)));
    for (const auto& name : names) EXPECT_TRUE(fs::exists(from + "/" + name));
  }
  EXPECT_THAT(all(), IsEmpty());
  EXPECT_FALSE(fs::exists(place().root));
}

TEST_F(staging, sees_nothing_where_there_is_nothing) {
  EXPECT_EQ(publish_staged(place(), {"a"}).outcome, publication_outcome::not_seen);
  remove_staging(place().root);
  EXPECT_EQ(publish_staged(place(), {"a"}).outcome, publication_outcome::not_seen);
  std::ofstream{place().root} << "a file";
  EXPECT_EQ(publish_staged(place(), {"a"}).outcome, publication_outcome::not_seen);
  fs::remove_all(to);
  EXPECT_EQ(publish_staged(place(), {"a"}).outcome, publication_outcome::not_seen);
  EXPECT_FALSE(fs::exists(to));
}

TEST_F(staging, what_is_gone_from_its_place_is_not_seen) {
  ASSERT_TRUE(stage_outputs(from, place(), {"a", "b"}));
  fs::remove(place().path() + "/b");
  const auto end = publish_staged(place(), {"a", "b"});
  EXPECT_EQ(end.outcome, publication_outcome::not_seen);
  EXPECT_TRUE(end.gone);
  EXPECT_THAT(end.reason, HasSubstr(place().path() + "/b"));
  EXPECT_TRUE(fs::exists(place().path() + "/a")) << "others may see more";
  EXPECT_EQ(publish_own(place(), {"a", "b"}).outcome, publication_outcome::not_seen);
  EXPECT_THAT(all(), IsEmpty()) << "its own maker knows that it is gone";
}

/// The list is written to the disk, and what it names is not: a power cut may take the end of that.
TEST_F(staging, that_the_machine_has_cut_short_is_not_completed) {
  for (const auto* name : {"c", "d", "e", "f"}) make(name, "text");
  ASSERT_TRUE(stage_outputs(from, place(), {"a", "b"}));
  ASSERT_EQ(write_publication_list(place(), {"a", "b"}), 0);
  fs::resize_file(place().path() + "/b", 0);
  EXPECT_TRUE(complete_publications(place().root));
  EXPECT_FALSE(fs::exists(to + "/a"));
  EXPECT_FALSE(fs::exists(to + "/b"));
  EXPECT_TRUE(fs::is_empty(place().root));
  // Also where somebody has put the place aside, and what is longer is somebody's who still writes.
  ASSERT_TRUE(stage_outputs(from, place(), {"c", "d"}));
  ASSERT_EQ(write_publication_list(place(), {"c", "d"}), 0);
  fs::resize_file(place().path() + "/d", 1);
  fs::rename(place().path(), aside_of(place()));
  EXPECT_TRUE(complete_publications(place().root));
  EXPECT_FALSE(fs::exists(to + "/c"));
  ASSERT_TRUE(stage_outputs(from, place(), {"e", "f"}));
  ASSERT_EQ(write_publication_list(place(), {"e", "f"}), 0);
  fs::resize_file(place().path() + "/f", 100);
  EXPECT_TRUE(complete_publications(place().root));
  EXPECT_TRUE(fs::exists(to + "/e") && fs::exists(to + "/f"));
}

/// Executors of another version may be there.
TEST_F(staging, is_completed_by_a_list_without_sizes) {
  ASSERT_TRUE(stage_outputs(from, place(), {"a", "b"}));
  const std::string end(1, '\0');
  std::ofstream{list_of(place())} << "outputs of a Troupe task, to be put in place" + end + place().name + end + "a" +
                                         end + "b" + end;
  EXPECT_TRUE(complete_publications(place().root));
  EXPECT_EQ(at("a") + at("b"), "alphabeta");
  EXPECT_TRUE(fs::is_empty(place().root));
}

/// By who looked whether it might be removed, and was killed.
TEST_F(staging, that_was_put_aside_is_brought_back_by_who_completes_it) {
  ASSERT_TRUE(stage_outputs(from, place(), {"a", "b"}));
  ASSERT_EQ(write_publication_list(place(), {"a", "b"}), 0);
  fs::rename(place().path() + "/a", to + "/a");
  fs::rename(place().path(), aside_of(place()));
  EXPECT_EQ(publish_staged(place(), {"a", "b"}), published{});
  EXPECT_EQ(at("a") + at("b"), "alphabeta");
  EXPECT_TRUE(fs::is_empty(place().root));
}

/// As when the one that has moved the last was killed before it could remove the list.
TEST_F(staging, a_list_of_what_is_not_there_is_over) {
  ASSERT_EQ(write_publication_list(place(), {"a", "b"}), 0);
  EXPECT_TRUE(complete_publications(place().root));
  EXPECT_TRUE(fs::is_empty(place().root));
  EXPECT_EQ(publish_staged(place(), {"a", "b"}).outcome, publication_outcome::not_seen);
}

TEST_F(staging, that_was_cut_off_replaces_nothing_that_was_made_since) {
  ASSERT_TRUE(stage_outputs(from, place(), {"a", "b"}));
  std::ofstream{to + "/a"} << "earlier";
  ASSERT_EQ(write_publication_list(place(), {"a", "b"}), 0);
  const std::array<timespec, 2> before{timespec{1'700'000'000, 0}, timespec{1'700'000'000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, list_of(place()).c_str(), before.data(), 0), 0);
  EXPECT_TRUE(complete_publications(place().root));
  EXPECT_EQ(at("a") + at("b"), "earlierbeta");
  EXPECT_TRUE(fs::is_empty(place().root));
}

TEST_F(staging, is_left_to_who_is_completing_it) {
  ASSERT_TRUE(stage_outputs(from, place(), {"a", "b"}));
  ASSERT_EQ(write_publication_list(place(), {"a", "b"}), 0);
  {
    const publication_lock other{place()};
    ASSERT_TRUE(other.is_held());
    EXPECT_TRUE(complete_publications(place().root));
    EXPECT_TRUE(fs::exists(place().path() + "/a"));
    const auto end = publish_staged(place(), {"a", "b"});
    EXPECT_TRUE(end.may_pass && end.begun) << end.reason;
    give_up_staged(place());
  }
  EXPECT_EQ(publish_staged(place(), {"a", "b"}), published{});
}

TEST_F(staging, several_are_looked_at_before_the_first_is_moved) {
  fs::permissions(scratch.path(), static_cast<fs::perms>(0755));
  fs::create_directory(to + "/sub");
  make("sub/c", "gamma");
  const std::vector<std::string> names{"a", "sub/c"};
  ASSERT_TRUE(stage_outputs(from, place(), names));
  for (const auto& folder : {to, place().root, place().path(), place().path() + "/sub"})
    fs::permissions(folder, fs::perms::all);
  fs::permissions(to + "/sub", static_cast<fs::perms>(0555));
  {
    const as_anybody here;
    EXPECT_EQ(publish_staged(place(), names).outcome, publication_outcome::not_seen) << "another one may";
  }
  EXPECT_FALSE(fs::exists(to + "/a"));
  fs::remove(to + "/sub");
  std::ofstream{to + "/sub"} << "a file where a folder is to be";
  EXPECT_EQ(publish_staged(place(), names).outcome, publication_outcome::failed);
  EXPECT_FALSE(fs::exists(to + "/a"));
}

TEST_F(staging, what_may_not_be_moved_counts_as_not_seen_and_stays) {
  fs::permissions(scratch.path(), static_cast<fs::perms>(0755));
  std::vector<std::string> names{"a"};
  ASSERT_TRUE(stage_outputs(from, place(), names));
  const auto refused = [&](const char* why) {
    const as_anybody here;
    const auto end = publish_staged(place(), names);
    EXPECT_EQ(end.outcome, publication_outcome::not_seen) << why;
    EXPECT_THAT(end.reason, HasSubstr("Permission denied")) << why;
  };
  fs::permissions(to, static_cast<fs::perms>(0555));
  refused("it may not write to the output directory");
  fs::permissions(to, static_cast<fs::perms>(0755));
  fs::permissions(place().root, static_cast<fs::perms>(0600));
  refused("it may not look at the file");
  fs::permissions(place().root, static_cast<fs::perms>(0755));
  EXPECT_EQ(content_of(place().path()), "alpha");
  EXPECT_EQ(publish_staged(place(), {"a"}), published{}) << "who may, still can";
  make("a", "alpha");
  names = {"a", "b"};
  ASSERT_TRUE(stage_outputs(from, place(), names));
  fs::permissions(place().path(), static_cast<fs::perms>(0600));
  refused("it may not look at the files");
  fs::permissions(place().path(), static_cast<fs::perms>(0755));
  EXPECT_EQ(content_of(place().path() + "/a"), "alpha");
  EXPECT_EQ(publish_staged(place(), names), published{}) << "who may, still can";
}

TEST_F(staging, a_link_in_its_place_is_refused) {
  const auto refused = [&](const std::vector<std::string>& names, const std::string& text) {
    const auto end = publish_staged(place(), names);
    EXPECT_EQ(end.outcome, publication_outcome::failed) << text;
    EXPECT_THAT(end.reason, HasSubstr(text));
    EXPECT_THAT(all(), IsEmpty());
  };
  fs::create_symlink(from + "/a", place().path());
  refused({"a"}, "no regular file");
  fs::create_directory(place().path());
  fs::create_symlink(from + "/a", place().path() + "/a");
  refused({"a", "b"}, "no regular file");
  fs::create_directory(place().path());
  fs::create_symlink(from, place().path() + "/sub");
  refused({"sub/a", "b"}, "no directory");
  fs::create_directory_symlink(from, place().path());
  refused({"a", "b"}, "no directory");
  EXPECT_EQ(content_of(from + "/a"), "alpha");
}

TEST_F(staging, copies_from_another_file_system) {
  const elsewhere other{from};
  if (other.path.empty()) GTEST_SKIP() << "/dev/shm is no other file system here";
  std::ofstream{other.path + "/big"} << "from afar";
  fs::permissions(other.path + "/big", static_cast<fs::perms>(0750));
  const auto changed = fs::last_write_time(other.path + "/big");
  const auto bytes = stage_outputs(other.path, place(), {"big"});
  ASSERT_TRUE(bytes) << bytes.error().message;
  EXPECT_EQ(*bytes, 9u);
  EXPECT_FALSE(fs::exists(other.path + "/big"));
  EXPECT_EQ(publish_staged(place(), {"big"}), published{});
  EXPECT_EQ(at("big"), "from afar");
  EXPECT_EQ(fs::last_write_time(to + "/big"), changed);
  EXPECT_EQ(static_cast<unsigned>(fs::status(to + "/big").permissions()), 0750u);
}

TEST_F(staging, copies_to_another_file_system_below_the_output_directory) {
  const elsewhere other{from};
  if (other.path.empty()) GTEST_SKIP() << "/dev/shm is no other file system here";
  fs::create_directory_symlink(other.path, to + "/sub");
  std::ofstream{other.path + "/c"} << "earlier";
  make("sub/c", "gamma");
  const auto changed = fs::last_write_time(from + "/sub/c");
  EXPECT_EQ(publish({"sub/c"}), published{});
  EXPECT_EQ(at("sub/c"), "gamma");
  EXPECT_EQ(fs::last_write_time(to + "/sub/c"), changed);
  EXPECT_EQ(std::distance(fs::directory_iterator{other.path}, fs::directory_iterator{}), 1) << "nothing beside it";
  EXPECT_TRUE(fs::is_empty(place().root));
}

TEST_F(staging, what_is_discarded_is_gone_and_may_be_gone_already) {
  make("sub/c", "gamma");
  ASSERT_TRUE(stage_outputs(from, place(), {"a", "sub/c"}));
  ASSERT_TRUE(stage_outputs(from, place(1), {"b"}));
  discard_staged(place());
  discard_staged(place());
  EXPECT_EQ(publish_staged(place(), {"a"}).outcome, publication_outcome::not_seen);
  EXPECT_EQ(publish_staged(place(1), {"b"}), published{}) << "another attempt's";
}

} // namespace
} // namespace troupe::testing_execution
