#include <troupe/runtime/spelling.hpp>

#include <algorithm>
#include <cctype>

namespace troupe {
namespace {

// Longer words are not typos of anything, and the distance costs the product of both lengths.
constexpr std::size_t longest_word = 200;

std::string to_kebab(std::string_view word) {
  std::string out;
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '_') {
      out += '-';
    } else if (std::isupper(byte)) {
      if (!out.empty() && out.back() != '-' && out.back() != '.') out += '-';
      out += static_cast<char>(std::tolower(byte));
    } else {
      out += c;
    }
  }
  return out;
}

} // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> above(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = above;
    above = row;
  }
  return above[b.size()];
}

std::string nearest_name(std::string_view word, const std::vector<std::string>& candidates) {
  if (word.size() > longest_word) return {};
  const std::string wanted = to_kebab(word);
  // A third of the letters may be wrong; short words need two edits to be found at all.
  std::size_t best = std::max<std::size_t>(2, wanted.size() / 3) + 1;
  std::string nearest;
  for (const auto& candidate : candidates) {
    const std::size_t distance = std::min(edit_distance(wanted, candidate), edit_distance(word, candidate));
    if (distance < best && distance < candidate.size()) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string spelling_hint(std::string_view word, const std::vector<std::string>& candidates) {
  if (const auto nearest = nearest_name(word, candidates); !nearest.empty()) return "; did you mean " + nearest + "?";
  if (candidates.empty()) return {};
  return "; valid here: " + join(candidates);
}

std::string join(const std::vector<std::string>& words, std::string_view separator) {
  std::string out;
  for (const auto& word : words) {
    if (!out.empty()) out += separator;
    out += word;
  }
  return out;
}

} // namespace troupe
