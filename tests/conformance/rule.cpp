#include <troupe/tests/conformance/rule.hpp>

#include <algorithm>
#include <utility>

#include <gtest/gtest.h>

namespace troupe::conformance {
namespace {

constexpr std::string_view anything = "…";

covered_rules& known_rows() {
  static covered_rules rows;
  return rows;
}

/// One row under one policy.
class row_test : public ::testing::Test {
public:
  row_test(scenario what, profile_matching policy, std::string wanted)
    : what_(std::move(what)), policy_(policy), wanted_(std::move(wanted)) {}

  void TestBody() override {
    profile_rules rules;
    rules.matching = policy_;
    const auto got = what_.outcome(rules);
    EXPECT_TRUE(matches(got, wanted_)) << what_.rule << ", " << to_string(policy_) << "\n  given:    " << what_.given
                                       << "\n  expected: " << wanted_ << "\n  got:      " << got;
  }

private:
  scenario what_;
  profile_matching policy_;
  std::string wanted_;
};

class registration {
public:
  registration(std::string_view table_name, const std::source_location& where) : name_(table_name), where_(where) {}

  void add(const scenario& what) {
    add(what, profile_matching::exact, what.wanted.exact);
    add(what, profile_matching::compatible, what.wanted.compatible);
  }

private:
  void add(const scenario& what, profile_matching policy, const std::optional<std::string>& wanted) {
    if (!wanted) return;
    known_rows()[std::string{what.rule}].insert(policy);
    auto test = std::string{what.rule} + "_" + std::string{to_string(policy)};
    std::replace(test.begin(), test.end(), '-', '_'); // a filter takes a dash for "all but"
    if (const auto count = ++count_[test]; count > 1) test += "_" + std::to_string(count);
    ::testing::RegisterTest(name_.c_str(), test.c_str(), nullptr, nullptr, where_.file_name(),
                            static_cast<int>(where_.line()), [what, policy, text = *wanted] {
                              return new row_test{what, policy, text};
                            });
  }

  std::string name_;
  std::source_location where_;
  std::map<std::string, int> count_;
};

} // namespace

expected same(std::string text) { return {text, text}; }
expected differs(std::string exact, std::string compatible) { return {std::move(exact), std::move(compatible)}; }
expected in_compatible(std::string text) { return {std::nullopt, std::move(text)}; }
expected in_exact(std::string text) { return {std::move(text), std::nullopt}; }

table::table(std::string_view name, std::string (*outcome)(const std::string& given, const profile_rules&),
             const std::vector<row>& rows, std::source_location where) {
  registration all{name, where};
  for (const auto& r : rows)
    all.add({r.rule, r.given, [outcome, given = r.given](const profile_rules& rules) { return outcome(given, rules); },
             r.wanted});
}

table::table(std::string_view name, const std::vector<scenario>& rows, std::source_location where) {
  registration all{name, where};
  for (const auto& r : rows) all.add(r);
}

const covered_rules& rules_with_rows() { return known_rows(); }

std::string_view to_string(profile_matching policy) noexcept {
  return policy == profile_matching::exact ? "exact" : "compatible";
}

bool matches(std::string_view text, std::string_view pattern) {
  const auto gap = pattern.find(anything);
  if (gap == std::string_view::npos) return text == pattern;
  if (!text.starts_with(pattern.substr(0, gap))) return false;
  text.remove_prefix(gap);
  pattern.remove_prefix(gap + anything.size());
  for (std::size_t skipped = 0; skipped <= text.size(); ++skipped)
    if (matches(text.substr(skipped), pattern)) return true;
  return false;
}

} // namespace troupe::conformance
