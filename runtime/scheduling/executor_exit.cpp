#include <troupe/runtime/scheduling/executor_exit.hpp>

#include <algorithm>
#include <array>
#include <string_view>

#include <string.h>

#include <troupe/runtime/resources/amount.hpp>

namespace troupe {

namespace {

/// In whole MiB, since nobody needs a peak to the byte.
std::string for_people(std::uint64_t bytes) {
  constexpr std::uint64_t mib = 1 << 20;
  return bytes < mib ? "less than 1m" : memory_to_string(static_cast<std::int64_t>(bytes / mib * mib));
}

} // namespace

bool is_own_doing(const executor_exit& exit) noexcept {
  constexpr std::array<std::string_view, 9> crashes{"SEGV", "BUS", "ILL", "FPE", "ABRT", "SYS", "TRAP", "XCPU", "XFSZ"};
  switch (exit.cause) {
  case exit_cause::unknown: return false;
  case exit_cause::exit_code:
  case exit_cause::memory_limit:
  case exit_cause::no_memory: return true;
  case exit_cause::signal: break;
  }
  const char* const name = ::sigabbrev_np(exit.signal);
  return name && std::find(crashes.begin(), crashes.end(), name) != crashes.end();
}

std::string signal_text(int signal) {
  const char* const name = ::sigabbrev_np(signal);
  return "signal " + std::to_string(signal) + (name ? " (SIG" + std::string{name} + ")" : "");
}

std::string to_string(const executor_exit& exit) {
  const auto peak = exit.peak_memory > 0 ? ", peak memory " + for_people(exit.peak_memory) : std::string{};
  switch (exit.cause) {
  case exit_cause::unknown: return {};
  case exit_cause::exit_code: return "it ended with exit code " + std::to_string(exit.exit_code) + peak;
  case exit_cause::signal: return "it was ended by " + signal_text(exit.signal) + peak;
  case exit_cause::memory_limit: return "it was killed at its memory limit of " + for_people(exit.memory_limit) + peak;
  case exit_cause::no_memory: return "it was killed by the kernel, which had no memory left for it" + peak;
  }
  return {};
}

} // namespace troupe
