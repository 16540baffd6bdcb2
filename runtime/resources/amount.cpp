#include <troupe/runtime/resources/amount.hpp>

#include <array>
#include <charconv>
#include <limits>
#include <optional>

#include <troupe/runtime/resources/quote.hpp>

namespace troupe {
namespace {

using detail::quote;

__extension__ typedef unsigned __int128 unsigned_int128;

constexpr std::int64_t max_count = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t fraction_digits = 12;

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

constexpr bool all_digits(std::string_view text) noexcept {
  for (const char c : text)
    if (!is_digit(c)) return false;
  return !text.empty();
}

/// Whole numbers as people write them: `007` is a slip (or somebody's octal), not 7.
constexpr bool is_plain_number(std::string_view text) noexcept {
  return all_digits(text) && (text.size() == 1 || text.front() != '0');
}

/// Value of a text of digits, nothing on overflow.
constexpr std::optional<std::int64_t> value_of(std::string_view digits) noexcept {
  std::int64_t value = 0;
  for (const char c : digits) {
    const std::int64_t digit = c - '0';
    if (value > (max_count - digit) / 10) return std::nullopt;
    value = value * 10 + digit;
  }
  return value;
}

error bad(std::string_view text, std::string_view why) {
  return make_error(ec::invalid_argument, quote(text) + " " + std::string{why});
}

constexpr std::string_view share_grammar = "is not an amount: write a whole number, a decimal such as 0.5, or 1/n";

result<share> parse_reciprocal(std::string_view text, std::string_view denominator) {
  if (!is_plain_number(denominator)) return bad(text, share_grammar);
  const auto n = value_of(denominator);
  if (n == 0) return bad(text, "divides by zero");
  if (!n || *n > share::units_per_whole) return bad(text, "is below the smallest amount, 0.000000000001");
  return share{share::units_per_whole / *n};
}

struct memory_unit {
  char letter;
  int shift;
};
constexpr std::array<memory_unit, 6> memory_units{{{'p', 50}, {'t', 40}, {'g', 30}, {'m', 20}, {'k', 10}, {'b', 0}}};

constexpr char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// Powers of two that a suffix stands for; nothing for one that does not exist.
constexpr std::optional<int> shift_of(std::string_view suffix) noexcept {
  if (suffix.empty()) return 20;
  const char letter = lower(suffix.front());
  const auto tail = suffix.substr(1);
  for (const auto& unit : memory_units) {
    if (unit.letter != letter) continue;
    const bool bare = tail.empty();
    const bool with_b = tail.size() == 1 && lower(tail[0]) == 'b';
    const bool with_ib = tail.size() == 2 && lower(tail[0]) == 'i' && lower(tail[1]) == 'b';
    if (bare || (letter != 'b' && (with_b || with_ib))) return unit.shift;
  }
  return std::nullopt;
}

/// Digits of an amount, `0.5` or `2`.
std::string decimal_text(int128 units) {
  // Not `-units`: the smallest number has no counterpart.
  auto rest = static_cast<unsigned_int128>(units);
  if (units < 0) rest = 0 - rest;
  std::string digits; // last one first
  while (rest > 0 || digits.size() <= fraction_digits) {
    digits += static_cast<char>('0' + static_cast<int>(rest % 10));
    rest /= 10;
  }
  std::string text{digits.rbegin(), digits.rend()};
  text.insert(text.size() - fraction_digits, ".");
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return units < 0 ? "-" + text : text;
}

} // namespace

result<share> parse_share(std::string_view text) {
  if (text.substr(0, 2) == "1/") return parse_reciprocal(text, text.substr(2));

  const auto point = text.find('.');
  const auto whole_text = text.substr(0, point);
  const auto fraction_text = point == std::string_view::npos ? std::string_view{} : text.substr(point + 1);
  const bool has_point = point != std::string_view::npos;
  const bool whole_ok = is_plain_number(whole_text) || (has_point && whole_text.empty());
  if (!whole_ok || (has_point && !all_digits(fraction_text))) return bad(text, share_grammar);
  if (fraction_text.size() > fraction_digits) return bad(text, "has more than 12 digits after the point");

  const auto whole = value_of(whole_text);
  std::string padded{fraction_text};
  padded.append(fraction_digits - padded.size(), '0');
  const std::int64_t fraction = *value_of(padded);
  if (!whole || (*whole == share::max_whole && fraction > 0))
    return bad(text, "is above 9223372036854775807, the largest amount");
  const share amount{share::whole(*whole).units + fraction};
  if (amount.is_zero()) return bad(text, "must be more than zero");
  return amount;
}

std::string to_string(share amount) {
  std::string decimal = decimal_text(amount.units);
  // The smallest n with 10^12 / n rounded down to these units, if there is one.
  if (amount.units <= 0 || amount.units >= share::units_per_whole) return decimal;
  const auto n = static_cast<std::int64_t>(share::units_per_whole / (amount.units + 1) + 1);
  if (share::units_per_whole / n == amount.units) {
    std::string reciprocal = "1/" + std::to_string(n);
    if (reciprocal.size() < decimal.size()) return reciprocal;
  }
  return decimal;
}

std::string to_decimal(share amount) {
  std::array<char, 32> text{};
  const double value = static_cast<double>(amount.units) / static_cast<double>(share::units_per_whole);
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed).ptr;
  std::string out(text.data(), end);
  return out.find('.') == std::string::npos ? out + ".0" : out;
}

