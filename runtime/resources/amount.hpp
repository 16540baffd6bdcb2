#pragma once

/// Exact amounts. Executor amounts are whole 64-bit numbers (memory in bytes); what tasks take is fixed point, 10^12
/// units per whole, parsed from decimal text or `1/n`, rounded down. Units have 128 bits, so that every whole 64-bit
/// number is a share too. Never floating point: for every n up to 40,000 exactly n shares of `1/n` fit into one address
/// (DESIGN section 7; spec SL-15, AD-7, AD-8).

#include <compare>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include <troupe/runtime/result.hpp>

namespace troupe {

/// Wide enough for the product of any two whole amounts.
__extension__ typedef __int128 int128;

/// Most cores, and most of a custom resource that is no counted size, that an executor may have.
inline constexpr std::int64_t largest_count = 9'000'000;

/// A fixed-point amount: `units` / 10^12. Never negative once it has been parsed or built by the named functions.
struct share {
  static constexpr std::int64_t units_per_whole = 1'000'000'000'000;
  static constexpr std::int64_t max_whole = std::numeric_limits<std::int64_t>::max(); ///< largest amount of anything

  int128 units = 0;

  constexpr auto operator<=>(const share&) const = default;
  constexpr bool is_zero() const noexcept { return units == 0; }
  constexpr bool is_whole() const noexcept { return units % units_per_whole == 0; }
  /// The smallest whole number that is not below this amount; 2^63 - 1 for what is larger.
  constexpr std::int64_t ceil() const noexcept {
    const int128 n = units / units_per_whole + (is_whole() || units < 0 ? 0 : 1);
    return n < max_whole ? static_cast<std::int64_t>(n) : max_whole;
  }

  /// `n` wholes.
  static constexpr share whole(std::int64_t n) noexcept { return {int128{n} * units_per_whole}; }
};

/// How many shares of size `part` fit into `total` (0 where `part` is 0), at most 2^63 - 1.
constexpr std::int64_t fits(share total, share part) noexcept {
  if (part.units <= 0) return 0;
  const int128 n = total.units / part.units;
  return n < share::max_whole ? static_cast<std::int64_t>(n) : share::max_whole;
}

/// Reads `"2"`, `"0.5"`, `".25"` or `"1/3"`. Signs, exponents, blanks, leading zeros, zero, more than 12 digits after
/// the point, and values above 2^63 - 1 are errors that repeat the text.
result<share> parse_share(std::string_view text);

/// Shortest decimal text that parses to the same share, or `1/n` where that is shorter: `0.5`, `2`, `1/3`.
std::string to_string(share amount);

/// The amount as floating-point numbers are written, `2.0` or `0.5`: for texts that Spark's users know (spec SL-5).
std::string to_decimal(share amount);

/// Reads a whole number: decimal digits only, no sign, no leading zero (but `0` itself), at most 2^63 - 1.
result<std::int64_t> parse_count(std::string_view text);

/// Reads a memory size into bytes. A bare number means MiB (spec DM-5); suffixes `b k kb m mb g gb t tb p pb` and the
/// IEC spellings `kib mib gib tib pib`, any case, powers of 1024. Fractions, signs, blanks between number and suffix,
/// leading zeros and overflow are errors that repeat the text.
result<std::int64_t> parse_memory(std::string_view text);

/// The fault of a size that was probably meant in GiB, since no executor lives on so few MiB: `8 MiB, …`; "" where
/// there is none. @param bytes what parse_memory has read
std::string fault_of_memory_without_unit(std::string_view text, std::int64_t bytes);

/// A memory size for people: the largest unit that divides it exactly (`1g`, `1536m`, `17b`).
std::string memory_to_string(std::int64_t bytes);

/// How much an executor has of a custom resource.
struct resource_amount {
  std::int64_t amount = 0; ///< a count, or bytes
  bool counted = false;    ///< a size such as `40g`: counted, without addresses

  bool operator==(const resource_amount&) const = default;
};

/// Reads what an executor has of a custom resource: digits alone are a count (`2`), digits with a unit of memory a
/// counted size (`40g`). Fractions are errors: only tasks take them (spec RD-3).
result<resource_amount> parse_resource_amount(std::string_view text);

/// Reads what a task takes of a custom resource: a share (see parse_share), or a size (`10g`), which is its bytes.
result<share> parse_task_amount(std::string_view text);

/// An amount for people: of a counted size `40g`, of anything else `2`.
std::string amount_to_string(std::int64_t amount, bool counted);

} // namespace troupe
