// The wire form of every announced struct: round trips, and bytes that no peer of ours would send.

#include <random>
#include <string>

#include <gtest/gtest.h>

#include <troupe/messages/codec.hpp>

#include "samples.hpp"

namespace troupe {
namespace {

template <class T>
class every_message : public ::testing::Test {};
TYPED_TEST_SUITE(every_message, samples::announced_types);

/// What damaged bytes must come to: one error that names the message, or a value that is as good as any other.
template <class T>
void expect_harmless(std::string_view bytes) {
  const auto decoded = decode<T>(bytes);
  if (!decoded) {
    EXPECT_EQ(decoded.error().code, ec::malformed);
    EXPECT_TRUE(decoded.error().message.starts_with("malformed " + std::string{codec_name<T>()} + ": "))
        << decoded.error().message;
    return;
  }
  const auto again = encode(*decoded);
  ASSERT_TRUE(again) << again.error().message;
  const auto twice = decode<T>(*again);
  ASSERT_TRUE(twice) << twice.error().message;
  EXPECT_TRUE(*twice == *decoded);
}

TYPED_TEST(every_message, has_a_sample) {
  EXPECT_FALSE(samples::of<TypeParam>().empty()) << codec_name<TypeParam>() << " is announced: add a sample of it";
}

TYPED_TEST(every_message, survives_the_round_trip) {
  for (const auto& value : samples::of<TypeParam>()) {
    const auto bytes = encode(value);
    ASSERT_TRUE(bytes) << bytes.error().message;
    const auto back = decode<TypeParam>(*bytes);
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_TRUE(*back == value);
    EXPECT_EQ(*encode(*back), *bytes);
  }
}

TYPED_TEST(every_message, is_harmless_when_cut_off_anywhere) {
  for (const auto& value : samples::of<TypeParam>()) {
    const auto bytes = *encode(value);
    for (std::size_t size = 0; size < bytes.size(); ++size) expect_harmless<TypeParam>(bytes.substr(0, size));
  }
}

TYPED_TEST(every_message, is_harmless_with_flipped_bits) {
  std::mt19937 random{20260101};
  for (const auto& value : samples::of<TypeParam>()) {
    const auto bytes = *encode(value);
    for (int round = 0; round < 1500; ++round) {
      auto damaged = bytes;
      for (auto flips = random() % 4 + 1; flips > 0; --flips)
        damaged[random() % damaged.size()] ^= static_cast<char>(1u << random() % 8);
      expect_harmless<TypeParam>(damaged);
    }
  }
}

TYPED_TEST(every_message, is_harmless_when_it_is_noise) {
  std::mt19937 random{7};
  for (int round = 0; round < 500; ++round) {
    std::string noise(random() % 200, '\0');
    for (auto& byte : noise) byte = static_cast<char>(random());
    expect_harmless<TypeParam>(noise);
    expect_harmless<TypeParam>('\x01' + noise);
  }
}

TYPED_TEST(every_message, is_refused_without_bytes) {
  const auto nothing = decode<TypeParam>("");
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code, ec::malformed);
  EXPECT_FALSE(decode<TypeParam>("\x02")) << "a mark of another format";
}

// -- launches
// ----------------------------------------------------------------------------------------------------------

executor_orders with(task_batch batch) {
  executor_orders orders;
  orders.batches = {std::move(batch)};
  return orders;
}

std::shared_ptr<const packed_column> numbered_column(std::uint32_t size) {
  auto column = std::make_shared<packed_column>();
  for (std::uint32_t i = 0; i < size; ++i) column->push_back("argument " + std::to_string(i));
  return column;
}

TEST(launch, carries_the_arguments_of_its_own_tasks_alone) {
  const auto column = numbered_column(100'000);
  task_batch batch;
  batch.first = 70'000;
  batch.count = 256;
  batch.arguments = column;
  batch.by_partition = true;
  const auto bytes = encode(with(batch));
  ASSERT_TRUE(bytes) << bytes.error().message;
  EXPECT_LT(bytes->size(), 256u * 24);
  const auto back = decode<executor_orders>(*bytes);
  ASSERT_TRUE(back) << back.error().message;
  const auto& got = back->batches.at(0);
  EXPECT_TRUE(got == batch);
  EXPECT_EQ(got.arguments->size(), 256u);
  EXPECT_EQ(got.argument(0), "argument 70000");
  EXPECT_EQ(got.argument(255), "argument 70255");
}

TEST(launch, gathers_arguments_of_scattered_partitions) {
  task_batch batch;
  batch.count = 3;
  batch.partitions = {12, 5, 6};
  batch.arguments = numbered_column(10);
  batch.argument_offset = 5;
  batch.by_partition = true;
  const auto back = decode<executor_orders>(*encode(with(batch)));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->batches[0].argument(0), "argument 7");
  EXPECT_EQ(back->batches[0].argument(1), "argument 0");
  EXPECT_EQ(back->batches[0].argument(2), "argument 1");
  EXPECT_TRUE(back->batches[0] == batch);
}

TEST(launch, slices_by_offset) {
  task_batch batch;
  batch.first = 1;
  batch.count = 2;
  batch.arguments = numbered_column(10);
  batch.argument_offset = 7;
  const auto back = decode<executor_orders>(*encode(with(batch)));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->batches[0].argument(0), "argument 7");
  EXPECT_EQ(back->batches[0].argument(1), "argument 8");
}

