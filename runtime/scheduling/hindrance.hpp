#pragma once

/// The one answer to "does this executor get a task of this demand now, and if not, why": placement goes by it, and
/// explanations are made of it.

#include <cstdint>
#include <string_view>

namespace troupe {

/// In the order in which they are looked for: the first that holds is the answer. Numbers are wire format.
enum class hindrance : std::uint8_t {
  none = 0,          ///< it has a slot
  draining = 1,      ///< it gets nothing new
  barred = 2,        ///< it has refused the program as one of another build
  other_program = 3, ///< it runs commands only, or another build
  other_profile = 4, ///< `exact`: it was started for another one
  lacks = 5,         ///< of some resource it has less than the profile asks for
  excluded = 6,      ///< tasks of the profile have failed there
  refused = 7,       ///< it has declined such a task a moment ago
  reserved = 8,      ///< what is free there waits for somebody else
  kept = 9,          ///< it has what stages ask for that come first, and this one does not
  busy = 10,         ///< all that a task could take is taken
};
inline constexpr std::uint32_t hindrance_kinds = 11;

/// Up to here it is no question of time or of others: the executor does not fit.
constexpr bool is_unfit(hindrance h) noexcept { return h != hindrance::none && h <= hindrance::lacks; }
/// `busy`, to follow "is" or "are" where that makes sense.
std::string_view to_string(hindrance h) noexcept;

} // namespace troupe
