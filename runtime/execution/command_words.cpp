#include <troupe/runtime/execution/command_words.hpp>

#include <array>
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

} // namespace

result<std::vector<std::string>> replace_placeholders(const std::vector<std::string>& words,
                                                      const placeholder_values& values) {
  std::vector<std::string> replaced;
  for (const auto& word : words) {
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
