#include <troupe/runtime/execution/command_words.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace troupe {

namespace {

enum class placeholder { input, inputs, inputs_file, output, outputs, partition, attempt };

struct spelling {
  std::string_view text;
  placeholder which;
};
constexpr std::array<spelling, 7> spellings{{{"{input}", placeholder::input},
                                             {"{inputs}", placeholder::inputs},
                                             {"{inputs-file}", placeholder::inputs_file},
                                             {"{output}", placeholder::output},
                                             {"{outputs}", placeholder::outputs},
                                             {"{partition}", placeholder::partition},
                                             {"{attempt}", placeholder::attempt}}};

const spelling* placeholder_at(std::string_view text) {
  for (const auto& s : spellings) {
    if (text.starts_with(s.text)) return &s;
  }
  return nullptr;
}

std::string join(const std::vector<std::string>& list) {
  std::string all;
  for (const auto& entry : list) {
    if (!all.empty()) all += ' ';
    all += entry;
  }
  return all;
}

result<std::string> only(const std::vector<std::string>& files, const std::string& word, const char* what) {
  if (files.size() == 1) return files.front();
  return make_error(ec::invalid_argument, "the word '" + word + "' needs exactly one " + what + ", the task has " +
                                              std::to_string(files.size()) + "; write {" + what + "s}");
}

result<std::string> value_of(placeholder which, const placeholder_values& values, const std::string& word) {
  switch (which) {
  case placeholder::input: return only(values.inputs, word, "input");
  case placeholder::output: return only(values.outputs, word, "output");
  case placeholder::inputs: return join(values.inputs);
  case placeholder::inputs_file:
    if (values.inputs_file.empty())
      return make_error(ec::invalid_argument, "the word '" + word + "' needs inputs, and the task has none");
    return values.inputs_file;
  case placeholder::outputs: return join(values.outputs);
  case placeholder::partition: return std::to_string(values.partition);
  case placeholder::attempt: return std::to_string(values.attempt);
  }
  return std::string{};
}

bool is_shell(std::string_view program) {
  if (program.find('=') != std::string_view::npos) return false; // a variable for `env`
  const auto name = program.substr(program.rfind('/') + 1);
  for (const std::string_view shell : {"sh", "bash", "dash", "ash", "zsh", "ksh", "mksh"})
    if (name == shell) return true;
  return false;
}

/// Whether the word is a text for a shell: it follows `-c`, alone or among other letters, and between that and the
/// shell stand options alone.
bool is_script(const std::vector<std::string>& words, std::size_t at) {
  const auto is_option = [](const std::string& word) {
    return word.size() > 1 && (word[0] == '-' || word[0] == '+') && word[1] != '-';
  };
  if (at < 2 || !is_option(words[at - 1]) || words[at - 1].find('c') == std::string::npos) return false;
  for (auto i = at - 1; i-- > 0;) {
    if (is_shell(words[i])) return true;
    const bool is_of_option = i > 0 && (words[i - 1] == "-o" || words[i - 1] == "+o" || words[i - 1] == "-O");
    if (!is_option(words[i]) && !is_of_option) return false;
  }
  return false;
}

enum class quotes { none, one, two };

/// How the end of this text is quoted for a shell. The body of a here-document counts as not quoted.
quotes quotes_at_end(std::string_view text) {
  struct level {
    quotes how;
    char end; ///< of what began it: `)` or a backtick, within which quoting begins anew
  };
  std::vector<level> open{{quotes::none, '\0'}};
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const auto [how, end] = open.back();
    if (how == quotes::one) {
      if (c == '\'') open.back().how = quotes::none;
    } else if (c == '\\') {
      ++i;
    } else if (c == '"') {
      open.back().how = how == quotes::two ? quotes::none : quotes::two;
    } else if (how == quotes::none && c == end) {
      open.pop_back();
    } else if (c == '`') {
      open.push_back({quotes::none, '`'});
    } else if (c == '(' && (how == quotes::none || (i > 0 && text[i - 1] == '$'))) {
      open.push_back({quotes::none, ')'});
    } else if (how == quotes::none && c == '\'') {
      open.back().how = quotes::one;
    } else if (how == quotes::none && c == '#' &&
               (i == 0 || std::string_view{" \t\n;&|("}.find(text[i - 1]) != std::string_view::npos)) {
      i = std::min(text.find('\n', i), text.size()); // a comment
    }
  }
  return open.back().how;
}

