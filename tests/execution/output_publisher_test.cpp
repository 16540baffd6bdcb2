#include <gmock/gmock-more-matchers.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <set>
#include <string>
#include <thread>

#include <troupe/runtime/execution/output_publisher.hpp>
#include <troupe/runtime/execution/staging_root.hpp>

#include "process_fixture.hpp"

namespace troupe::testing_execution {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;
namespace fs = std::filesystem;

class output_publisher_test : public ::testing::Test {
protected:
  void TearDown() override { publisher.reset(); }

  output_publisher::options base_options(std::uint32_t threads = 1) {
    output_publisher::options o;
    o.session = "s";
    o.threads = threads;
    o.patience = deadline;
    o.publishes = [this](const staging_place& place, const std::vector<std::string>&) {
      note("begins " + place.name);
      const bool may = !place.name.starts_with("99.") || door.wait();
      EXPECT_TRUE(may) << "nobody has opened the door";
      note("ends " + place.name + (fs::exists(place.root) ? "" : " without root"));
      return published{};
    };
    o.on_ends = [this](publications told) {
      for (const auto& end : told.ends) note("told " + std::to_string(end.partition) + end.reason);
      ++tellings;
    };
    o.on_closed = [this](job_id job, bool clean) {
      note("closed " + std::to_string(job.value) + (clean ? "" : " in spite of some"));
    };
    o.on_ended = [this](bool clean) { note(clean ? "ended" : "ended in spite of some"); };
    return o;
  }
  output_publisher& start(output_publisher::options o) {
    publisher = std::make_unique<output_publisher>(std::move(o));
    return *publisher;
  }
  /// Partition 99 waits at the door.
  publication_task task(std::uint64_t stage, partition_index partition) const {
    return {{stage}, partition, 0, {7}, out, {"a"}};
  }
  std::string root(std::uint64_t stage) const { return staging_root("s", {stage}, out); }
  void forget(output_publisher& p, std::uint64_t stage) const {
    p.forget({stage}, [this, stage] {
      remove_own_staging(root(stage), {7});
      remove_empty_root(root(stage));
    });
  }

  void note(const std::string& what) {
    const std::lock_guard lock{mutex_};
    notes_.push_back(what);
    changed_.notify_all();
  }
  bool noted(const std::string& what) {
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, deadline, [&] { return position(what) < notes_.size(); });
  }
  /// What was noted so far, "begins" apart.
  std::vector<std::string> notes() const {
    const std::lock_guard lock{mutex_};
    auto all = notes_;
    std::erase_if(all, [](const std::string& note) { return note.starts_with("begins"); });
    return all;
  }

