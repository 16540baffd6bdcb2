// expect:
#include "common.hpp"

// Types and functions that stand close to those which the other programs are refused for: it must compile.
struct reading {
  std::int64_t at = 0;
  std::string text;
  bool operator<(const reading& other) const { return at < other.at; }
};
template <class Archive>
void troupe_serialize(Archive& archive, reading& r) {
  archive(r.at, r.text);
}

struct with_cache {
  std::int64_t n = 0;
  std::vector<int> scratch; // need not travel
};
template <>
inline constexpr bool troupe::names_some_members<with_cache> = true;
template <class Archive>
void troupe_serialize(Archive& archive, with_cache& c) {
  archive(c.n);
}

struct in_two_calls {
  std::int64_t n = 0;
  std::string text;
};
template <>
inline constexpr bool troupe::names_some_members<in_two_calls> = true;
template <class Archive>
void troupe_serialize(Archive& archive, in_two_calls& t) {
  archive(t.n);
  archive(t.text);
}

struct base {
  std::string name;
};
struct derived : base {
  std::int64_t n = 0;
};
template <class Archive>
void troupe_serialize(Archive& archive, derived& d) {
  archive(d.name, d.n);
}

struct tag {};
struct tagged : tag {
  std::int64_t n = 0;
};
template <class Archive>
void troupe_serialize(Archive& archive, tagged& t) {
  archive(t.n);
}

// Of a class with a constructor nobody can count the members.
class counter {
public:
  counter() = default;
  explicit counter(std::int64_t n) : n_(n) {}

private:
  std::int64_t n_ = 0;
  std::int64_t unused_ = 0;
  template <class Archive>
  friend void troupe_serialize(Archive& archive, counter& c) {
    archive(c.n_);
  }
};

// A hook for several types takes what it is given.
struct shared_hook {
  std::int64_t n = 0;
};
template <class Archive, class T>
requires std::is_same_v<std::remove_cvref_t<T>, shared_hook>
void troupe_serialize(Archive& archive, T&& value) { archive(value.n); }

// What is specialised may use another type's.
struct as_number {
  explicit as_number(std::int64_t v) : n(v) {}
  std::int64_t n;
};
template <>
struct troupe::serializer<as_number> : troupe::serializer<std::int64_t> {
  static void write(encoder& out, const as_number& value) { out(value.n); }
  static as_number read(decoder& in) { return as_number{in.number<std::int64_t>()}; }
};

int main() {
  session().range(0, 9).map([](std::int64_t n) { return shared_hook{n}; }).collect();
  session().range(0, 9).map([](std::int64_t n) { return as_number{n}; }).collect();
  const auto flags = session().range(0, 9).map([](std::int64_t n) { return std::pair{n, n > 3}; });
  flags.left_join(flags).full_join(flags).cogroup(flags).count();
  flags.values().top(3);
  flags.values().first();
  session().text_files("x").map([](const std::string& line) -> const std::string& { return line; }).collect();
  auto readings = session().range(0, 9).map([](std::int64_t n) { return reading{n, {}}; });
  readings.sorted().top(3);
  readings.map([](auto&& r) { return std::pair{std::vector{r}, r}; }).sort_by_key().group_by_key().collect();
  session().range(0, 9).map([](std::int64_t n) { return with_cache{n, {}}; }).collect();
  session().range(0, 9).map([](std::int64_t n) { return in_two_calls{n, {}}; }).collect();
  session().range(0, 9).map([](std::int64_t n) { return derived{{}, n}; }).collect();
  session().range(0, 9).map([](std::int64_t n) { return tagged{{}, n}; }).collect();
  session().range(0, 9).map([](std::int64_t n) { return counter{n}; }).cache().collect();
  session().range(0, 9).map([](std::int64_t n) { return std::make_unique<std::int64_t>(n); }).count();
}
