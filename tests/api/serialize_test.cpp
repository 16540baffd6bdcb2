#include <gtest/gtest.h>

#include <deque>
#include <forward_list>
#include <limits>
#include <list>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/wrappers.pb.h>

#include <troupe/runtime/api/memory_of.hpp>
#include <troupe/runtime/api/serialize.hpp>

namespace {

using namespace std::string_literals;

enum class color : std::uint8_t { red = 1, blue = 200 };

struct point {
  double x = 0;
  std::int32_t weight = 0;
  std::string label;
  bool operator==(const point&) const = default;
};
template <class Archive>
void troupe_serialize(Archive& archive, point& p) {
  archive(p.x, p.weight, p.label);
}

/// Private members, reached by a friend.
class secretive {
public:
  secretive() = default;
  explicit secretive(int value) : value_(value) {}
  bool operator==(const secretive&) const = default;
  template <class Archive>
  friend void troupe_serialize(Archive& archive, secretive& s) {
    archive(s.value_);
  }

private:
  int value_ = 0;
};

/// A type of a type: nesting is decided by the bytes.
struct tree {
  int value = 0;
  std::vector<tree> children;
  bool operator==(const tree&) const = default;
};
template <class Archive>
void troupe_serialize(Archive& archive, tree& t) {
  archive(t.value, t.children);
}

struct silent {
  int value = 0;
};
template <class Archive>
void troupe_serialize(Archive&, silent&) {}

struct tag {
  bool operator==(const tag&) const = default;
};

/// Structs of numbers need no word. There is padding in this one.
struct reading {
  char sensor = 0;
  double values[2] = {};
  color shade = color::red;
  struct {
    std::int64_t from, to;
  } span = {};
  bool operator==(const reading& r) const {
    return std::tie(sensor, values[0], values[1], shade, span.from, span.to) ==
           std::tie(r.sensor, r.values[0], r.values[1], r.shade, r.span.from, r.span.to);
  }
};

/// Private members, and a word for them.
class range {
public:
  range() = default;
  range(int first, int last) : first_(first), last_(last) {}
  bool operator==(const range&) const = default;

private:
  int first_ = 0;
  int last_ = 0;
};

/// Cannot be default constructed: has a serializer of its own.
class positive {
public:
  explicit positive(int value) : value_(value) {}
  int value() const { return value_; }

private:
  int value_;
};

} // namespace

template <>
inline constexpr bool troupe::travels_as_bytes<range> = true;

template <>
struct troupe::serializer<positive> {
  static void write(encoder& out, const positive& value) { out.number(value.value()); }
  static positive read(decoder& in) {
    const auto value = in.number<int>();
    if (value <= 0) throw decode_error("not positive");
    return positive{value};
  }
};

