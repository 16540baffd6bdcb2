#pragma once

/// Operations that turn one partition into one partition: map, filter, flat_map, map_partitions. Each is a sink that
/// calls the user's function and passes on what it gives: one virtual call a record, nothing allocated by Troupe.

#include <concepts>
#include <memory>
#include <ranges>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <troupe/runtime/api/closure.hpp>
#include <troupe/runtime/api/operation_entry.hpp>
#include <troupe/runtime/execution/task_context.hpp>

namespace troupe {

/// Where a function that makes many records puts them, one at a time, instead of collecting them in a container:
/// `[](const std::string& line, troupe::emitter<std::string>& emit) { emit(line); }`.
template <class T>
class emitter {
public:
  explicit emitter(sink<T>& out) noexcept : out_(out) {}
  void operator()(T record) const { out_.push(std::move(record)); }
  /// A pair whose key is a text: where it is reduced by key at once, no string is made of it.
  template <class Pair = T>
  requires std::is_same_v<Pair, std::pair<std::string, typename Pair::second_type>>
  void operator()(std::string_view key, typename Pair::second_type value) const {
    out_.push_text(key, std::move(value));
  }

private:
  sink<T>& out_;
};

namespace detail {

/// The type `U` of the `emitter<U>` that a function takes as its last parameter; void where it takes none, or where
/// its parameters are not fixed (`auto`).
template <class T>
struct emitted_by_parameter {
  using type = void;
};
template <class U>
struct emitted_by_parameter<emitter<U>> {
  using type = U;
};
template <class... A>
struct emitted_by_last : std::type_identity<void> {};
template <class A>
struct emitted_by_last<A> : emitted_by_parameter<std::remove_cvref_t<A>> {};
template <class A, class B, class... Rest>
struct emitted_by_last<A, B, Rest...> : emitted_by_last<B, Rest...> {};

template <class Call>
struct emitted_by_call : std::type_identity<void> {};
template <class F, class R, class... A>
struct emitted_by_call<R (F::*)(A...)> : emitted_by_last<A...> {};
template <class F, class R, class... A>
struct emitted_by_call<R (F::*)(A...) const> : emitted_by_last<A...> {};
template <class F, class R, class... A>
struct emitted_by_call<R (F::*)(A...) noexcept> : emitted_by_last<A...> {};
template <class F, class R, class... A>
struct emitted_by_call<R (F::*)(A...) const noexcept> : emitted_by_last<A...> {};

template <class F>
struct emitted_by : std::type_identity<void> {};
template <class F>
requires requires { &F::operator(); }
struct emitted_by<F> : emitted_by_call<decltype(&F::operator())> {};

/// How flat_map and map_partitions call `F` with an `In`: it returns a range of records, or takes an emitter.
template <class In, class F, class Captures>
struct expansion {
  using emitted = typename emitted_by<F>::type;
  static constexpr bool emits = !std::is_void_v<emitted>;
  using returned = typename call<F, Captures, In>::result;
  static constexpr bool possible = [] {
    if constexpr (emits)
      return call<F, Captures, In, emitter<emitted>&>::possible;
    else
      return call<F, Captures, In>::possible;
  }();
  static constexpr bool returns = !emits && std::ranges::input_range<returned>;

  static auto record_type() {
    if constexpr (emits)
      return std::type_identity<emitted>{};
    else if constexpr (returns)
      return std::type_identity<std::ranges::range_value_t<returned>>{};
    else
      return std::type_identity<void>{};
  }
  using record = typename decltype(record_type())::type;

  static void run(closure<F, Captures>& function, In&& in, sink<record>& out) {
    if constexpr (emits) {
      emitter<record> emit{out};
      function(std::forward<In>(in), emit);
    } else {
      auto&& range = function(std::forward<In>(in));
      // A container that the function gave away may be emptied; what a view or reference shows belongs to somebody.
      constexpr bool owned = !std::is_reference_v<returned> && !std::ranges::view<returned>;
      for (auto&& element : range) {
        if constexpr (owned)
          out.push(static_cast<record>(std::move(element)));
        else
          out.push(static_cast<record>(element));
      }
    }
  }
};

/// What the four have in common.
template <class Self, class In, class Out, class F, class Captures>
class narrow_operation : public sink<In> {
public:
  narrow_operation(std::string_view encoded, erased_sink& out) : function_(encoded), out_(typed_sink<Out>(out)) {}

  static std::unique_ptr<erased_sink> make(task_context&, std::string_view encoded, erased_sink& out) {
    return std::make_unique<Self>(encoded, out);
  }
  void finish() override { out_.finish(); }

protected:
  closure<F, Captures> function_;
  sink<Out>& out_;
};

template <class In, class F, class Captures>
using mapped = std::decay_t<typename call<F, Captures, In>::result>;

template <class In, class F, class Captures>
class map_operation final
  : public narrow_operation<map_operation<In, F, Captures>, In, mapped<In, F, Captures>, F, Captures> {
public:
  using map_operation::narrow_operation::narrow_operation;
  void push(In&& record) override {
    // A function that returns a reference shows a value that belongs to somebody: the next step gets a copy.
    this->out_.push(static_cast<mapped<In, F, Captures>>(this->function_(std::move(record))));
  }
};

template <class In, class F, class Captures>
class filter_operation final : public narrow_operation<filter_operation<In, F, Captures>, In, In, F, Captures> {
public:
  using filter_operation::narrow_operation::narrow_operation;
  void push(In&& record) override {
    if (this->function_(std::as_const(record))) this->out_.push(std::move(record));
  }
};

template <class In, class F, class Captures>
class flat_map_operation final : public narrow_operation<flat_map_operation<In, F, Captures>, In,
                                                         typename expansion<In, F, Captures>::record, F, Captures> {
public:
  using flat_map_operation::narrow_operation::narrow_operation;
  void push(In&& record) override { expansion<In, F, Captures>::run(this->function_, std::move(record), this->out_); }
};

/// Holds one whole partition in memory, for functions that need all of it.
template <class In, class F, class Captures>
class map_partitions_operation final
  : public narrow_operation<map_partitions_operation<In, F, Captures>, In,
                            typename expansion<std::vector<In>, F, Captures>::record, F, Captures> {
public:
  using map_partitions_operation::narrow_operation::narrow_operation;
  void push(In&& record) override { records_.push_back(std::move(record)); }
  void finish() override {
    expansion<std::vector<In>, F, Captures>::run(this->function_, std::move(records_), this->out_);
    this->out_.finish();
  }

private:
  std::vector<In> records_;
};

} // namespace detail

} // namespace troupe
