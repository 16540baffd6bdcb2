#include <troupe/runtime/config/path_pattern.hpp>

#include <vector>

#include <fnmatch.h>

namespace troupe {
namespace {

/// Of one name in a path.
struct token {
  enum class kind { character, set, any, star };
  kind type = kind::character;
  char character = 0;
  std::string set; ///< as written, with its brackets
};

/// Where the set that begins at `open` ends, or npos where it does not, so that the bracket stands for itself.
std::size_t end_of_set(std::string_view name, std::size_t open) {
  auto at = open + 1;
  if (at < name.size() && (name[at] == '!' || name[at] == '^')) ++at;
  if (at < name.size() && name[at] == ']') ++at; // the first one is an element
  for (; at < name.size() && name[at] != ']'; ++at) {
    if (name[at] == '\\') {
      ++at;
      continue;
    }
    // A class such as [:alpha:] within the set has brackets of its own.
    const char kind = name[at] == '[' && at + 1 < name.size() ? name[at + 1] : '\0';
    if (kind != ':' && kind != '.' && kind != '=') continue;
    if (const auto end = name.find(std::string{kind} + ']', at + 2); end != std::string_view::npos) at = end + 1;
  }
  return at < name.size() ? at : std::string_view::npos;
}

std::vector<token> tokens_of(std::string_view name) {
  std::vector<token> out;
  for (std::size_t i = 0; i < name.size(); ++i) {
    token next{token::kind::character, name[i], {}};
    if (name[i] == '*') {
      next.type = token::kind::star;
    } else if (name[i] == '?') {
      next.type = token::kind::any;
    } else if (name[i] == '\\' && i + 1 < name.size()) {
      next.character = name[++i];
    } else if (const auto close = name[i] == '[' ? end_of_set(name, i) : std::string_view::npos;
               close != std::string_view::npos) {
      next.type = token::kind::set;
      next.set = name.substr(i, close - i + 1);
      i = close;
    }
    out.push_back(std::move(next));
  }
  return out;
}

bool may_be_equal(const token& a, const token& b) {
  if (a.type == token::kind::character && b.type == token::kind::character) return a.character == b.character;
  if (a.type == token::kind::character) return may_be_equal(b, a);
  if (a.type == token::kind::set && b.type == token::kind::character)
    return ::fnmatch(a.set.c_str(), std::string(1, b.character).c_str(), 0) == 0;
  return true;
}

bool begins_with_dot(const std::vector<token>& name) {
  return !name.empty() && name.front().type == token::kind::character && name.front().character == '.';
}

/// Whether some name matches both.
bool may_meet(const std::vector<token>& a, const std::vector<token>& b) {
  // A dot at the begin is matched by a dot alone.
  if (begins_with_dot(a) != begins_with_dot(b)) {
    const auto& other = begins_with_dot(a) ? b : a;
    if (other.empty() || other.front().type != token::kind::character) return false;
  }
  // meets[i][j]: the parts from i and j on have a name in common.
  std::vector<std::vector<char>> meets(a.size() + 1, std::vector<char>(b.size() + 1, 0));
  for (std::size_t i = a.size() + 1; i-- > 0;) {
    for (std::size_t j = b.size() + 1; j-- > 0;) {
      const bool star_a = i < a.size() && a[i].type == token::kind::star;
      const bool star_b = j < b.size() && b[j].type == token::kind::star;
      bool yes = i == a.size() && j == b.size();
      if (star_a) yes = yes || meets[i + 1][j] || (j < b.size() && meets[i][j + 1]);
      if (star_b) yes = yes || meets[i][j + 1] || (i < a.size() && meets[i + 1][j]);
      if (!star_a && !star_b && i < a.size() && j < b.size()) yes = may_be_equal(a[i], b[j]) && meets[i + 1][j + 1];
      meets[i][j] = yes;
    }
  }
  return meets[0][0] != 0;
}

/// The next name of a path, which is taken off its front; empty at the end.
std::string_view take_name(std::string_view& path) {
  while (path.starts_with('/')) path.remove_prefix(1);
  const auto name = path.substr(0, path.find('/'));
  path.remove_prefix(name.size());
  return name;
}

} // namespace

std::string escape_pattern(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '*' || c == '?' || c == '[' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

bool may_find(std::string_view pattern, std::string_view made) {
  while (true) {
    const auto wanted = take_name(pattern);
    if (wanted.empty()) return true;
    const auto there = take_name(made);
    if (there.empty() || !may_meet(tokens_of(wanted), tokens_of(there))) return false;
  }
}

} // namespace troupe
