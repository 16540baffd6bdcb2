#include <troupe/runtime/result.hpp>

namespace troupe {

std::string_view to_string(ec code) noexcept {
  switch (code) {
  case ec::none: return "none";
  case ec::invalid_argument: return "invalid-argument";
  case ec::invalid_configuration: return "invalid-configuration";
  case ec::invalid_profile: return "invalid-profile";
  case ec::infeasible: return "infeasible";
  case ec::not_found: return "not-found";
  case ec::refused: return "refused";
  case ec::unauthenticated: return "unauthenticated";
  case ec::version_mismatch: return "version-mismatch";
  case ec::unreachable: return "unreachable";
  case ec::cancelled: return "cancelled";
  case ec::task_failed: return "task-failed";
  case ec::fetch_failed: return "fetch-failed";
  case ec::io: return "io";
  case ec::malformed: return "malformed";
  case ec::overloaded: return "overloaded";
  case ec::internal: return "internal";
  case ec::timed_out: return "timed-out";
  }
  return "unknown";
}

int exit_code_of(ec code) noexcept {
  switch (code) {
  case ec::none: return 0;
  case ec::invalid_argument:
  case ec::invalid_configuration:
  case ec::invalid_profile: return 2;
  case ec::infeasible: return 3;
  case ec::unreachable:
  case ec::unauthenticated:
  case ec::version_mismatch: return 4;
  default: return 1;
  }
}

} // namespace troupe
