#include <troupe/runtime/execution/command_hints.hpp>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <sys/stat.h>

#include <troupe/runtime/execution/command_words.hpp>
#include <troupe/runtime/execution/failure_text.hpp>

namespace troupe {

namespace {

namespace fs = std::filesystem;

/// Words that may be names of files: whole, and the parts of those that are texts for a shell.
std::vector<std::string> names_in(const std::vector<std::string>& words) {
  std::vector<std::string> names;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const auto& word = words[i];
    names.push_back(word);
    constexpr std::string_view ends = " \t\n;|&<>()'\"`=";
    for (std::size_t begin = 0; begin < word.size();) {
      const auto end = std::min(word.find_first_of(ends, begin), word.size());
      if (end > begin && end - begin < word.size()) names.push_back(word.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  std::erase_if(names, [](const std::string& name) {
    return name.empty() || name.front() == '/' || name.front() == '-' || name.find('{') != name.npos;
  });
  return names;
}

constexpr std::size_t longest_path = 256; ///< bytes: it travels with each batch of outcomes

/// A regular file below the folder, by its path from `base`, cut; "" where there is none. Links are not followed.
std::string file_below(const fs::path& folder, const fs::path& base) {
  std::error_code ignored;
  if (!fs::is_directory(fs::symlink_status(folder, ignored))) return {};
  for (fs::recursive_directory_iterator below{folder, ignored}, end; !ignored && below != end; below.increment(ignored))
    if (fs::is_regular_file(below->symlink_status(ignored)))
      return bounded_text(below->path().lexically_relative(base).string(), longest_path);
  return {};
}

} // namespace

std::string named_by_inputs(const std::vector<std::string>& inputs, std::string_view before) {
  if (inputs.empty()) return {};
  return std::string{before} + inputs.front() +
         (inputs.size() == 1 ? "" : " (and " + std::to_string(inputs.size() - 1) + " more)");
}

std::string hint_at_names(const command_program& program, const std::string& directory) {
  struct stat status {};
  for (const auto& name : names_in(program.words)) {
    const auto beside = program.directory + "/" + name;
    if (::stat((directory + "/" + name).c_str(), &status) == 0 || ::stat(beside.c_str(), &status) != 0) continue;
    return "; '" + name + "' lies in " + program.directory +
           ", but a command starts in a directory of its own: name it as " + beside;
  }
  for (std::size_t i = 1; i < program.words.size(); ++i)
    if (const auto& word = program.words[i];
        word.starts_with("~/") && !(program.words[i - 1].starts_with('-') && program.words[i - 1].ends_with('c')))
      return "; no shell has expanded '" + word + "': write the path, or ask for a shell: [sh, -c, …]";
  constexpr std::string_view signs[] = {">", ">>", "2>", "2>&1", "&&", "||"};
  const auto is_of_shell = [&](const std::string& word) {
    return std::find(std::begin(signs), std::end(signs), word) != std::end(signs);
  };
  const auto& words = program.words;
  const auto sign = std::find_if(words.begin() + 1, words.end(), is_of_shell);
  if (sign != words.end() && !names_shell(words))
    return "; no shell has seen '" + *sign + "', it was an argument: ask for one: [sh, -c, …]";
  return {};
}

std::string file_left_in(const std::string& directory, const std::vector<std::string>& outputs) {
  const auto is_output = [&](const std::string& name) {
    return std::any_of(outputs.begin(), outputs.end(),
                       [&](const auto& output) { return output.substr(0, output.find('/')) == name; });
  };
  std::vector<fs::path> entries;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator{directory, ignored})
    if (const auto name = entry.path().filename(); name != "stdout" && name != "stderr" && !is_output(name.string()))
      entries.push_back(entry.path());
  std::sort(entries.begin(), entries.end());
  for (const auto& path : entries) {
    const bool is_file = fs::is_regular_file(fs::symlink_status(path, ignored));
    if (auto file = is_file ? path.filename().string() : file_below(path, directory); !file.empty()) return file;
  }
  return {};
}

std::string file_left_in_home(const std::string& directory) { return file_below(fs::path{directory} / "~", directory); }

} // namespace troupe
