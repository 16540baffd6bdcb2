#pragma once

/// Takes texts apart. Pure; any thread.

#include <bit>
#include <cstdint>
#include <string_view>
#include <utility>

#include <troupe/runtime/api/stable_hash.hpp>

namespace troupe {

namespace detail {

/// As std::isspace in the C locale.
constexpr bool is_blank(char c) noexcept { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// The first blank from `at` on, or `end`; looked for in eight bytes at once.
inline const char* find_blank(const char* at, const char* end) noexcept {
  constexpr std::uint64_t each = 0x0101010101010101;
  while (end - at >= 8) {
    const auto eight = little_endian<std::uint64_t>(at);
    // The highest bit of bytes below '!', the first of which is told rightly.
    const auto below = (eight - each * '!') & ~eight & (each * 0x80);
    if (below == 0) {
      at += 8;
      continue;
    }
    at += std::countr_zero(below) / 8;
    if (is_blank(*at)) return at;
    ++at; // some other character that cannot be seen
  }
  while (at != end && !is_blank(*at)) ++at;
  return at;
}

} // namespace detail

/// Calls `each(std::string_view)` for every word of the text, in order: whatever stands between blanks, which are
/// spaces, tabs, line feeds, vertical tabs, form feeds and carriage returns. The views are of the text.
template <class Each>
void for_each_word(std::string_view text, Each each) {
  const auto* const end = text.data() + text.size();
  for (const auto* at = text.data();;) {
    while (at != end && detail::is_blank(*at)) ++at;
    if (at == end) return;
    const auto* const begin = std::exchange(at, detail::find_blank(at, end));
    each(std::string_view(begin, static_cast<std::size_t>(at - begin)));
  }
}

} // namespace troupe