TEST(launch, is_small_as_a_range) {
  task_batch batch;
  batch.stage = stage_id{1};
  batch.lease = lease_id{1};
  batch.first = 1'000'000;
  batch.count = 256;
  EXPECT_LT(encode(with(batch))->size(), 32u);
}

// -- what must not be sent
// ---------------------------------------------------------------------------------------------

template <class T>
void expect_unsendable(const T& value, const std::string& message) {
  const auto bytes = encode(value);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code, ec::internal);
  EXPECT_EQ(bytes.error().message, "cannot encode " + std::string{codec_name<T>()} + ": " + message);
}

TEST(encode, refuses_columns_that_do_not_fit) {
  auto outcomes = samples::mixed_outcomes();
  outcomes.failures.pop_back();
  expect_unsendable(outcomes, "failures has 1 entries for 2 tasks that did not succeed");
  outcomes = samples::mixed_outcomes();
  outcomes.failures[0].index = 0;
  expect_unsendable(outcomes, "failures names task 0, which did not fail");
  outcomes = samples::mixed_outcomes();
  std::swap(outcomes.failures[0], outcomes.failures[1]);
  expect_unsendable(outcomes, "failures are not in order");
  outcomes = samples::mixed_outcomes();
  outcomes.results.push_back("one too many");
  expect_unsendable(outcomes, "results has 5 entries for 4");
  outcomes = samples::mixed_outcomes();
  outcomes.results.data += 'x';
  expect_unsendable(outcomes, "results has ends that do not fit its data");
  auto batch = samples::scattered_batch();
  batch.argument_offset = 2;
  expect_unsendable(with(batch), "batches[0].arguments end before the batch's last task");
  batch.by_partition = true;
  batch.argument_offset = 5;
  expect_unsendable(with(batch), "batches[0].arguments end before the batch's last task");
  batch = samples::scattered_batch();
  batch.partitions.pop_back();
  expect_unsendable(with(batch), "batches[0].partitions has 3 entries for 4");
}

TEST(encode, refuses_what_a_gang_cannot_say) {
  auto install = samples::of<executor_orders>().front().installs.front();
  executor_orders orders;
  install.tasks = 3;
  orders.installs = {install};
  expect_unsendable(orders, "installs[0].gang has 4 entries for 3");
  orders.installs.clear();
  packed_column texts;
  texts.push_back(std::string(max_gather_size + 1, 'x'));
  orders.barriers = {{stage_id{1}, 0, 0, {0}, std::make_shared<const packed_column>(texts), ""}};
  expect_unsendable(orders, "barriers[0].texts have 16777217 bytes, at most 16777216 are allowed");
  barrier_arrival arrival;
  arrival.text = std::string(max_gather_text + 1, 'x');
  expect_unsendable(arrival, "text has 1048577 bytes, at most 1048576 are allowed");
  arrival.text.pop_back();
  EXPECT_TRUE(decode<barrier_arrival>(*encode(arrival)));
}

TEST(encode, refuses_what_has_a_part_missing) {
  expect_unsendable(job_submission{}, "job is missing");
  executor_orders orders;
  orders.grants.resize(2);
  orders.grants[0].profile = std::make_shared<const resource_profile>();
  expect_unsendable(orders, "grants[1].profile is missing");
  orders.grants.clear();
  orders.installs.resize(1);
  expect_unsendable(orders, "installs[0].program is missing");
  executor_report report;
  report.outcomes.resize(1);
  expect_unsendable(report, "outcomes[0] is missing");
}

