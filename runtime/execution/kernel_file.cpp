#include <troupe/runtime/execution/kernel_file.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include <fcntl.h>
#include <unistd.h>

namespace troupe {

std::string read_kernel_file(const std::string& path, std::size_t most) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::string text;
  std::size_t filled = 0;
  while (filled < most) {
    text.resize(std::min(most, std::max<std::size_t>(4096, 2 * filled)));
    const auto n = ::read(fd, text.data() + filled, text.size() - filled);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    filled += static_cast<std::size_t>(n);
  }
  ::close(fd);
  text.resize(filled);
  return text;
}

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc{}) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> number_after(std::string_view text, std::string_view label) {
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.starts_with(label)) continue;
    line.remove_prefix(label.size());
    const auto begin = line.find_first_not_of(" \t");
    if (begin == 0 || begin == line.npos) continue; // of a longer label, or of none
    return number_in(line.substr(begin));
  }
  return std::nullopt;
}

} // namespace troupe
