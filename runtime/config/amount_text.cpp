#include <troupe/runtime/config/amount_text.hpp>

#include <array>
#include <charconv>
#include <cstdint>

namespace troupe {
namespace {

struct unit {
  std::string_view name;
  std::int64_t nanoseconds;
};

// Ascending; `m` follows `min`, so that the longer spelling is the one that is written.
constexpr std::array<unit, 8> units{{{"ns", 1},
                                     {"us", 1'000},
                                     {"ms", 1'000'000},
                                     {"s", 1'000'000'000},
                                     {"m", 60'000'000'000},
                                     {"min", 60'000'000'000},
                                     {"h", 3'600'000'000'000},
                                     {"d", 86'400'000'000'000}}};
constexpr std::int64_t most_days = 100'000;

error bad_time(std::string_view text) {
  return make_error(ec::invalid_configuration,
                    "`" + std::string{text} + "` is not a time such as 500ms, 10s, 5min, 2h or 1d");
}

} // namespace

result<duration> parse_time(std::string_view text) {
  if (text == "0") return duration{0};
  const auto digits = text.find_first_not_of("0123456789");
  if (digits == 0 || digits == std::string_view::npos) return bad_time(text);
  if (text[0] == '0' && digits > 1) return bad_time(text);
  std::int64_t number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + digits, number);
  if (status != std::errc{}) return bad_time(text);
  for (const auto& u : units) {
    if (text.substr(digits) != u.name) continue;
    if (number > units.back().nanoseconds * most_days / u.nanoseconds) return bad_time(text);
    return duration{number * u.nanoseconds};
  }
  return bad_time(text);
}

std::string time_to_string(duration time) {
  const auto count = time.count();
  if (count == 0) return "0s";
  std::string_view name = "ns";
  std::int64_t size = 1;
  for (const auto& u : units) {
    if (count % u.nanoseconds != 0) continue;
    name = u.name;
    size = u.nanoseconds;
  }
  return std::to_string(count / size) + std::string{name};
}

result<std::vector<std::string>> parse_list(std::string_view text) {
  std::vector<std::string> out;
  if (text.empty()) return out;
  std::size_t begin = 0;
  while (true) {
    const auto comma = text.find(',', begin);
    const auto element = text.substr(begin, comma == std::string_view::npos ? comma : comma - begin);
    if (element.empty())
      return make_error(ec::invalid_configuration, "`" + std::string{text} + "` has an empty element");
    out.emplace_back(element);
    if (comma == std::string_view::npos) return out;
    begin = comma + 1;
  }
}

} // namespace troupe
