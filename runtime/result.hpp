#pragma once

/// Expected failures as values. Exceptions are for broken invariants and are caught once, around user code.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace troupe {

/// What kind of thing went wrong. Numbers are part of the wire format: never reused, never renumbered.
enum class ec : std::uint16_t {
  none = 0,
  invalid_argument = 1,      ///< a value that no caller may pass (message names it)
  invalid_configuration = 2, ///< a key or value of a configuration, cluster or job file
  invalid_profile = 3,       ///< a resource profile that breaks a rule of its own
  infeasible = 4,            ///< no executor that may exist can run this
  not_found = 5,             ///< the named job, stage, executor, block or file does not exist
  refused = 6,               ///< the peer declined; the message says why
  unauthenticated = 7,       ///< the peer did not prove the secret
  version_mismatch = 8,      ///< protocol version or build differs
  unreachable = 9,           ///< nobody answered at an address, or within the time-out
  cancelled = 10,            ///< ended on request
  task_failed = 11,          ///< a task used up its attempts
  fetch_failed = 12,         ///< a block could not be had from where it should be
  io = 13,                   ///< the operating system declined
  malformed = 14,            ///< bytes that do not follow their format
  overloaded = 15,           ///< a stated limit was reached
  internal = 16,             ///< a defect of Troupe itself
  timed_out = 17,            ///< it took longer than its author allows
};
/// The largest number.
inline constexpr ec last_code = ec::timed_out;

/// The enumerator's name, for logs.
std::string_view to_string(ec code) noexcept;

/// Process exit code that stands for `code`: 0 ok, 1 job failed or was cancelled, 2 usage or configuration, 3
/// infeasible, 4 cluster unreachable. (130, for a job that this process itself has interrupted, is its main function's
/// to give.)
int exit_code_of(ec code) noexcept;

/// A failure: what kind, and one sentence that names the object, the value and where possible the cure.
struct error {
  ec code = ec::none;
  std::string message;

  bool operator==(const error&) const = default;
  /// True when this is a failure.
  explicit operator bool() const noexcept { return code != ec::none; }
};

inline error make_error(ec code, std::string message) { return {code, std::move(message)}; }

/// Either a value or an error. `T` must not be `error`.
template <class T>
class [[nodiscard]] result {
public:
  result(T value) : content_(std::in_place_index<0>, std::move(value)) {}     // NOLINT: implicit on purpose
  result(troupe::error e) : content_(std::in_place_index<1>, std::move(e)) {} // NOLINT: implicit on purpose

  bool has_value() const noexcept { return content_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  /// @pre has_value()
  T& value() & { return std::get<0>(content_); }
  const T& value() const& { return std::get<0>(content_); }
  T&& value() && { return std::get<0>(std::move(content_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  /// @pre !has_value()
  const troupe::error& error() const { return std::get<1>(content_); }
  troupe::error& error() { return std::get<1>(content_); }

private:
  std::variant<T, troupe::error> content_;
};

/// Success, or an error.
template <>
class [[nodiscard]] result<void> {
public:
  result() = default;
  result(troupe::error e) : error_(std::move(e)) {} // NOLINT: implicit on purpose

  bool has_value() const noexcept { return error_.code == ec::none; }
  explicit operator bool() const noexcept { return has_value(); }
  const troupe::error& error() const { return error_; }

private:
  troupe::error error_;
};

} // namespace troupe