/// Whether a shell takes the name, so quoted, for itself alone.
bool is_plain(std::string_view name, quotes how) {
  const std::string_view other = how == quotes::one ? "'" : how == quotes::two ? "\"$`\\" : " \t\r\n;&|<>()$`\\\"'*?[{";
  return name.find_first_of(other) == std::string_view::npos;
}

/// What stands for the placeholder, each a name.
std::vector<std::string> names_of(placeholder which, const placeholder_values& values) {
  switch (which) {
  case placeholder::input:
  case placeholder::inputs: return values.inputs;
  case placeholder::inputs_file: return {values.inputs_file};
  case placeholder::output:
  case placeholder::outputs: return values.outputs;
  case placeholder::partition:
  case placeholder::attempt: break;
  }
  return {};
}

/// The fault of a name that is pasted into a text for a shell, where it would mean something else.
std::optional<error> fault_in_script(placeholder which, const placeholder_values& values, std::string_view before) {
  const auto how = quotes_at_end(before);
  for (const auto& name : names_of(which, values))
    if (!is_plain(name, how))
      return make_error(ec::invalid_argument,
                        "in a text for a shell the name '" + name +
                            "' would mean something else: hand it over as an argument, as in [sh, -c, 'sort \"$1\" "
                            ">\"$2\"', sh, \"{input}\", \"{output}\"]");
  return std::nullopt;
}

} // namespace

result<std::vector<std::string>> replace_placeholders(const std::vector<std::string>& words,
                                                      const placeholder_values& values) {
  std::vector<std::string> replaced;
  for (std::size_t w = 0; w < words.size(); ++w) {
    const auto& word = words[w];
    const bool is_for_shell = is_script(words, w);
    if (word == "{inputs}" || word == "{outputs}") {
      const auto& files = word == "{inputs}" ? values.inputs : values.outputs;
      replaced.insert(replaced.end(), files.begin(), files.end());
      continue;
    }
    std::string text;
    for (std::size_t i = 0; i < word.size();) {
      const auto rest = std::string_view{word}.substr(i);
      if (const auto* const escaped = rest.starts_with("{{") ? placeholder_at(rest.substr(1)) : nullptr) {
        text += escaped->text;
        i += 1 + escaped->text.size();
      } else if (const auto* const found = placeholder_at(rest)) {
        auto value = value_of(found->which, values, word);
        if (!value) return value.error();
        if (is_for_shell)
          if (auto fault = fault_in_script(found->which, values, std::string_view{word}.substr(0, i))) return *fault;
        text += *value;
        i += found->text.size();
      } else {
        text += word[i++];
      }
    }
    replaced.push_back(std::move(text));
  }
  return replaced;
}

bool names_shell(const std::vector<std::string>& words) { return std::any_of(words.begin(), words.end(), is_shell); }

bool names_inputs_file(const std::vector<std::string>& words) {
  const auto is_asked_for = [](const std::string& word) {
    return word.find("{inputs-file}") != word.npos || word.find("TROUPE_INPUTS_FILE") != word.npos;
  };
  return std::any_of(words.begin(), words.end(), is_asked_for);
}

bool names_variable(const std::vector<std::string>& words, std::string_view name) {
  const auto is_of_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  for (const auto& word : words)
    for (auto at = word.find(name); at != word.npos; at = word.find(name, at + 1)) {
      const auto end = at + name.size();
      if ((at == 0 || !is_of_name(word[at - 1])) && (end == word.size() || !is_of_name(word[end]))) return true;
    }
  return false;
}

} // namespace troupe
