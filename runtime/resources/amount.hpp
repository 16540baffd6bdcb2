#pragma once

/// Exact amounts. Executor amounts are whole 64-bit numbers (memory in bytes); shares of an address and task cpus are
/// 64-bit fixed point, 10^12 units per whole, parsed from decimal text or `1/n`, rounded down. Never floating point:
/// for every n up to 40,000 exactly n shares of `1/n` fit into one address (DESIGN section 7; spec SL-15, AD-8).

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include <troupe/runtime/result.hpp>

namespace troupe {

/// A fixed-point amount: `units` / 10^12. Never negative once it has been parsed or built by the named functions.
struct share {
  static constexpr std::int64_t units_per_whole = 1'000'000'000'000;
  static constexpr std::int64_t max_whole = 9'000'000; ///< largest amount of anything that is counted in shares

  std::int64_t units = 0;

  constexpr auto operator<=>(const share&) const = default;
  constexpr bool is_zero() const noexcept { return units == 0; }
  constexpr bool is_whole() const noexcept { return units % units_per_whole == 0; }
  /// The smallest whole number that is not below this amount.
  constexpr std::int64_t ceil() const noexcept { return units / units_per_whole + (is_whole() ? 0 : 1); }

  /// `n` whole units. @pre 0 <= n <= max_whole
  static constexpr share whole(std::int64_t n) noexcept { return {n * units_per_whole}; }
};

/// How many shares of size `part` fit into `total` (0 where `part` is 0).
constexpr std::int64_t fits(share total, share part) noexcept { return part.units > 0 ? total.units / part.units : 0; }

/// Reads `"2"`, `"0.5"`, `".25"` or `"1/3"`. Signs, exponents, blanks, leading zeros, zero, more than 12 digits after
/// the point, and values above 9,000,000 are errors that repeat the text.
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

/// A memory size for people: the largest unit that divides it exactly (`1g`, `1536m`, `17b`).
std::string memory_to_string(std::int64_t bytes);

} // namespace troupe
