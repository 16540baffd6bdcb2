// The history in a file: all of it, or a line that says what is missing.

#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <troupe/runtime/events/event_file.hpp>
#include <troupe/tests/support/patience.hpp>

namespace troupe::events {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// A disk that can be full, and that can keep its writer waiting.
struct disk {
  std::mutex mutex;
  std::condition_variable changed;
  bool full = false;
  bool stands_still = false;
  bool has_writer = false; ///< somebody waits for it
  int refused = 0;
  std::vector<std::string> lines;
  std::vector<std::string> troubles;

  void set(bool disk::*what, bool value) {
    const std::lock_guard lock{mutex};
    this->*what = value;
    changed.notify_all();
  }
  template <class Condition>
  void wait(Condition condition) {
    std::unique_lock lock{mutex};
    ASSERT_TRUE(changed.wait_for(lock, troupe::testing::patience(), condition));
  }
  /// What a reader makes of a line: its number, or the numbers that are missing.
  std::vector<std::string> story() {
    std::vector<std::string> out;
    for (const auto& line : lines) {
      EXPECT_TRUE(line.ends_with("}\n")) << line;
      const auto j = nlohmann::json::parse(line);
      if (j["Event"] == "TroupeLogStart")
        out.push_back("start " + j["Troupe Version"].get<std::string>() + " " + j["Session ID"].get<std::string>());
      else if (j["Event"] == "TroupeEventsMissing")
        out.push_back("missing " + j["First Number"].dump() + "-" + j["Last Number"].dump() + ": " +
                      j["Number of Events"].dump());
      else
        out.push_back(j["Number"].dump());
    }
    return out;
  }
};

class disk_writer : public line_sink {
public:
  explicit disk_writer(disk& to) : to_(&to) {}
  result<void> append(std::string_view line) override {
    std::unique_lock lock{to_->mutex};
    to_->has_writer = true;
    to_->changed.notify_all();
    to_->changed.wait(lock, [this] { return !to_->stands_still; });
    to_->has_writer = false;
    if (to_->full) {
      ++to_->refused;
      to_->changed.notify_all();
      return make_error(ec::io, "No space left on device");
    }
    to_->lines.emplace_back(line);
    to_->changed.notify_all();
    return {};
  }

private:
  disk* to_;
};

struct event_file_on_a_disk : ::testing::Test {
  disk d;

  std::unique_ptr<event_file> open(std::size_t most_waiting = 100) {
    event_file::options o;
    o.version = "1.2";
    o.session = "s1";
    o.most_waiting = most_waiting;
    o.on_trouble = [this](const std::string& what) {
      const std::lock_guard lock{d.mutex};
      d.troubles.push_back(what);
    };
    return std::make_unique<event_file>(std::make_unique<disk_writer>(d), std::move(o));
  }
  static record at(std::uint64_t number) { return {number, 1'000'000'000, lease_released{}}; }
};

TEST_F(event_file_on_a_disk, has_every_event_in_order) {
  const auto file = open();
  for (std::uint64_t i = 1; i <= 3; ++i) file->append(at(i));
  file->close();
  file->append(at(4));
  EXPECT_THAT(d.story(), ElementsAre("start 1.2 s1", "1", "2", "3"));
  EXPECT_THAT(d.troubles, IsEmpty());
}

TEST_F(event_file_on_a_disk, says_which_events_a_full_disk_has_cost) {
  const auto file = open();
  file->append(at(1));
  d.wait([&] { return d.lines.size() == 2; });
  d.set(&disk::full, true);
  for (std::uint64_t i = 2; i <= 4; ++i) {
    file->append(at(i));
    d.wait([&] { return d.refused == static_cast<int>(i) - 1; });
  }
  d.set(&disk::full, false);
  file->append(at(5));
  file->append(at(6));
  file->close();
  EXPECT_THAT(d.story(), ElementsAre("start 1.2 s1", "1", "missing 2-4: 3", "5", "6"));
  ASSERT_THAT(d.troubles, SizeIs(2)) << "once, not for every event";
  EXPECT_THAT(d.troubles[0], HasSubstr("No space left on device"));
  EXPECT_THAT(d.troubles[1], HasSubstr("the events 2 to 4 are missing"));
}

TEST_F(event_file_on_a_disk, says_at_its_end_what_is_missing) {
  const auto file = open();
  file->append(at(1));
  d.wait([&] { return d.lines.size() == 2; });
  d.set(&disk::full, true);
  file->append(at(2));
  d.wait([&] { return d.refused == 1; });
  d.set(&disk::full, false);
  file->close();
  EXPECT_THAT(d.story(), ElementsAre("start 1.2 s1", "1", "missing 2-2: 1"));
}

TEST_F(event_file_on_a_disk, begins_with_its_first_line_even_late) {
  d.full = true;
  const auto file = open();
  d.wait([&] { return d.refused == 1; });
  d.set(&disk::full, false);
  file->append(at(1));
  file->close();
  EXPECT_THAT(d.story(), ElementsAre("start 1.2 s1", "1"));
}

TEST_F(event_file_on_a_disk, keeps_nobody_waiting_for_a_slow_disk_and_says_what_that_has_cost) {
  const auto file = open(2);
  file->append(at(1));
  d.wait([&] { return d.lines.size() == 2; });
  d.set(&disk::stands_still, true);
  file->append(at(2));
  d.wait([&] { return d.has_writer; }); // with 2 in its hand
  for (std::uint64_t i = 3; i <= 7; ++i) file->append(at(i));
  d.set(&disk::stands_still, false);
  d.wait([&] { return d.lines.size() == 5; });
  file->append(at(8));
  file->close();
  EXPECT_THAT(d.story(), ElementsAre("start 1.2 s1", "1", "2", "3", "4", "missing 5-7: 3", "8"));
  EXPECT_THAT(d.troubles, ElementsAre(HasSubstr("the events 5 to 7 are missing")));
}

} // namespace
} // namespace troupe::events
