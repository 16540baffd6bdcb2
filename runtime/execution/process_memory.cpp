#include <troupe/runtime/execution/process_memory.hpp>

#include <array>
#include <charconv>
#include <string>
#include <unistd.h>

#include <troupe/runtime/execution/kernel_file.hpp>

namespace troupe {

namespace {

std::string file_of(pid_t pid, const char* name) { return "/proc/" + std::to_string(pid) + "/" + name; }

} // namespace

std::uint64_t peak_memory_of(pid_t pid) {
  return number_after(read_kernel_file(file_of(pid, "status")), "VmHWM:").value_or(0) * 1024;
}

std::uint64_t data_of(pid_t pid) {
  return number_after(read_kernel_file(file_of(pid, "status")), "VmData:").value_or(0) * 1024;
}

std::uint64_t anonymous_memory_of(pid_t pid) {
  const auto text = read_kernel_file(file_of(pid, "statm"));
  std::array<std::uint64_t, 3> pages{}; // all, resident, of files or shared
  const char* at = text.data();
  for (auto& number : pages) {
    while (at != text.data() + text.size() && *at == ' ') ++at;
    at = std::from_chars(at, text.data() + text.size(), number).ptr;
  }
  return pages[1] > pages[2] ? (pages[1] - pages[2]) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) : 0;
}

std::uint64_t private_memory_of(pid_t pid) {
  const auto text = read_kernel_file(file_of(pid, "smaps_rollup"));
  const auto own = number_after(text, "Pss_Anon:");
  if (!own) return anonymous_memory_of(pid); // an older kernel
  return (*own + number_after(text, "Pss_Shmem:").value_or(0)) * 1024;
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