namespace {

using troupe::decode_error;
using troupe::decode_value;
using troupe::encode_value;

/// The value survives, and every prefix of its bytes and every extension is refused.
template <class T>
void expect_round_trip(const T& value) {
  const auto bytes = encode_value(value);
  EXPECT_EQ(decode_value<T>(bytes), value);
  EXPECT_THROW(decode_value<T>(bytes + "x"), decode_error);
  for (std::size_t n = 0; n < bytes.size(); ++n)
    EXPECT_THROW(decode_value<T>(std::string_view{bytes}.substr(0, n)), decode_error) << n << " of " << bytes.size();
}

TEST(serialize, every_supported_type_survives_and_no_prefix_of_it_is_taken) {
  expect_round_trip(true);
  expect_round_trip('x');
  expect_round_trip(std::numeric_limits<std::int64_t>::min());
  expect_round_trip(std::numeric_limits<std::uint16_t>::max());
  expect_round_trip(-0.1);
  expect_round_trip(1.5f);
  expect_round_trip(color::blue);
  expect_round_trip(tag{});
  expect_round_trip(std::tuple<>{});
  expect_round_trip("text with \0 inside"s);
  expect_round_trip(std::vector<int>{1, -2, 3});
  expect_round_trip(std::vector<bool>{true, false, true});
  expect_round_trip(std::vector<std::string>{"", "a", "bc"});
  expect_round_trip(std::deque<std::string>{"", "a", "bc"});
  expect_round_trip(std::list<int>{1, -2, 3});
  expect_round_trip(std::forward_list<std::string>{"b", "a", ""});
  expect_round_trip(std::array<short, 3>{1, 2, 3});
  expect_round_trip(std::pair{"key"s, 7L});
  expect_round_trip(std::tuple{1, "two"s, 3.0});
  expect_round_trip(std::optional<std::string>{});
  expect_round_trip(std::optional{"some"s});
  expect_round_trip(std::variant<std::monostate, int, std::string>{});
  expect_round_trip(std::variant<int, std::string, point>{point{1, 2, "x"}});
  expect_round_trip(std::map<std::string, std::vector<int>>{{"a", {1}}, {"b", {}}});
  expect_round_trip(std::set<std::string>{"x", "y"});
  expect_round_trip(std::unordered_map<std::string, int>{{"one", 1}, {"two", 2}, {"three", 3}});
  expect_round_trip(std::unordered_set<int>{5, 6, 7});
  expect_round_trip(std::multimap<std::string, int>{{"a", 2}, {"a", 1}, {"b", 3}});
  expect_round_trip(std::multiset<int>{5, 5, 6});
  expect_round_trip(std::unordered_multimap<std::string, int>{{"a", 2}, {"a", 1}, {"b", 3}});
  expect_round_trip(std::unordered_multiset<std::string>{"x", "x", "y"});
  expect_round_trip(point{2.5, -3, "label"});
  expect_round_trip(secretive{42});
  expect_round_trip(tree{1, {{2, {}}, {3, {{4, {}}}}}});
  expect_round_trip(reading{'a', {1.5, -2}, color::blue, {3, 4}});
  expect_round_trip(std::vector<reading>(3));
  expect_round_trip(std::optional{range{1, 2}});
  EXPECT_EQ(decode_value<positive>(encode_value(positive{3})).value(), 3);
}

TEST(serialize, structs_of_numbers_travel_as_bytes_with_nothing_between_them) {
  reading a, b;
  std::memset(static_cast<void*>(&a), 0xff, sizeof a);
  std::memset(static_cast<void*>(&b), 0x11, sizeof b);
  for (auto* r : {&a, &b}) {
    r->sensor = 'x';
    r->values[0] = r->values[1] = 0.5;
    r->shade = color::red;
    r->span = {1, 2};
  }
  EXPECT_EQ(encode_value(a), encode_value(b)) << "equal keys have equal bytes";
  EXPECT_EQ(encode_value(a).size(), sizeof(reading));
}

/// What pointers may hide in, which is for the compiler to find.
struct with_pointer {
  int number;
  const char* text;
};
struct with_pointers_inside {
  int number;
  struct {
    int more;
    const int* values[2];
  } inner;
};
struct with_view {
  int number;
  std::string_view text;
};
struct with_reference {
  int number;
  const int& other;
};
struct with_function {
  int number;
  void (*call)();
};
struct with_text {
  int number;
  std::string text;
};
struct large {
  int numbers[257];
};
struct sort_record {
  char key[10];
  char rest[90];
};
/// What also takes numbers, and is none.
struct with_choice {
  int number;
  std::optional<int> other;
};
struct with_pointer_in_a_variant {
  int number;
  std::variant<int, const char*> other;
};
struct with_pointer_behind_nothing {
  int number;
  std::monostate nothing;
  const char* text;
};
constexpr int zero = 0;
struct with_bound_reference {
  int number;
  const int& other = zero;
};
struct takes_anything {
  takes_anything() = default;
  template <class F>
  takes_anything(F) {} // NOLINT: implicit on purpose
  const char* text = nullptr;
};
struct with_what_takes_anything {
  int number;
  takes_anything other;
};
struct with_constant {
  const int number = 0;
  int other = 0;
};
enum class truth : bool { no, yes };
struct with_truth {
  truth value;
  int number;
};
static_assert(!troupe::detail::is_plain_bytes<with_truth>);
static_assert(troupe::detail::is_plain_bytes<reading> && troupe::detail::is_plain_bytes<range>);
static_assert(!troupe::detail::is_plain_bytes<with_pointer> && !troupe::detail::is_plain_bytes<with_pointers_inside>);
static_assert(!troupe::detail::is_plain_bytes<with_view> && !troupe::detail::is_plain_bytes<with_reference>);
static_assert(!troupe::detail::is_plain_bytes<with_function> && !troupe::detail::is_plain_bytes<with_text>);
static_assert(!troupe::detail::is_plain_bytes<large> && troupe::detail::is_plain_bytes<sort_record>);
static_assert(!troupe::detail::is_plain_bytes<with_choice> && !troupe::detail::is_plain_bytes<with_constant>);
static_assert(!troupe::detail::is_plain_bytes<with_pointer_in_a_variant>);
static_assert(!troupe::detail::is_plain_bytes<with_pointer_behind_nothing>);
static_assert(!troupe::detail::is_plain_bytes<with_bound_reference>);
static_assert(!troupe::detail::is_plain_bytes<with_what_takes_anything>);
static_assert(troupe::detail::can_travel<std::map<std::string, std::vector<reading>>>::value);
static_assert(!troupe::detail::can_travel<std::pair<int, std::optional<with_text>>>::value);
static_assert(!troupe::detail::can_travel<std::vector<std::string_view>>::value);
static_assert(troupe::detail::can_travel<positive>::value && troupe::detail::can_travel<tree>::value);

struct with_scratch {
  std::string name;
  std::vector<int> scratch;
  int number = 0;
};
template <class Archive>
void troupe_serialize(Archive& archive, with_scratch& s) {
  archive(s.name);
  archive(s.number);
}

/// What clang cannot look into while it compiles travels where its author says so.
struct with_bits {
  unsigned low : 3;
  unsigned high : 5;
  bool operator==(const with_bits&) const = default;
};
struct with_union {
  int kind;
  union {
    int whole;
    float part;
  };
  bool operator==(const with_union& other) const { return kind == other.kind && whole == other.whole; }
};
struct with_truth_named {
  truth value;
  int number;
  bool operator==(const with_truth_named&) const = default;
};
template <class Archive>
void troupe_serialize(Archive& archive, with_truth_named& s) {
  archive(s.value, s.number);
}
} // namespace
template <>
inline constexpr bool troupe::names_some_members<with_scratch> = true;
template <>
inline constexpr bool troupe::travels_as_bytes<with_bits> = true;
template <>
inline constexpr bool troupe::travels_as_bytes<with_union> = true;
namespace {

TEST(serialize, what_the_compiler_cannot_look_into_survives_where_that_is_said) {
  expect_round_trip(truth::yes);
  expect_round_trip(with_truth_named{truth::yes, 3});
  expect_round_trip(with_bits{5, 17});
  expect_round_trip(with_union{1, {7}});
}

TEST(serialize, members_may_stay_behind_where_that_is_said) {
  const auto back = decode_value<with_scratch>(encode_value(with_scratch{"n", {1, 2}, 3}));
  EXPECT_EQ(back.name, "n");
  EXPECT_EQ(back.number, 3);
  EXPECT_TRUE(back.scratch.empty());
}

TEST(serialize, protobuf_messages_travel_as_what_they_are) {
  google::protobuf::StringValue text;
  text.set_value("a text");
  const auto bytes = encode_value(std::vector{text, google::protobuf::StringValue{}});
  const auto back = decode_value<std::vector<google::protobuf::StringValue>>(bytes);
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[0].value(), "a text");
  EXPECT_EQ(back[1].value(), "");
  for (std::size_t n = 0; n < bytes.size(); ++n)
    EXPECT_THROW(decode_value<std::vector<google::protobuf::StringValue>>(std::string_view{bytes}.substr(0, n)),
                 decode_error);
  EXPECT_THROW(decode_value<google::protobuf::StringValue>("\x02\x0a\x05"), decode_error) << "a length that lies";
}

