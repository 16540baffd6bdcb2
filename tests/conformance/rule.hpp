#pragma once

/// The tables of the conformance suite: rule, given, expected under each policy. A row is a test of its own under each
/// policy that it has an expectation for, called after its rule: `memory_sizes.DM_6_exact`, and `DM_6_exact_2` for the
/// next row of that rule in the table.

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/runtime/resources/profile_rules.hpp>
#include <troupe/runtime/result.hpp>

namespace troupe::conformance {

/// What a row expects, by policy. Texts; `…` stands for any text, and nothing for a policy that the row is silent
/// about.
struct expected {
  std::optional<std::string> exact;
  std::optional<std::string> compatible;
};
expected same(std::string text);
expected differs(std::string exact, std::string compatible);
expected in_compatible(std::string text);
expected in_exact(std::string text);

/// One row of a table whose rows are all asked in one way.
struct row {
  std::string_view rule; ///< `DM-5`
  std::string given;
  expected wanted;
};

/// One row that brings its own way along; `given` is for people.
struct scenario {
  std::string_view rule;
  std::string given;
  /// Asks the product and tells what it said. The rules are the defaults of `profile_rules` under the row's policy.
  std::function<std::string(const profile_rules&)> outcome;
  expected wanted;
};

/// Registers its rows when it is made. Tables are objects with static storage.
class table {
public:
  /// `outcome` turns what is given into what the product says.
  table(std::string_view name, std::string (*outcome)(const std::string& given, const profile_rules&),
        const std::vector<row>& rows, std::source_location where = std::source_location::current());
  table(std::string_view name, const std::vector<scenario>& rows,
        std::source_location where = std::source_location::current());
};

/// The rules that have rows, and under which policies.
using covered_rules = std::map<std::string, std::set<profile_matching>, std::less<>>;
const covered_rules& rules_with_rows();

/// `exact` or `compatible`.
std::string_view to_string(profile_matching policy) noexcept;

/// Whether `text` is as `pattern` says, in which `…` stands for any text.
bool matches(std::string_view text, std::string_view pattern);

/// A failure as tables write it: `refused: ` and the message.
inline std::string refused(const error& why) { return "refused: " + why.message; }

} // namespace troupe::conformance