// -- what must not be believed: bytes made by hand
// ---------------------------------------------------------------------

std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(0x80 | (value & 0x7f));
  return out + static_cast<char>(value);
}
std::string number(unsigned field, std::uint64_t value) { return varint(field << 3) + varint(value); }
std::string piece(unsigned field, const std::string& content) {
  return varint(field << 3 | 2) + varint(content.size()) + content;
}
std::string fixed(std::initializer_list<std::uint32_t> values) {
  std::string out;
  for (auto value : values)
    for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(value >> shift & 0xff);
  return out;
}
std::string column(std::initializer_list<std::uint32_t> ends, const std::string& data) {
  return piece(1, fixed(ends)) + piece(2, data);
}

template <class T>
void expect_malformed(const std::string& body, const std::string& message) {
  const auto decoded = decode<T>('\x01' + body);
  ASSERT_FALSE(decoded) << "taken, instead of: " << message;
  EXPECT_EQ(decoded.error().code, ec::malformed);
  EXPECT_EQ(decoded.error().message, "malformed " + std::string{codec_name<T>()} + ": " + message);
}

TEST(decode, refuses_unknown_enumerators) {
  expect_malformed<hello>(number(2, 3) + piece(4, std::string(32, 'n')), "role holds the unknown value 3");
  expect_malformed<job_progress>(number(3, 5), "state holds the unknown value 5");
  expect_malformed<job_progress>(number(3, ~0ull), "state holds the unknown value -1");
  expect_malformed<job_progress>(piece(4, number(5, 9)), "stages[0].state holds the unknown value 9");
  expect_malformed<launch_report>(piece(1, number(3, 4)), "statuses[0].state holds the unknown value 4");
  expect_malformed<job_end>(piece(2, number(1, 18)), "failure.code holds the unknown value 18");
  expect_malformed<outcome_batch>(number(4, 1) + piece(8, "\x06"), "statuses holds the unknown value 6");
  expect_malformed<job_submission>(piece(1, piece(3, piece(5, number(2, 3)))),
                                   "job.stages[0].dependencies[0].kind holds the unknown value 3");
  expect_malformed<executor_report>(piece(7, number(4, 2)), "arrivals[0].kind holds the unknown value 2");
}

TEST(decode, refuses_nonces_of_another_size) {
  expect_malformed<hello>(piece(4, std::string(31, 'n')), "client_nonce has 31 bytes, must have 32");
  expect_malformed<peer_registration>(piece(1, piece(1, std::string(33, 'n'))),
                                      "proof.client_nonce has 33 bytes, must have 32");
}

TEST(decode, refuses_columns_that_do_not_fit) {
  const auto launch = [](const std::string& batch) { return piece(8, batch); };
  expect_malformed<executor_orders>(launch(number(5, 4) + piece(6, fixed({1, 2, 3}))),
                                    "batches[0].partitions has 3 entries for 4");
  expect_malformed<executor_orders>(launch(number(5, 2) + piece(7, "\x01")), "batches[0].attempts has 1 entries for 2");
  expect_malformed<executor_orders>(launch(number(5, 2) + piece(8, column({1}, "x"))),
                                    "batches[0].arguments has 1 entries for 2");
  expect_malformed<executor_orders>(launch(number(5, 2) + piece(8, column({2, 1}, "xx"))),
                                    "batches[0].arguments has ends that do not fit its data");
  expect_malformed<executor_orders>(launch(number(5, 2) + piece(8, column({1, 3}, "xx"))),
                                    "batches[0].arguments has ends that do not fit its data");
  expect_malformed<outcome_batch>(number(4, 2) + piece(8, std::string(3, '\0')), "statuses has 3 entries for 2");
  expect_malformed<outcome_batch>(number(4, 2) + piece(9, column({1}, "x")), "results has 1 entries for 2");
  expect_malformed<outcome_batch>(number(4, 1) + piece(10, number(1, 0)),
                                  "failures has 1 entries for 0 tasks that did not succeed");
  expect_malformed<outcome_batch>(number(4, 1) + piece(8, "\x01") + piece(10, number(1, 1)),
                                  "failures names task 1, which did not fail");
  const auto counted = [](std::uint64_t index, std::uint64_t accumulator) {
    return piece(16, number(1, index) + number(2, accumulator));
  };
  const auto named = number(4, 2) + piece(8, std::string{"\0\1", 2}) + piece(10, number(1, 1)) + piece(15, "n");
  expect_malformed<outcome_batch>(named + counted(1, 0), "counted names task 1, which did not succeed");
  expect_malformed<outcome_batch>(named + counted(2, 0), "counted names task 2, which did not succeed");
  expect_malformed<outcome_batch>(named + counted(0, 1), "counted names accumulator 1 of 1");
  expect_malformed<outcome_batch>(named + counted(0, 0) + counted(0, 0), "counted is not in order");
  expect_malformed<outcome_batch>(number(4, 2) + piece(15, "n") + counted(1, 0) + counted(0, 0),
                                  "counted is not in order");
  expect_malformed<outcome_batch>(named + piece(15, std::string(201, 'n')), "accumulators has a name of 201 bytes");
  expect_malformed<outcome_batch>(named + piece(15, ""), "accumulators has a name of 0 bytes");
  expect_malformed<executor_report>(piece(4, piece(3, fixed({1, 2})) + piece(4, "\x01")),
                                    "refusals[0].attempts has 1 entries for 2");
  expect_malformed<job_end>(piece(4, piece(1, column({1}, "x")) + piece(2, piece(1, number(2, 1)))),
                            "results.elsewhere names partition 1 of 1");
  expect_malformed<job_submission>(
      piece(1, piece(3, number(3, 2) + piece(6, piece(1, "")) + piece(7, column({1}, "x")))),
      "job.stages[0].arguments has 1 entries for 2");
}