  scratch_directory scratch;
  std::string out = scratch.file("out");
  gate door;
  std::atomic<int> tellings = 0;
  std::unique_ptr<output_publisher> publisher;

private:
  std::size_t position(const std::string& what) const {
    return static_cast<std::size_t>(std::find(notes_.begin(), notes_.end(), what) - notes_.begin());
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> notes_;
};

TEST_F(output_publisher_test, moves_files_and_discards_others) {
  auto o = base_options(2);
  o.publishes = publish_staged;
  auto& p = start(std::move(o));
  for (const partition_index partition : {0u, 1u}) {
    const auto place = place_of("s", {1}, partition, 0, {7}, out);
    fs::create_directories(place.root);
    std::ofstream{place.path()} << "of " << partition;
  }
  p.publish(task(1, 0));
  p.discard(task(1, 1));
  EXPECT_TRUE(noted("told 0"));
  EXPECT_EQ(content_of(out + "/a"), "of 0");
  EXPECT_TRUE(eventually([&] { return fs::is_empty(root(1)); }));
}

TEST_F(output_publisher_test, starts_no_thread_before_it_has_something_to_do) {
  const auto threads = [] {
    std::set<std::string> all;
    for (const auto& thread : fs::directory_iterator{"/proc/self/task"}) all.insert(thread.path().filename().string());
    return all;
  };
  const auto before = threads(); // one that was joined may still be there
  const auto new_threads = [&] {
    auto all = threads();
    std::erase_if(all, [&](const std::string& id) { return before.contains(id); });
    return all.size();
  };
  auto& p = start(base_options(4));
  EXPECT_EQ(new_threads(), 0u);
  p.publish(task(1, 0));
  EXPECT_TRUE(noted("told 0"));
  EXPECT_EQ(new_threads(), 1u);
}

TEST_F(output_publisher_test, tells_many_at_once) {
  auto& p = start(base_options());
  p.publish(task(1, 99));
  ASSERT_TRUE(noted("begins 99.0-7"));
  for (partition_index i = 100; i < 300; ++i) p.publish(task(1, i));
  door.open();
  ASSERT_TRUE(noted("told 299"));
  EXPECT_EQ(notes().size(), 2 * 201u);
  EXPECT_LT(tellings, 30);
}

/// Removing may take long, and dependants wait for what was published.
TEST_F(output_publisher_test, tells_of_publications_before_it_removes_anything) {
  const auto unwanted = place_of("s", {2}, 0, 0, {7}, out).path();
  fs::create_directories(unwanted);
  auto o = base_options();
  o.on_ends = [this, unwanted](const publications& told) { // it is told of the others when this function has ended
    for (const auto& end : told.ends)
      note("told " + std::to_string(end.partition) + (fs::exists(unwanted) ? "" : " after removing"));
  };
  auto& p = start(std::move(o));
  p.publish(task(1, 99));
  ASSERT_TRUE(noted("begins 99.0-7"));
  for (const partition_index waiting : {0u, 1u, 2u}) p.publish(task(1, waiting)); // the first end need not be told yet
  p.discard(task(2, 0));
  door.open();
  EXPECT_TRUE(noted("told 99"));
  EXPECT_TRUE(eventually([&] { return !fs::exists(unwanted); }));
}

TEST_F(output_publisher_test, an_exception_is_a_failure) {
  auto o = base_options();
  o.publishes = [](const staging_place&, const std::vector<std::string>&) -> published {
    throw std::runtime_error("no memory");
  };
  std::vector<publication> ends;
  o.on_ends = [&](publications told) {
    ends = told.ends;
    note("told");
  };
  start(std::move(o)).publish(task(1, 4));
  ASSERT_TRUE(noted("told"));
  EXPECT_THAT(ends,
              ElementsAre(publication{{1}, 4, 0, publication_outcome::failed, "cannot publish outputs: no memory"}));
}

TEST_F(output_publisher_test, a_closed_job_publishes_nothing_more) {
  auto& p = start(base_options());
  p.publish(task(1, 99));
  ASSERT_TRUE(noted("begins 99.0-7"));
  p.publish(task(1, 0));
  p.close({5}, {{{1}, out}, {{2}, out}});
  p.publish(task(1, 1));
  p.publish(task(2, 2));
  p.publish(task(3, 3)); // of another job
  door.open();
  EXPECT_TRUE(noted("told 3"));
  EXPECT_TRUE(noted("closed 5"));
  EXPECT_THAT(notes(),
              UnorderedElementsAre("ends 99.0-7 without root", "closed 5", "ends 3.0-7 without root", "told 3"));
}

TEST_F(output_publisher_test, close_waits_for_what_is_in_hand) {
  for (const auto stage : {1u, 2u, 3u}) fs::create_directories(root(stage) + "/0.0-7");
  auto& p = start(base_options(2));
  p.publish(task(1, 99));
  ASSERT_TRUE(noted("begins 99.0-7"));
  p.close({5}, {{{2}, out}, {{1}, out}});
  p.publish(task(3, 3));
  ASSERT_TRUE(noted("told 3")) << "by the other thread, after all that it had to do";
  EXPECT_THAT(notes(), ElementsAre("ends 3.0-7", "told 3"));
  EXPECT_TRUE(fs::exists(root(2)));
  door.open();
  EXPECT_TRUE(noted("closed 5"));
  EXPECT_THAT(notes(), ElementsAre("ends 3.0-7", "told 3", "ends 99.0-7", "closed 5"));
  EXPECT_FALSE(fs::exists(root(1)));
  EXPECT_FALSE(fs::exists(root(2)));
  EXPECT_TRUE(fs::exists(root(3)));
}

TEST_F(output_publisher_test, a_job_without_anything_in_hand_is_closed_at_once) {
  fs::create_directories(root(1) + "/0.0-7");
  auto& p = start(base_options());
  p.close({5}, {{{1}, out}});
  EXPECT_TRUE(noted("closed 5"));
  EXPECT_TRUE(fs::is_empty(out));
  p.close({6}, {});
  EXPECT_TRUE(noted("closed 6"));
}

TEST_F(output_publisher_test, close_says_so_where_what_is_in_hand_does_not_end_in_time) {
  fs::create_directories(root(1));
  auto o = base_options();
  o.patience = {};
  auto& p = start(std::move(o));
  p.publish(task(1, 99));
  ASSERT_TRUE(noted("begins 99.0-7"));
  p.close({5}, {{{1}, out}});
  EXPECT_TRUE(noted("closed 5 in spite of some"));
  EXPECT_TRUE(fs::exists(root(1)));
  door.open();
  EXPECT_TRUE(eventually([&] { return fs::is_empty(out); })) << "its root is removed later";
  p.publish(task(2, 2));
  EXPECT_TRUE(noted("told 2"));
  publisher.reset();
  EXPECT_THAT(notes(), ElementsAre("closed 5 in spite of some", "ends 99.0-7", "ends 2.0-7 without root", "told 2"));
}

TEST_F(output_publisher_test, publications_wait_until_they_may_begin) {
  std::atomic<bool> may = false;
  auto o = base_options();
  o.may_begin = [&] {
    note("asked");
    return may.load();
  };
  auto& p = start(std::move(o));
  p.publish(task(1, 0));
  ASSERT_TRUE(noted("asked"));
  fs::create_directories(root(2) + "/1.0-7");
  p.close({5}, {{{2}, out}});
  EXPECT_TRUE(noted("closed 5")) << "removing does not wait";
  EXPECT_THAT(notes(), Each(AnyOf("asked", "closed 5")));
  may = true;
  p.wake();
  EXPECT_TRUE(noted("told 0"));
  publisher.reset(); // it asks for what lies on this stack
}

TEST_F(output_publisher_test, tries_again_what_may_pass) {
  auto o = base_options();
  o.pauses = {duration::zero(), duration::zero()};
  o.publishes = [this](const staging_place& place, const std::vector<std::string>&) -> published {
    note("tries " + place.name);
    const auto so_far = notes();
    const auto tries = std::count(so_far.begin(), so_far.end(), "tries " + place.name);
    if (place.name.starts_with("1.") && tries == 2) return {};
    return {publication_outcome::failed, " has no room", !place.name.starts_with("3.")};
  };
  auto& p = start(std::move(o));
  for (const partition_index partition : {1u, 2u, 3u}) {
    const auto place = place_of("s", {1}, partition, 0, {7}, out);
    fs::create_directories(place.root);
    std::ofstream{place.path()} << "text";
    p.publish(task(1, partition));
  }
  for (const auto* end : {"told 1", "told 2 has no room", "told 3 has no room"}) EXPECT_TRUE(noted(end)) << end;
  const auto all = notes();
  EXPECT_EQ(std::count(all.begin(), all.end(), "tries 1.0-7"), 2);
  EXPECT_EQ(std::count(all.begin(), all.end(), "tries 2.0-7"), 3) << "one more than there are pauses";
  EXPECT_EQ(std::count(all.begin(), all.end(), "tries 3.0-7"), 1);
  EXPECT_FALSE(fs::exists(root(1) + "/2.0-7")) << "it was given up";
}

TEST_F(output_publisher_test, what_is_to_be_tried_again_is_dropped_with_its_stage) {
  std::atomic<bool> may = true;
  auto o = base_options();
  o.pauses = {duration::zero()};
  o.may_begin = [&] {
    if (!may) note("waits for leave");
    return may.load();
  };
  o.publishes = [&](const staging_place& place, const std::vector<std::string>&) -> published {
    note("tries " + place.name);
    may = false;
    return {publication_outcome::failed, " has no room", true};
  };
  auto& p = start(std::move(o));
  p.publish(task(1, 1));
  ASSERT_TRUE(noted("waits for leave")); // to try again
  p.close({5}, {{{1}, out}});
  ASSERT_TRUE(noted("closed 5"));
  may = true;
  p.publish(task(2, 2));
  ASSERT_TRUE(noted("tries 2.0-7"));
  const auto all = notes();
  EXPECT_EQ(std::count(all.begin(), all.end(), "tries 1.0-7"), 1);
  publisher.reset(); // it asks for what lies on this stack
}

TEST_F(output_publisher_test, an_end_tells_what_will_not_be_tried_again) {
  auto o = base_options();
  o.pauses = {std::chrono::hours{1}};
  o.publishes = [&](const staging_place&, const std::vector<std::string>&) -> published {
    return {publication_outcome::failed, " has no room", true};
  };
  auto& p = start(std::move(o));
  p.publish(task(1, 1));
  p.publish(task(1, 99)); // by the same thread, when the other one is to be tried again
  p.later([&] { note("both are"); });
  ASSERT_TRUE(noted("both are"));
  p.end();
  ASSERT_TRUE(noted("ended"));
  EXPECT_THAT(notes(), ElementsAre("both are", "told 1 has no room", "told 99 has no room", "ended"));
}

/// As by a job that has begun in the same folder meanwhile.
TEST_F(output_publisher_test, what_has_begun_and_is_not_there_any_more_was_completed_by_somebody) {
  auto o = base_options();
  o.pauses = {duration::zero()};
  std::atomic<int> tries = 0;
  o.publishes = [&](const staging_place& place, const std::vector<std::string>&) -> published {
    if (place.name.starts_with("2.")) return {publication_outcome::not_seen, " is not there"};
    if (tries++ == 0) return {publication_outcome::failed, " has no room", true, true};
    return {publication_outcome::not_seen, " is not there", false, false, true};
  };
  auto& p = start(std::move(o));
  p.publish(task(1, 1));
  ASSERT_TRUE(noted("told 1"));
  p.publish(task(1, 2));
  EXPECT_TRUE(noted("told 2 is not there"));
}

TEST_F(output_publisher_test, goes_though_there_is_more_to_do_at_leisure) {
  auto& p = start(base_options());
  p.publish(task(1, 99));
  ASSERT_TRUE(noted("begins 99.0-7"));
  p.later([&] { note("at leisure"); });
  std::thread opens{[this] { door.open(); }};
  publisher.reset();
  opens.join();
  EXPECT_THAT(notes(), Contains("at leisure"));
}

TEST_F(output_publisher_test, what_has_time_goes_last_and_holds_up_nothing) {
  gate second;
  auto& p = start(base_options(1));
  p.later([&] {
    note("begins at leisure");
    EXPECT_TRUE(second.wait());
    note("ends at leisure");
  });
  ASSERT_TRUE(noted("begins at leisure"));
  p.later([&] { note("the next"); });
  p.publish(task(1, 0));
  p.close({5}, {{{1}, out}});
  EXPECT_TRUE(noted("closed 5"));
  EXPECT_THAT(notes(), Not(Contains("the next"))) << "one at a time";
  second.open();
  publisher.reset();
  EXPECT_THAT(notes(), Contains("the next"));
}

TEST_F(output_publisher_test, an_end_drops_what_has_not_begun_and_tells_the_rest_first) {
  auto& p = start(base_options());
  p.publish(task(1, 99));
  ASSERT_TRUE(noted("begins 99.0-7"));
  p.publish(task(1, 0));
  p.end();
  p.publish(task(1, 1));
  door.open();
  EXPECT_TRUE(noted("ended"));
  EXPECT_THAT(notes(), ElementsAre("ends 99.0-7 without root", "told 99", "ended"));
}

TEST_F(output_publisher_test, an_end_waits_for_what_is_in_hand) {
  fs::create_directories(root(2) + "/0.0-7");
  auto& p = start(base_options(2));
  p.publish(task(1, 99));
  ASSERT_TRUE(noted("begins 99.0-7"));
  p.end();
  forget(p, 2);
  EXPECT_TRUE(eventually([&] { return !fs::exists(root(2)); })) << "by the other thread, after all that came before";
  EXPECT_THAT(notes(), IsEmpty());
  door.open();
  EXPECT_TRUE(noted("ended"));
}

TEST_F(output_publisher_test, what_an_executor_forgets_is_removed_and_not_published) {
  fs::create_directories(root(1) + "/99.0-7");
  fs::create_directories(root(1) + "/0.0-8");
  auto& p = start(base_options());
  p.publish(task(1, 99));
  ASSERT_TRUE(noted("begins 99.0-7"));
  p.publish(task(1, 0));
  forget(p, 1);
  p.publish(task(2, 2));
  door.open();
  ASSERT_TRUE(noted("told 2"));
  EXPECT_THAT(notes(), ElementsAre("ends 99.0-7", "ends 2.0-7 without root", "told 2"));
  EXPECT_FALSE(fs::exists(root(1) + "/99.0-7"));
  EXPECT_TRUE(fs::exists(root(1) + "/0.0-8"));
}

TEST_F(output_publisher_test, removes_what_is_to_be_removed_before_it_goes) {
  for (const auto stage : {1u, 2u}) fs::create_directories(root(stage) + "/99.0-7");
  auto& p = start(base_options());
  p.publish(task(1, 99));
  ASSERT_TRUE(noted("begins 99.0-7"));
  forget(p, 2);
  forget(p, 1);
  std::thread opens{[this] { door.open(); }};
  publisher.reset();
  opens.join();
  EXPECT_TRUE(fs::is_empty(out));
  EXPECT_THAT(notes(), ElementsAre("ends 99.0-7"));
}

TEST_F(output_publisher_test, goes_when_what_is_in_hand_has_ended_and_drops_the_rest) {
  auto o = base_options();
  std::atomic<int> asked = 0;
  o.may_begin = [&] { return asked++ == 0; };
  start(std::move(o)).publish(task(1, 99));
  ASSERT_TRUE(noted("begins 99.0-7"));
  publisher->publish(task(1, 0));
  std::thread opens{[this] { door.open(); }};
  publisher.reset();
  opens.join();
  EXPECT_THAT(notes(), Contains("ends 99.0-7 without root"));
  EXPECT_THAT(notes(), Not(Contains("ends 0.0-7 without root")));
}

/// Removes what its last publication has left to be removed, and is not kept by an end that it may tell to nobody.
TEST_F(output_publisher_test, goes_although_an_end_was_not_told) {
  struct on_thread_exit {
    std::function<void()> tell;
    ~on_thread_exit() {
      if (tell) tell();
    }
  };
  gate second;
  auto o = base_options(3);
  o.publishes = [&](const staging_place& place, const std::vector<std::string>&) {
    thread_local on_thread_exit at_exit;
    at_exit.tell = [this, name = place.name] { note("the thread of " + name + " has ended"); };
    note("begins " + place.name);
    if (place.name.starts_with("1.")) door.wait();
    if (place.name.starts_with("2.")) second.wait();
    return published{};
  };
  auto& p = start(std::move(o));
  for (const std::uint64_t number : {1u, 2u, 3u}) {
    p.publish(task(number, static_cast<partition_index>(number)));
    ASSERT_TRUE(noted("begins " + std::to_string(number) + ".0-7"));
  }
  ASSERT_TRUE(noted("told 3"));
  p.close({5}, {{{1}, out}});
  std::thread destroyer{[&] { publisher.reset(); }};
  EXPECT_TRUE(noted("the thread of 3.0-7 has ended")); // so the publisher stops
  second.open();
  EXPECT_TRUE(noted("the thread of 2.0-7 has ended")); // whose end stays untold
  door.open();
  destroyer.join();
  EXPECT_THAT(notes(), Not(Contains("told 2")));
}

} // namespace
} // namespace troupe::testing_execution
