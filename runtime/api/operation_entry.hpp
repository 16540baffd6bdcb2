#pragma once

/// Puts the operations that datasets are made of into the table of functions, and checks their chain in the executor.

#include <stdexcept>
#include <string>
#include <typeinfo>
#include <utility>

#include <troupe/runtime/dag/job_spec.hpp>
#include <troupe/runtime/execution/function_table.hpp>
#include <troupe/runtime/execution/sink.hpp>
#include <troupe/runtime/execution/task_context.hpp>

namespace troupe::detail {

/// The name of an operation's entry: its type with the record types and the function's type, which the compiler makes
/// different for every lambda. The same in driver and executors, since they run the same program.
template <class Operation>
struct operation_key {
  static std::string_view name() noexcept { return typeid(Operation).name(); }
  /// The file that is compiled. Of lambdas in an unnamed namespace, or in a static function, each file has its own
  /// entry, though their types may have one name. Of all others the program has one entry, of whichever file.
  static std::string_view place() noexcept { return __BASE_FILE__; }
};

/// `Operation::make` with these captures as a step of a job. Mentioning it anywhere in the program puts the entry into
/// the table before main.
template <class Operation>
operation make_operation(std::string encoded_captures = {}) {
  return {registered_function<operation_key<Operation>, &Operation::make>::index(), std::move(encoded_captures)};
}

/// The next sink of a chain with the type that the operation before it was compiled for. The chain came from outside:
/// where it does not fit, this throws instead of calling what is not there.
template <class T>
sink<T>& typed_sink(erased_sink& out) {
  if (auto* typed = dynamic_cast<sink<T>*>(&out)) return *typed;
  throw std::logic_error(std::string{"the operations of this stage do not fit together: records of type "} +
                         typeid(T).name() + " meet " + typeid(out).name());
}

/// Ends an attempt that was killed; sources call it for every record.
inline void stop_if_cancelled(const task_context& context) {
  if (context.cancelled()) throw std::runtime_error("the attempt was cancelled");
}

/// A sink at the end of a chain.
template <class T>
class terminal : public terminal_sink, public sink<T> {};

} // namespace troupe::detail
