#include <troupe/runtime/execution/staging_journal.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

#include <troupe/runtime/execution/staged_outputs.hpp>
#include <troupe/runtime/storage/descriptor.hpp>

namespace troupe {
namespace {

/// Ends an entry, `EXECUTOR ROOT` or `folder INODE BORN FOLDER`. A path never holds it.
constexpr char end_of_entry = '\0';
constexpr std::string_view folder_word = "folder ";

/// Takes a number and the space behind it from the front of the text.
template <class Number>
bool take_number(std::string_view& text, Number& number) {
  const auto [after, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc{} || after == text.data() + text.size() || *after != ' ') return false;
  text.remove_prefix(static_cast<std::size_t>(after - text.data()) + 1);
  return true;
}

std::optional<made_folder> folder_of(std::string_view entry) {
  made_folder folder;
  if (!take_number(entry, folder.inode) || !take_number(entry, folder.born) || !entry.starts_with('/')) return {};
  folder.path = entry;
  return folder;
}

/// The executor's outputs that wait in the root of this entry, and the root.
void remove_noted_root(std::string_view entry, noted what) {
  executor_id executor;
  if (!take_number(entry, executor.value) || !entry.starts_with('/')) return;
  const std::filesystem::path root{entry};
  if (root.parent_path().filename() != own_folder || !root.has_filename()) return;
  remove_own_staging(root.string(), executor);
  if (what == noted::all) remove_empty_root(root.string());
}

} // namespace

result<void> write_staging_journal(const std::string& journal, executor_id executor,
                                   const std::vector<std::string>& roots, const std::vector<made_folder>& folders) {
  std::string entries;
  for (const auto& root : roots) entries += std::to_string(executor.value) + " " + root + end_of_entry;
  for (const auto& folder : folders)
    entries += std::string{folder_word} + std::to_string(folder.inode) + " " + std::to_string(folder.born) + " " +
               folder.path + end_of_entry;
  const auto beside = journal + ".new";
  descriptor file{::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600)};
  const auto written = file ? ::write(file.get(), entries.data(), entries.size()) : -1;
  if (written == static_cast<ssize_t>(entries.size()) && file.close() && ::rename(beside.c_str(), journal.c_str()) == 0)
    return {};
  const int why = written >= 0 && written < static_cast<ssize_t>(entries.size()) ? ENOSPC : errno;
  ::unlink(beside.c_str());
  return make_error(ec::io, "cannot write " + journal + ": " + std::strerror(why) +
                                "; make room there, or set troupe.run-directory to another place");
}

void remove_noted(const std::vector<std::string>& journals, noted what) noexcept {
  try {
    std::vector<made_folder> folders;
    for (const auto& journal : journals) {
      std::ifstream file{journal, std::ios::binary};
      for (std::string entry; std::getline(file, entry, end_of_entry) && !file.eof();) { // else it was cut off
        if (!entry.starts_with(folder_word)) {
          if (what != noted::empty_folders) remove_noted_root(entry, what);
        } else if (auto folder = folder_of(std::string_view{entry}.substr(folder_word.size()))) {
          folders.push_back(*std::move(folder));
        }
      }
    }
    // The innermost first.
    std::sort(folders.begin(), folders.end(),
              [](const auto& a, const auto& b) { return a.path.size() > b.path.size(); });
    for (const auto& folder : folders) static_cast<void>(remove_made_folder(folder));
  } catch (const std::exception&) { // no memory: they stay, and nobody looks at them
  }
}

} // namespace troupe
