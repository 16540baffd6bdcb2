#include <troupe/runtime/execution/process_memory.hpp>

#include <charconv>
#include <cstdio>
#include <fcntl.h>
#include <string_view>
#include <unistd.h>

namespace troupe {

std::uint64_t peak_memory_of(pid_t pid) {
  char path[48];
  std::snprintf(path, sizeof path, "/proc/%d/status", static_cast<int>(pid));
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[4096];
  const auto n = ::read(fd, text, sizeof text);
  ::close(fd);
  std::string_view rest{text, n > 0 ? static_cast<std::size_t>(n) : 0};
  constexpr std::string_view label = "\nVmHWM:";
  const auto at = rest.find(label);
  if (at == std::string_view::npos) return 0;
  rest.remove_prefix(at + label.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  std::uint64_t kib = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), kib);
  return kib * 1024;
}

std::uint64_t own_peak_memory::read(time_point now) {
  const auto t = now.time_since_epoch().count();
  auto next = next_reading_.load(std::memory_order_relaxed);
  if (t < next || !next_reading_.compare_exchange_strong(next, t + max_age.count(), std::memory_order_relaxed))
    return bytes_.load(std::memory_order_relaxed);
  const auto bytes = peak_memory_of(::getpid());
  bytes_.store(bytes, std::memory_order_relaxed);
  return bytes;
}

} // namespace troupe
