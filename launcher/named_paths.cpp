#include <troupe/launcher/named_paths.hpp>

#include <algorithm>
#include <cctype>
#include <utility>

#include <troupe/runtime/config/path_text.hpp>

namespace troupe {
namespace {

/// Ends a word in a text for a shell.
constexpr std::string_view word_ends = " \t\n;|&<>()'\"`=,";
/// From here on a path is for a shell, or for the executor, to complete.
constexpr std::string_view open_part = "*?[{$";

std::vector<std::string_view> split(std::string_view text, std::string_view at) {
  std::vector<std::string_view> out;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find_first_of(at, begin), text.size());
    if (end > begin) out.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

/// The paths of a list; none of a word that names another host.
std::vector<std::string_view> paths_of(std::string_view word) {
  const auto colon = word.find(':');
  if (colon == word.npos) return {word};
  const auto first = word.substr(0, colon);
  const bool is_host =
      first.find('/') == first.npos && !first.starts_with('$') && word.find(':', colon + 1) == word.npos;
  return is_host ? std::vector<std::string_view>{} : split(word, ":");
}

/// A variable at the begin of a text, as `$NAME` or `${NAME}`: how long that is; 0 where there is none.
std::size_t variable_at(std::string_view text, std::string_view& name) {
  if (!text.starts_with('$')) return 0;
  if (text.starts_with("${")) {
    const auto close = text.find('}');
    if (close == text.npos) return 0;
    name = text.substr(2, close - 2);
    return close + 1;
  }
  std::size_t end = 1;
  while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_')) ++end;
  name = text.substr(1, end - 1);
  return end > 1 ? end : 0;
}

/// With the variables that are known.
std::string resolved(std::string_view word, const variable_values& value) {
  std::string out;
  while (!word.empty()) {
    std::string_view name;
    const auto length = variable_at(word, name);
    const auto known = length > 0 ? value(name) : std::nullopt;
    out += known ? *known : std::string{word.substr(0, std::max<std::size_t>(length, 1))};
    word.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

std::string pattern_of(std::string_view rest) {
  std::string out;
  while (!rest.empty()) {
    std::string_view name;
    auto length = variable_at(rest, name);
    if (length == 0 && rest.starts_with('{') && rest.find('}') != rest.npos) length = rest.find('}') + 1;
    out += length > 0 ? '*' : rest.front();
    rest.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

} // namespace

std::vector<named_path> named_paths(std::string_view text, const variable_values& value) {
  std::vector<named_path> out;
  std::string here; // where a `cd` has led; "": nowhere, or nobody knows
  bool is_after_cd = false;
  for (const auto whole : split(text, word_ends)) {
    const bool leads = std::exchange(is_after_cd, whole == "cd");
    if (is_after_cd) continue;
    const auto from = leads ? std::exchange(here, {}) : here;
    for (const auto word : paths_of(whole)) {
      auto path = resolved(word, value);
      // A name alone is a program's, as a rule; `$X` and `{input}` may be anywhere.
      const bool is_relative = path.find_first_of("/${") != 0 && (leads || path.find_first_of("/*?") != path.npos);
      if (is_relative && !from.empty()) path = from + "/" + path;
      if (!path.starts_with('/')) continue;
      const auto open = path.find_first_of(open_part);
      const auto known = open == path.npos ? path.size() : path.rfind('/', open) + 1;
      named_path named{std::string{word}, plain_path(path.substr(0, known)),
                       pattern_of(std::string_view{path}.substr(known))};
      while (named.fixed.size() > 1 && named.fixed.ends_with('/')) named.fixed.pop_back();
      if (leads && named.pattern.empty())
        here = named.fixed; // what follows says what is read there
      else
        out.push_back(std::move(named));
    }
  }
  return out;
}

} // namespace troupe