result<std::int64_t> parse_count(std::string_view text) {
  if (!is_plain_number(text)) return bad(text, "is not a whole number: write decimal digits only");
  const auto value = value_of(text);
  if (!value) return bad(text, "is above 9223372036854775807, the largest whole number");
  return *value;
}

namespace {

constexpr bool is_size(std::string_view text) noexcept {
  return !text.empty() && is_digit(text.front()) && lower(text.back()) >= 'a' && lower(text.back()) <= 'z';
}

/// `without_suffix` says what a bare number would mean.
result<std::int64_t> parse_size(std::string_view text, std::string_view without_suffix) {
  std::size_t digits = 0;
  while (digits < text.size() && is_digit(text[digits])) ++digits;
  const auto number = text.substr(0, digits);
  const auto suffix = text.substr(digits);
  if (!suffix.empty() && suffix.front() == '.')
    return bad(text, "is not a memory size: fractional values are not supported, use a smaller unit (512m)");
  const auto shift = shift_of(suffix);
  if (!is_plain_number(number) || !shift)
    return bad(text, "is not a memory size: write digits and one of b k m g t p, such as 512m or 4g" +
                         std::string{without_suffix});
  const auto value = value_of(number);
  if (!value || *value > (max_count >> *shift)) return bad(text, "is above 2^63 - 1 bytes, the largest memory size");
  return *value << *shift;
}

} // namespace

result<std::int64_t> parse_memory(std::string_view text) { return parse_size(text, " (no suffix: MiB)"); }

std::string fault_of_memory_without_unit(std::string_view text, std::int64_t bytes) {
  constexpr std::int64_t least = 64 << 20;
  constexpr std::int64_t most = std::int64_t{1} << 50;
  if (text.find_first_not_of("0123456789") != std::string_view::npos) return {};
  const std::string number{text};
  if (bytes >= most)
    return number + " MiB, which is more than any machine has: write " + number + "b if bytes are meant";
  if (bytes == 0 || bytes >= least) return {};
  return number + " MiB, which is too little for any executor: write " + number + "g for GiB, or " + number +
         "m if that is meant";
}

std::string memory_to_string(std::int64_t bytes) {
  if (bytes != 0) {
    for (const auto& unit : memory_units) {
      const std::int64_t size = std::int64_t{1} << unit.shift;
      if (bytes % size == 0) return std::to_string(bytes / size) + unit.letter;
    }
  }
  return "0b";
}

result<resource_amount> parse_resource_amount(std::string_view text) {
  if (!is_size(text) && parse_share(text) && !parse_count(text))
    return bad(text, "is a fraction: only tasks support fractional resources, executors have whole amounts");
  const auto amount = is_size(text) ? parse_size(text, {}) : parse_count(text);
  if (!amount) return amount.error();
  return resource_amount{*amount, is_size(text)};
}

result<share> parse_task_amount(std::string_view text) {
  if (!is_size(text)) return parse_share(text);
  const auto bytes = parse_size(text, {});
  if (!bytes) return bytes.error();
  return share::whole(*bytes);
}

std::string amount_to_string(std::int64_t amount, bool counted) {
  return counted ? memory_to_string(amount) : std::to_string(amount);
}

} // namespace troupe