TEST(decode, refuses_what_a_gang_cannot_say) {
  const auto gang = [](const std::string& content) {
    return piece(7, number(5, 2) + piece(7, piece(1, "")) + piece(10, content));
  };
  expect_malformed<executor_orders>(gang(column({1}, "a")), "installs[0].gang has 1 entries for 2");
  expect_malformed<executor_orders>(gang(""), "installs[0].gang has 0 entries for 2");
  expect_malformed<executor_orders>(gang(column({2, 1}, "ab")), "installs[0].gang has ends that do not fit its data");
  expect_malformed<executor_orders>(piece(11, piece(5, column({2}, "a"))),
                                    "barriers[0].texts has ends that do not fit its data");
  expect_malformed<executor_orders>(piece(11, piece(4, fixed({0, 1})) + piece(5, column({1}, "a"))),
                                    "barriers[0].texts has 1 entries and is for partition 1");
  const auto size = static_cast<std::uint32_t>(max_gather_size) + 1;
  expect_malformed<executor_orders>(piece(11, piece(5, column({size}, std::string(size, 'x')))),
                                    "barriers[0].texts have 16777217 bytes, at most 16777216 are allowed");
  expect_malformed<executor_report>(piece(7, piece(5, std::string(max_gather_text + 1, 'x'))),
                                    "arrivals[0].text has 1048577 bytes, at most 1048576 are allowed");
  expect_malformed<job_submission>(piece(1, piece(3, piece(6, piece(1, "")) + number(14, ~0ull))),
                                   "job.stages[0].sync_timeout is negative");
}

TEST(decode, refuses_tasks_that_no_stage_has) {
  const auto launch = [](const std::string& batch) { return piece(8, batch); };
  expect_malformed<executor_orders>(launch(number(5, (1u << 20) + 1)),
                                    "batches[0].count is 1048577, at most 1048576 is allowed");
  expect_malformed<executor_orders>(launch(number(4, 99'999'999) + number(5, 2)),
                                    "batches[0].partitions reach 100000000, beyond the largest possible stage");
  expect_malformed<executor_orders>(launch(number(4, 0xffffffff) + number(5, 1)),
                                    "batches[0].partitions reach 4294967295, beyond the largest possible stage");
  expect_malformed<executor_orders>(launch(number(5, 1) + piece(6, fixed({100'000'000}))),
                                    "batches[0].partitions reach 100000000, beyond the largest possible stage");
  expect_malformed<placement_answer>(piece(1, piece(1, number(2, 99'999'999)) + number(2, 2)),
                                     "placements[0].count reaches beyond the largest possible stage");
}

TEST(decode, refuses_what_has_a_part_missing) {
  expect_malformed<job_submission>("", "job is missing");
  expect_malformed<job_submission>(piece(1, piece(3, number(3, 1))),
                                   "job.stages[0].program is neither native nor a command");
  expect_malformed<executor_orders>(piece(6, number(1, 1)), "grants[0].profile is missing");
  expect_malformed<executor_orders>(piece(7, number(1, 1)), "installs[0].program is neither native nor a command");
  expect_malformed<event_batch>(piece(1, number(1, 1)), "records[0].content is missing");
}

