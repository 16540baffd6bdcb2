#include <fstream>
#include <iterator>
#include <string>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/tests/conformance/rules_page.hpp>

namespace troupe::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string committed_page() {
  std::ifstream in{TROUPE_SOURCE_DIRECTORY "/docs/rules.md"};
  return {std::istreambuf_iterator<char>{in}, {}};
}

TEST(rules_page, has_every_rule_and_each_has_a_row_or_a_reason) {
  EXPECT_THAT(faults_of_page(committed_page(), rules_with_rows()), IsEmpty());
}

TEST(rules_page, counts_the_rules_of_the_specification) { EXPECT_EQ(all_rules().size(), 163u); }

/// The committed page with one change, and what is then wrong with it.
std::vector<std::string> faults_after(const std::string& old_text, const std::string& new_text) {
  auto page = committed_page();
  const auto at = page.find(old_text);
  EXPECT_NE(at, std::string::npos) << old_text;
  if (at != std::string::npos) page.replace(at, old_text.size(), new_text);
  return faults_of_page(page, rules_with_rows());
}

/// The whole line of a rule.
std::string line_of(const std::string& rule) {
  const auto page = committed_page();
  const auto begin = page.find("| " + rule + " |");
  EXPECT_NE(begin, std::string::npos) << rule;
  return begin == std::string::npos ? rule : page.substr(begin, page.find('\n', begin) - begin + 1);
}

TEST(rules_page, with_a_line_too_few_or_too_many_is_refused) {
  EXPECT_THAT(faults_after(line_of("DG-10a"), ""), ElementsAre("DG-10a is missing"));
  EXPECT_THAT(faults_after(line_of("DM-5"), line_of("DM-5") + line_of("DM-5")), ElementsAre("DM-5 is there twice"));
  EXPECT_THAT(faults_after(line_of("BA-13"), line_of("BA-13") + "| BA-14 | A rule. | later: x | later: x |\n"),
              ElementsAre("BA-14 is no rule of the specification"));
  EXPECT_THAT(faults_after(line_of("DM-5"), "| DM-5 | A rule. | same | |\n"),
              ElementsAre("DM-5 needs a sentence and a word on each policy"));
  EXPECT_THAT(faults_after(line_of("DM-5"), "| DM-5 | A rule. | same |\n"),
              ElementsAre("DM-5 needs a sentence and a word on each policy"));
}

TEST(rules_page, that_calls_a_followed_rule_left_out_is_refused) {
  EXPECT_THAT(faults_after(line_of("DM-6"), "| DM-6 | A rule. | left out: a whim | later: another |\n"),
              ElementsAre("DM-6 has a row and is called left out or later under exact",
                          "DM-6 has a row and is called left out or later under compatible"));
  EXPECT_THAT(faults_after(line_of("DM-6"), "| DM-6 | A rule. | same | later: another |\n"),
              ElementsAre("DM-6 has a row and is called left out or later under compatible"));
}

TEST(rules_page, needs_a_row_or_a_reason_under_both_policies) {
  EXPECT_THAT(faults_after(line_of("EV-5"), "| EV-5 | A rule. | same | same |\n"),
              ElementsAre("EV-5 has neither a row in tests/conformance nor a reason why not under exact",
                          "EV-5 has neither a row in tests/conformance nor a reason why not under compatible"));
  EXPECT_THAT(faults_after(line_of("EV-5"), "| EV-5 | A rule. | same | later: the event file |\n"),
              ElementsAre("EV-5 has neither a row in tests/conformance nor a reason why not under exact"));
  EXPECT_THAT(faults_after(line_of("EV-5"), "| EV-5 | A rule. | left out | later: the event file |\n"),
              ElementsAre("EV-5 is left out or put off without a reason under exact"));
}

TEST(rules_page, is_refused_when_a_rule_loses_its_rows_or_a_row_has_no_rule) {
  auto rows = rules_with_rows();
  rows.erase("AD-2");
  EXPECT_THAT(faults_of_page(committed_page(), rows),
              ElementsAre("AD-2 has neither a row in tests/conformance nor a reason why not under exact",
                          "AD-2 has neither a row in tests/conformance nor a reason why not under compatible"));
  rows = rules_with_rows();
  rows["AD-2"].erase(profile_matching::exact);
  EXPECT_THAT(faults_of_page(committed_page(), rows),
              ElementsAre("AD-2 has neither a row in tests/conformance nor a reason why not under exact"));
  rows = rules_with_rows();
  rows["AD-99"].insert(profile_matching::exact);
  EXPECT_THAT(faults_of_page(committed_page(), rows),
              ElementsAre("AD-99 has a row and is no rule of the specification"));
}

TEST(expectations, have_gaps) {
  EXPECT_TRUE(matches("gpu 1", "gpu 1"));
  EXPECT_FALSE(matches("gpu 12", "gpu 1"));
  EXPECT_TRUE(matches("refused: gpu 1.5 must be whole", "refused: …1.5…"));
  EXPECT_TRUE(matches("ab", "a…b"));
  EXPECT_FALSE(matches("refused: gpu 1.5", "refused: …1.5…must…"));
  EXPECT_FALSE(matches("gpu", "…1"));
}

} // namespace
} // namespace troupe::conformance
