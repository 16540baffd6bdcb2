#pragma once

/// docs/rules.md against the tables: every rule is on the page, and has a row or a reason there why it has none.

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/tests/conformance/rule.hpp>

namespace troupe::conformance {

/// One family of rules: `DM-1` to `DM-19`, and those that carry a letter.
struct rule_family {
  std::string_view prefix;
  int last = 0;
  std::string_view lettered; ///< one, or ""
};

/// All families of the specification that the suite is about, in its order.
inline constexpr std::array<rule_family, 13> rule_families{{{"DM", 19, ""},
                                                            {"ID", 7, ""},
                                                            {"DF", 16, ""},
                                                            {"SL", 16, ""},
                                                            {"AT", 7, ""},
                                                            {"MG", 9, ""},
                                                            {"MP", 9, ""},
                                                            {"RD", 11, ""},
                                                            {"TS", 20, ""},
                                                            {"AD", 14, ""},
                                                            {"DG", 14, "DG-10a"},
                                                            {"BA", 13, ""},
                                                            {"EV", 7, ""}}};

/// Every rule of these families.
std::vector<std::string> all_rules();

/// What is wrong with the page, one sentence each: a rule that is missing, unknown or there twice; a line without four
/// filled cells; under each policy a rule that has neither a row nor an excuse (`left out: …`, `later: …`), an excuse
/// although there is a row, and one without a reason; a row of an unknown rule.
std::vector<std::string> faults_of_page(std::string_view page, const covered_rules& rows);

} // namespace troupe::conformance
