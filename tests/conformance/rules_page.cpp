#include <troupe/tests/conformance/rules_page.hpp>

#include <algorithm>
#include <set>

namespace troupe::conformance {
namespace {

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

/// The cells of a line of a table; none where it is no such line.
std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  if (!line.starts_with("|") || !line.ends_with("|")) return cells;
  for (line.remove_prefix(1); !line.empty();) {
    const auto bar = line.find('|');
    cells.push_back(trimmed(line.substr(0, bar)));
    line.remove_prefix(bar + 1);
  }
  return cells;
}

/// Whether a line of a table is about a rule, known or not: not a heading nor the line below it.
bool is_about_a_rule(std::string_view id) { return id.find_first_of("0123456789") != std::string_view::npos; }

bool is_excuse(std::string_view cell) { return cell.starts_with("left out") || cell.starts_with("later"); }

bool has_reason(std::string_view cell) {
  const auto colon = cell.find(": ");
  return colon != std::string_view::npos && colon + 2 < cell.size();
}

} // namespace

std::vector<std::string> all_rules() {
  std::vector<std::string> all;
  for (const auto& family : rule_families) {
    for (int i = 1; i <= family.last; ++i) all.push_back(std::string{family.prefix} + "-" + std::to_string(i));
    if (!family.lettered.empty()) all.emplace_back(family.lettered);
  }
  return all;
}

std::vector<std::string> faults_of_page(std::string_view page, const covered_rules& rows) {
  std::vector<std::string> faults;
  const auto rules = all_rules();
  const std::set<std::string_view> known(rules.begin(), rules.end());
  std::set<std::string_view> seen;
  while (!page.empty()) {
    const auto line = page.substr(0, page.find('\n'));
    page.remove_prefix(std::min(page.size(), line.size() + 1));
    const auto cells = cells_of(line);
    if (cells.empty() || !is_about_a_rule(cells.front())) continue;
    const std::string rule{cells.front()};
    const auto fault = [&](const std::string& what) { faults.push_back(rule + " " + what); };
    if (!known.contains(rule)) fault("is no rule of the specification");
    if (!seen.insert(cells.front()).second) fault("is there twice");
    if (cells.size() != 4 || std::count(cells.begin(), cells.end(), std::string_view{}) > 0) {
      fault("needs a sentence and a word on each policy");
      continue;
    }
    const auto found = rows.find(rule);
    for (const auto policy : {profile_matching::exact, profile_matching::compatible}) {
      const auto cell = cells[policy == profile_matching::exact ? 2 : 3];
      const bool has_row = found != rows.end() && found->second.contains(policy);
      const auto where = " under " + std::string{to_string(policy)};
      if (!is_excuse(cell)) {
        if (!has_row) fault("has neither a row in tests/conformance nor a reason why not" + where);
        continue;
      }
      if (!has_reason(cell)) fault("is left out or put off without a reason" + where);
      if (has_row) fault("has a row and is called left out or later" + where);
    }
  }
  for (const auto& rule : rules)
    if (!seen.contains(rule)) faults.push_back(rule + " is missing");
  for (const auto& [rule, policies] : rows)
    if (!known.contains(rule)) faults.push_back(rule + " has a row and is no rule of the specification");
  return faults;
}

} // namespace troupe::conformance
