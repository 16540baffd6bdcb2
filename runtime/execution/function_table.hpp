#pragma once

/// The functions that tasks may call, filled before `main` on both sides and never changed afterwards. What travels is
/// an index in the sorted table; it is looked up, never called as an address. Reading is safe from any thread.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <troupe/runtime/execution/sink.hpp>
#include <troupe/runtime/result.hpp>

namespace troupe {

class task_context;

/// A whole task: captures of the stage and the task's own argument in, result bytes out. Throws to fail the attempt.
using task_function = std::string (*)(task_context&, std::string_view captures, std::string_view argument);
/// Start of a chain: pushes all records of the partition and returns (does not call finish).
using source_function = void (*)(task_context&, std::string_view captures, std::string_view argument, erased_sink& out);
/// Middle of a chain: a sink that passes on to `out`, which outlives it.
using narrow_function = std::unique_ptr<erased_sink> (*)(task_context&, std::string_view captures, erased_sink& out);
/// End of a chain.
using terminal_function = std::unique_ptr<terminal_sink> (*)(task_context&, std::string_view captures);

using any_function = std::variant<task_function, source_function, narrow_function, terminal_function>;

/// A table of functions. A process has one that counts: `instance`.
class function_table {
public:
  function_table() = default;

  /// The one table. The first question asked of it sorts and closes it; an entry added later is a start-up error.
  static function_table& instance();

  /// Adds an entry; `instance` is filled by static initialisers only. An equal key of the same place is remembered as a
  /// start-up error. @param place tells apart what several source files may call by one name; the same in all processes
  /// that run the program. @returns a handle for `index_of`.
  std::size_t add(std::string_view key, any_function function, std::string_view place = {});

  /// Error when two entries have one key and place or one came too late; checked by `troupe::run` and
  /// `troupe::prepare`.
  result<void> check() const;
  /// Index in key order of the entry that `add` returned `handle` for: what travels. Throws std::logic_error for an
  /// entry that came too late.
  std::uint32_t index_of(std::size_t handle) const;
  /// Null for an index that is out of range: it came from outside.
  const any_function* find(std::uint32_t index) const noexcept;
  /// Index by key, for named task functions.
  result<std::uint32_t> find_key(std::string_view key) const;
  std::size_t size() const noexcept;

private:
  void close() const;

  struct entry {
    std::string key;
    std::string place;
    any_function function;
    std::size_t handle;
  };
  static constexpr std::size_t late_handle = static_cast<std::size_t>(-1);

  mutable std::mutex mutex_;                 ///< adding and closing; a closed table is read without it
  mutable std::vector<entry> entries_;       ///< sorted by key and place once closed
  mutable std::vector<std::uint32_t> index_; ///< by handle
  mutable std::atomic<bool> closed_ = false;
  std::string late_key_; ///< first key that came after closing
};

/// Registers `Function` under `Key::name()`, and `Key::place()` where it has one, before main when it is mentioned
/// anywhere in the program.
template <class Key, auto Function>
struct registered_function {
  static std::uint32_t index() { return function_table::instance().index_of(handle); }
  static std::size_t add() {
    std::string_view place;
    if constexpr (requires { Key::place(); }) place = Key::place();
    return function_table::instance().add(Key::name(), any_function{Function}, place);
  }
  static inline const std::size_t handle = add();
};

} // namespace troupe