TEST(serialize, numbers_are_little_endian_and_lengths_are_short) {
  EXPECT_EQ(encode_value(std::uint32_t{0x01020304}), "\x04\x03\x02\x01"s);
  EXPECT_EQ(encode_value(std::vector<std::uint16_t>{0x0102, 0x0304}), "\x02\x02\x01\x04\x03"s);
  EXPECT_EQ(encode_value("ab"s), "\x02"
                                 "ab"s);
  std::string length;
  troupe::encoder{length}.size(300);
  EXPECT_EQ(length, "\xac\x02"s);
  EXPECT_EQ(troupe::decoder{length}.size(), 300u);
}

TEST(serialize, the_largest_length_survives_and_a_longer_one_is_refused) {
  std::string bytes;
  troupe::encoder{bytes}.size(std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(bytes.size(), 10u);
  EXPECT_EQ(troupe::decoder{bytes}.size(), std::numeric_limits<std::uint64_t>::max());
  bytes.back() = '\x02';
  EXPECT_THROW(troupe::decoder{bytes}.size(), decode_error);
  EXPECT_THROW(troupe::decoder{std::string(11, '\xff')}.size(), decode_error);
}

TEST(serialize, equal_unordered_containers_have_equal_bytes) {
  std::unordered_map<int, std::string> up, down(1000);
  for (int i = 0; i < 100; ++i) up.emplace(i, std::to_string(i));
  for (int i = 99; i >= 0; --i) down.emplace(i, std::to_string(i));
  EXPECT_EQ(encode_value(up), encode_value(down));
  std::unordered_set<std::string> a{"x", "y", "z"}, b(100);
  for (const auto* s : {"z", "y", "x"}) b.insert(s);
  EXPECT_EQ(encode_value(a), encode_value(b));
}

TEST(serialize, what_takes_memory_beside_its_own_size_is_counted) {
  using troupe::detail::memory_outside;
  const std::string text(1000, 'x');
  EXPECT_EQ(memory_outside(7), 0u);
  for (const auto bytes :
       {memory_outside(text), memory_outside(std::vector{text}), memory_outside(std::deque{text}),
        memory_outside(std::list{text}), memory_outside(std::forward_list{text}), memory_outside(std::array{text}),
        memory_outside(std::set{text}), memory_outside(std::multimap<int, std::string>{{1, text}}),
        memory_outside(std::tuple{1, text}), memory_outside(std::optional{text}),
        memory_outside(std::variant<int, std::string>{text}), memory_outside(tree{1, {}}) + 1000,
        memory_outside(point{1, 2, text})}) {
    EXPECT_GE(bytes, 1000u);
    EXPECT_LE(bytes, 1200u);
  }
  EXPECT_GE(memory_outside(std::list<int>(100)), 100 * (sizeof(int) + 2 * sizeof(void*)));
  EXPECT_GE(memory_outside(std::deque<int>(100)), 100 * sizeof(int));
}

TEST(serialize, a_count_above_the_bytes_left_is_refused_before_memory_is_taken) {
  std::string bytes;
  troupe::encoder out{bytes};
  out.size(std::uint64_t{1} << 60);
  out.bytes("abcdefgh");
  EXPECT_THROW(decode_value<std::string>(bytes), decode_error);
  EXPECT_THROW(decode_value<std::vector<std::string>>(bytes), decode_error);
  EXPECT_THROW(decode_value<std::vector<std::uint64_t>>(bytes), decode_error);
  EXPECT_THROW((decode_value<std::map<std::string, int>>(bytes)), decode_error);
  // Enough bytes for the count, not for as many numbers.
  EXPECT_THROW(decode_value<std::vector<std::uint64_t>>("\x08"
                                                        "12345678"s),
               decode_error);
}

TEST(serialize, bytes_that_no_writer_makes_are_refused) {
  EXPECT_THROW(decode_value<bool>("\x02"), decode_error);
  EXPECT_THROW(decode_value<std::optional<int>>("\x05"
                                                "abcd"),
               decode_error);
  EXPECT_THROW((decode_value<std::variant<char, bool>>("\x02\x01")), decode_error);
  EXPECT_THROW(decode_value<std::set<char>>("\x02xx"), decode_error);
  EXPECT_THROW(decode_value<tag>("\x01"), decode_error);
  EXPECT_THROW(decode_value<std::tuple<>>("\x01"), decode_error);
  EXPECT_THROW(decode_value<positive>(encode_value(-1)), decode_error);
}

TEST(serialize, nesting_has_an_end) {
  const auto chain = [](int depth) { // each level: its number and one child; the last has none
    std::string bytes;
    for (int i = 0; i < depth; ++i) bytes += encode_value(std::pair{i, std::uint8_t{i + 1 < depth}});
    return bytes;
  };
  EXPECT_NO_THROW(decode_value<tree>(chain(troupe::decoder::level::deepest)));
  EXPECT_THROW(decode_value<tree>(chain(troupe::decoder::level::deepest + 1)), decode_error);
  EXPECT_THROW(decode_value<tree>(chain(1'000'000)), decode_error);
}

TEST(serialize, a_hook_that_names_no_member_is_found_out) { EXPECT_THROW(encode_value(silent{}), std::logic_error); }

} // namespace
