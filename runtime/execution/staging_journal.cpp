#include <troupe/runtime/execution/staging_journal.hpp>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

#include <troupe/runtime/execution/staged_outputs.hpp>
#include <troupe/runtime/execution/staging_root.hpp>
#include <troupe/runtime/storage/descriptor.hpp>

namespace troupe {
namespace {

/// Ends an entry, `EXECUTOR ROOT` or `folder FOLDER`. A path never holds it.
constexpr char end_of_entry = '\0';
constexpr std::string_view folder_word = "folder ";

/// The executor's outputs that wait in the root of this entry, and the root.
void remove_noted_root(const std::string& entry, noted what) {
  executor_id executor;
  const char* const last = entry.data() + entry.size();
  const auto [after, code] = std::from_chars(entry.data(), last, executor.value);
  if (code != std::errc{} || after == last || *after != ' ') return;
  const std::string root{after + 1, last};
  if (!root.starts_with('/') || !std::filesystem::path{root}.filename().string().starts_with(root_prefix)) return;
  remove_own_staging(root, executor);
  if (what == noted::all) remove_empty_root(root);
}

} // namespace

result<void> note_root(const std::string& journal, executor_id executor, const std::string& root,
                       const std::vector<std::string>& folders) {
  const descriptor file{::open(journal.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600)};
  auto entries = std::to_string(executor.value) + " " + root + end_of_entry;
  for (const auto& folder : folders) (entries += folder_word).append(folder) += end_of_entry;
  // At once: others may write at the same time.
  const auto written = file ? ::write(file.get(), entries.data(), entries.size()) : -1;
  if (written == static_cast<ssize_t>(entries.size())) return {};
  return make_error(ec::io, "cannot write " + journal + ": " + std::strerror(written < 0 ? errno : ENOSPC) +
                                "; make room there, or set troupe.run-directory to another place");
}

void remove_noted(const std::string& journal, noted what) noexcept {
  try {
    std::ifstream file{journal, std::ios::binary};
    std::vector<std::string> folders;
    for (std::string entry; std::getline(file, entry, end_of_entry) && !file.eof();) { // else it was cut off
      if (entry.starts_with(folder_word))
        folders.push_back(entry.substr(folder_word.size()));
      else if (what != noted::empty_folders)
        remove_noted_root(entry, what);
    }
    remove_empty_folders(std::move(folders));
  } catch (const std::exception&) { // no memory: they stay, and nobody looks at them
  }
}

} // namespace troupe
