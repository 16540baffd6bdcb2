#include <troupe/runtime/execution/command_words.hpp>

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
  const auto name = program.substr(program.rfind('/') + 1);
  for (const std::string_view shell : {"sh", "bash", "dash", "ash", "zsh", "ksh", "mksh"})
    if (name == shell) return true;
  return false;
}

/// Whether the word is a text for a shell: it follows `-c`, alone or behind other letters, and that a shell.
bool is_script(const std::vector<std::string>& words, std::size_t at) {
  if (at < 2 || words[at - 1].size() < 2 || words[at - 1].front() != '-' || words[at - 1].back() != 'c') return false;
  for (std::size_t i = 0; i + 1 < at; ++i)
    if (is_shell(words[i])) return true;
  return false;
}

enum class quotes { none, one, two };

/// How the end of this text is quoted for a shell.
quotes quotes_at_end(std::string_view text) {
  auto now = quotes::none;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (now == quotes::one)
      now = c == '\'' ? quotes::none : now;
    else if (c == '\\')
      ++i;
    else if (c == '"')
      now = now == quotes::two ? quotes::none : quotes::two;
    else if (c == '\'' && now == quotes::none)
      now = quotes::one;
  }
  return now;
}

/// Whether a shell takes the name, so quoted, for itself alone.
bool is_plain(std::string_view name, quotes how) {
  for (const char c : name) {
    const bool is_of_words = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                             static_cast<unsigned char>(c) >= 128 ||
                             std::string_view{"_@%+=:,./-"}.find(c) != std::string_view::npos;
    if (how == quotes::one   ? c == '\''
        : how == quotes::two ? c == '"' || c == '$' || c == '`' || c == '\\'
                             : !is_of_words)
      return false;
  }
  return true;
}

/// The fault of a name that is pasted into a text for a shell, where it would mean something else.
std::optional<error> fault_in_script(placeholder which, const placeholder_values& values, std::string_view before) {
  const auto how = quotes_at_end(before);
  const bool is_of_inputs = which == placeholder::input || which == placeholder::inputs;
  if (!is_of_inputs && which != placeholder::output && which != placeholder::outputs) return std::nullopt;
  for (const auto& name : is_of_inputs ? values.inputs : values.outputs)
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
