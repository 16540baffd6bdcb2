// Who is sent which events, and who is cut off.

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/runtime/events/event_stream.hpp>

namespace troupe::events {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct event_stream_of_ten : ::testing::Test {
  event_stream stream{10};

  void happen(int count) {
    for (int i = 0; i < count; ++i) stream.append(lease_released{lease_id{stream.last() + 1}, executor_id{1}}, 77);
  }
  static std::vector<std::uint64_t> numbers(const event_stream::delivery& d) {
    std::vector<std::uint64_t> out;
    for (const auto& r : d.records) out.push_back(r.number);
    return out;
  }
};

TEST_F(event_stream_of_ten, numbers_facts_from_one) {
  EXPECT_EQ(stream.last(), 0u);
  EXPECT_EQ(stream.append(lease_released{}, 5).number, 1u);
  const auto& second = stream.append(lease_released{lease_id{9}, executor_id{8}}, 6);
  EXPECT_EQ(second, (record{2, 6, lease_released{lease_id{9}, executor_id{8}}}));
  EXPECT_EQ(stream.last(), 2u);
}

TEST_F(event_stream_of_ten, sends_as_many_as_there_is_credit_for) {
  happen(2);
  stream.subscribe(4, 0, 3);
  EXPECT_THAT(stream.deliver(), IsEmpty()) << "0: from now on";
  happen(2);
  auto sent = stream.deliver();
  ASSERT_THAT(sent, SizeIs(1));
  EXPECT_EQ(sent[0].subscriber, 4u);
  EXPECT_THAT(numbers(sent[0]), ElementsAre(3, 4));
  EXPECT_EQ(sent[0].last, 4u);
  EXPECT_EQ(sent[0].skipped, 0u);
  EXPECT_THAT(stream.deliver(), IsEmpty()) << "each once";
  happen(3);
  sent = stream.deliver();
  ASSERT_THAT(sent, SizeIs(1));
  EXPECT_THAT(numbers(sent[0]), ElementsAre(5));
  EXPECT_THAT(stream.deliver(), IsEmpty()) << "its credit is used up";
  stream.subscribe(4, 0, 100);
  sent = stream.deliver();
  ASSERT_THAT(sent, SizeIs(1));
  EXPECT_THAT(numbers(sent[0]), ElementsAre(6, 7)) << "renewed: from where it was";
}

TEST_F(event_stream_of_ten, says_how_many_events_are_no_longer_kept) {
  happen(25); // the last twenty are kept
  stream.subscribe(1, 2, 3);
  const auto sent = stream.deliver();
  ASSERT_THAT(sent, SizeIs(1));
  EXPECT_THAT(numbers(sent[0]), ElementsAre(6, 7, 8));
  EXPECT_EQ(sent[0].skipped, 4u);
}

TEST_F(event_stream_of_ten, cuts_off_who_stays_without_credit) {
  stream.subscribe(1, 0, 2);
  stream.subscribe(2, 0, 100);
  happen(2);
  EXPECT_THAT(stream.deliver(), SizeIs(2));
  happen(10);
  EXPECT_THAT(stream.deliver(), SizeIs(1)) << "as many as may come meanwhile";
  happen(1);
  auto sent = stream.deliver();
  ASSERT_THAT(sent, SizeIs(2));
  EXPECT_EQ(sent[0].subscriber, 1u);
  EXPECT_THAT(sent[0].records, IsEmpty());
  EXPECT_EQ(sent[0].last, 2u);
  EXPECT_EQ(sent[1].subscriber, 2u) << "who has credit is not";
  EXPECT_THAT(numbers(sent[1]), ElementsAre(13));
  happen(1);
  EXPECT_THAT(stream.deliver(), SizeIs(1)) << "it is forgotten";
  // It comes back and misses nothing.
  stream.subscribe(1, 3, 100);
  sent = stream.deliver();
  ASSERT_THAT(sent, SizeIs(1));
  EXPECT_EQ(sent[0].skipped, 0u);
  EXPECT_EQ(sent[0].records.front().number, 3u);
  EXPECT_EQ(sent[0].last, 14u);
}

TEST_F(event_stream_of_ten, bears_with_one_that_reads_what_is_old) {
  happen(20);
  stream.subscribe(1, 1, 2); // far behind, but it renews
  for (std::uint64_t last = 2; last <= 20; last += 2) {
    const auto sent = stream.deliver();
    ASSERT_THAT(sent, SizeIs(1));
    EXPECT_EQ(sent[0].last, last);
    EXPECT_THAT(stream.deliver(), IsEmpty());
    stream.subscribe(1, 0, 2);
  }
}

TEST_F(event_stream_of_ten, counts_from_when_the_credit_was_opened_where_there_never_was_any) {
  happen(15);
  stream.subscribe(1, 3, 0);
  EXPECT_THAT(stream.deliver(), IsEmpty());
  happen(10);
  EXPECT_THAT(stream.deliver(), IsEmpty());
  happen(1);
  const auto sent = stream.deliver();
  ASSERT_THAT(sent, SizeIs(1));
  EXPECT_THAT(sent[0].records, IsEmpty());
  EXPECT_EQ(sent[0].last, 2u) << "it reads on from where it would have begun";
}

TEST_F(event_stream_of_ten, cuts_nobody_off_for_many_events_at_once) {
  stream.subscribe(1, 0, 100);
  happen(15);
  const auto sent = stream.deliver();
  ASSERT_THAT(sent, SizeIs(1));
  EXPECT_THAT(sent[0].records, SizeIs(15)) << "it has credit";
}

TEST_F(event_stream_of_ten, forgets_who_is_gone) {
  stream.subscribe(1, 0, 5);
  stream.forget(1);
  happen(1);
  EXPECT_THAT(stream.deliver(), IsEmpty());
}

} // namespace
} // namespace troupe::events