TEST(decode, refuses_indexes_that_point_nowhere) {
  const auto input = [](const std::string& content) { return piece(7, piece(7, piece(1, "")) + piece(8, content)); };
  expect_malformed<executor_orders>(input(piece(3, std::string{"\x00", 1}) + piece(4, std::string{"\x00", 1})),
                                    "installs[0].inputs[0].endpoint_of_map names endpoint 0 of 0");
  expect_malformed<executor_orders>(input(piece(2, "") + piece(3, std::string{"\x00", 1})),
                                    "installs[0].inputs[0].attempt_of_map has 0 entries for 1 map outputs");
  expect_malformed<executor_orders>(input(piece(5, piece(1, std::string(4, '\0')))),
                                    "installs[0].inputs[0].empty_of_map has 1 entries for 0 map outputs");
}

TEST(decode, refuses_inputs_of_a_batch_that_point_nowhere_or_lack_a_task) {
  const auto batch = [](const std::string& input) { return piece(8, number(5, 1) + piece(9, input)); };
  const std::string zero(1, '\0');
  expect_malformed<executor_orders>(batch(piece(3, zero) + piece(4, zero)), "batches[0].inputs name endpoint 0 of 0");
  expect_malformed<executor_orders>(batch(piece(2, "") + piece(3, zero)), "batches[0].inputs differ in length");
  expect_malformed<executor_orders>(batch(piece(2, "")), "batches[0].inputs have no columns");
  expect_malformed<executor_orders>(batch(piece(2, "") + piece(3, zero + zero) + piece(4, zero + zero)),
                                    "batches[0].inputs.endpoint_of_task has 2 entries for 1");
}

TEST(decode, refuses_amounts_and_names_that_cannot_be) {
  expect_malformed<executor_info>(number(8, ~0ull), "slots is negative");
  expect_malformed<executor_info>(piece(7, number(2, ~0ull)), "capacity.memory is negative");
  const auto takes = [](const std::string& amount) { return piece(6, piece(2, piece(1, "cpus") + piece(3, amount))); };
  constexpr std::uint64_t whole = 1'000'000'000'000;
  expect_malformed<executor_info>(takes(number(1, 1ull << 63)), "profile.task.amount.whole is negative");
  expect_malformed<executor_info>(takes(number(2, ~0ull)), "profile.task.amount.fraction is negative");
  expect_malformed<executor_info>(takes(number(2, whole)), "profile.task.amount.fraction is not below 10^12");
  EXPECT_EQ(decode<executor_info>('\x01' + takes(number(1, 2) + number(2, whole - 1)))->profile.task.at("cpus"),
            share{share::whole(3).units - 1});
  expect_malformed<executor_info>(piece(6, piece(1, piece(1, "gpu")) + piece(1, piece(1, "gpu"))),
                                  "profile.executor.name repeats an earlier one");
  expect_malformed<executor_info>(piece(6, piece(1, number(2, 1))), "profile.executor.name is empty");
  expect_malformed<executor_info>(piece(12, number(4, 65536)), "blocks.port is 65536, at most 65535 is possible");
  expect_malformed<executor_info>(piece(4, std::string(1025, 'h')), "host has 1025 bytes, at most 1024 are allowed");
  expect_malformed<goodbye>(piece(3, std::string((1 << 20) + 1, 'r')),
                            "reason has 1048577 bytes, at most 1048576 are allowed");
}

TEST(decode, refuses_lists_without_end) {
  std::string many;
  for (int i = 0; i <= 1 << 20; ++i) many += std::string{"\x0a\x00", 2};
  expect_malformed<feasibility_query>(many, "shapes has 1048577 entries, at most 1048576 are allowed");
}

TEST(decode, refuses_nesting_without_end) {
  // Groups that nobody knows, one in the other: no recursion may follow them to the bottom.
  std::string deep;
  for (int i = 0; i < 200'000; ++i) deep += "\xa3\x06"; // begin of group 100
  expect_malformed<goodbye>(deep, "the bytes are not its Protobuf message (cut off or damaged)");
}

TEST(decode, is_not_led_by_a_length_beyond_the_end) {
  // A text of 2 GB that is not there.
  expect_malformed<goodbye>("\x1a\xff\xff\xff\xff\x07" + std::string(10, 'x'),
                            "the bytes are not its Protobuf message (cut off or damaged)");
}

} // namespace
} // namespace troupe
