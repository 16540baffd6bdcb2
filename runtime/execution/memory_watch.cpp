#include <troupe/runtime/execution/memory_watch.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <unistd.h>

#include <troupe/runtime/execution/process_tree.hpp>

namespace troupe {

namespace {

std::string read_file(const std::string& path) {
  std::array<char, 4096> text{};
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  const auto n = ::read(fd, text.data(), text.size());
  ::close(fd);
  return {text.data(), n > 0 ? static_cast<std::size_t>(n) : 0};
}

/// The number that follows `label`.
std::optional<std::uint64_t> number_after(std::string_view text, std::string_view label) {
  const auto at = text.find(label);
  if (at == text.npos) return std::nullopt;
  text.remove_prefix(at + label.size());
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  std::uint64_t number = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc{}) return std::nullopt;
  return number;
}

/// Resident pages that belong to no file. Cheap, and too much where processes share them after a fork.
std::uint64_t anonymous_memory_of(pid_t pid) {
  const auto text = read_file("/proc/" + std::to_string(pid) + "/statm");
  std::array<std::uint64_t, 3> pages{}; // all, resident, of files or shared
  const char* at = text.data();
  for (auto& number : pages) {
    while (at != text.data() + text.size() && *at == ' ') ++at;
    at = std::from_chars(at, text.data() + text.size(), number).ptr;
  }
  return pages[1] > pages[2] ? (pages[1] - pages[2]) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) : 0;
}

} // namespace

std::uint64_t private_memory_of(pid_t pid) {
  const auto text = read_file("/proc/" + std::to_string(pid) + "/smaps_rollup");
  const auto own = number_after(text, "\nPss_Anon:");
  if (!own) return anonymous_memory_of(pid); // an older kernel
  return (*own + number_after(text, "\nPss_Shmem:").value_or(0)) * 1024;
}

std::optional<std::uint64_t> memory_watch::exceeded() {
  const auto tree = tree_of(main_);
  std::uint64_t rough = 0;
  for (const auto pid : tree) rough += anonymous_memory_of(pid);
  if (rough > limit_) {
    rough = 0;
    for (const auto pid : tree) rough += private_memory_of(pid);
  }
  peak_ = std::max(peak_, rough);
  if (rough <= limit_) return std::nullopt;
  return rough;
}

} // namespace troupe
