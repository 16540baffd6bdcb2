#pragma once

/// How a function gets to an executor. Driver and executors run the same program, so what travels is the index of an
/// entry in a table that both built before main (execution/function_table.hpp), and, beside it, values that the author
/// names. C++ cannot see what a lambda captured, and a captured reference, `this`, `const char*` or string_view counts
/// as trivially copyable although it means nothing elsewhere; so nothing captured travels. Three forms are accepted:
///
///     .map([](const std::string& word) { return word.size(); })               // a lambda that captures nothing
///     .map(troupe::fn<word_length>)                                           // a function, by its name
///     .map(troupe::with(limit), [](const int& l, const std::string& word) { … })  // values, passed before the record
///
/// A function passed as it is (`.map(word_length)`) arrives as a pointer whose value no table can know before main, so
/// it is refused, like a lambda that captures, with a message that shows these cures. A constant lambda reads the same:
/// `constexpr auto word_length = [](const std::string& word) { … };` and then `.map(word_length)`.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <troupe/runtime/api/captured.hpp>
#include <troupe/runtime/api/serialize.hpp>

namespace troupe {

namespace detail {

/// Of what is no function: check_closure says so.
template <auto Function, class Type = decltype(Function)>
struct function_constant {};
template <auto Function, class R, class... A>
struct function_constant<Function, R (*)(A...)> {
  R operator()(A... arguments) const { return Function(std::forward<A>(arguments)...); }
};
template <auto Function, class R, class... A>
struct function_constant<Function, R (*)(A...) noexcept> : function_constant<Function, R (*)(A...)> {};

template <class F>
inline constexpr bool is_std_function = false;
template <class Signature>
inline constexpr bool is_std_function<std::function<Signature>> = true;

template <class F>
inline constexpr bool is_member_constant = false;
template <auto Function>
inline constexpr bool is_member_constant<function_constant<Function>> = std::is_member_pointer_v<decltype(Function)>;

/// Whether another process can make an `F` that does the same, from its type alone.
template <class F>
inline constexpr bool can_be_made_anew =
    std::is_empty_v<F>&& std::is_default_constructible_v<F> && !is_member_constant<F>;

/// Fails to compile, with the cure, where it cannot.
template <class F>
constexpr void check_closure() {
  constexpr bool pointer = std::is_pointer_v<F>;
  constexpr bool member = std::is_member_pointer_v<F>;
  static_assert(!member, "troupe: a pointer to a member cannot be found in another process. Cure: a lambda that says "
                         "which member, [](const record& r) { return r.member; }");
  static_assert(!is_member_constant<F>,
                "troupe: troupe::fn<…> takes the name of a function that is not a member of an object. Cure: a lambda "
                "that calls it, [](const record& r) { return r.member(); }");
  static_assert(!is_std_function<F>,
                "troupe: a std::function cannot travel to another process: nobody can see what is in it. Cure: pass "
                "the lambda itself, or a function by its name, .map(troupe::fn<words>)");
  static_assert(!pointer,
                "troupe: a function passed as a pointer cannot be found in another process. Cure: name it at compile "
                "time, .map(troupe::fn<words>) in place of .map(words), or write it as a constant lambda, constexpr "
                "auto words = [](const std::string& line) { … };");
  static_assert(pointer || member || is_member_constant<F> || is_std_function<F> || can_be_made_anew<F>,
                "troupe: a lambda that captures cannot travel to another process (a captured pointer or reference "
                "would look fine and mean nothing there). Cure: pass the values explicitly, .map(troupe::with(value), "
                "[](const auto& value, const record& r) { … }), and capture nothing.");
}

} // namespace detail

/// A function by name, for every place that takes a lambda: `troupe::fn<words>`.
template <auto Function>
inline constexpr detail::function_constant<Function> fn{};

/// Values that travel with a function and are passed to it before the record. Made by `with`.
template <class... C>
struct captures {
  std::tuple<C...> values;
};

/// Copies `values` to go with the function that follows. Each type must be able to travel (serialize.hpp). One that
/// takes more than 1 MiB goes to each host once, as a broadcast (broadcast.hpp), and is decoded once per process.
template <class... C>
captures<std::decay_t<C>...> with(C&&... values) {
  (detail::check_travels<detail::stuck_part<std::decay_t<C>>>(), ...);
  return {std::tuple<std::decay_t<C>...>{std::forward<C>(values)...}};
}

namespace detail {

/// What calling `F` after captures `C...` with arguments `A...` gives.
template <class F, class Captures, class... A>
struct call;
template <class F, class... C, class... A>
struct call<F, captures<C...>, A...> {
  static constexpr bool possible = std::is_invocable_v<F&, const C&..., A...>;
  template <bool Possible, class = void>
  struct result_of {
    using type = void;
  };
  template <class Void>
  struct result_of<true, Void> {
    using type = std::invoke_result_t<F&, const C&..., A...>;
  };
  using result = typename result_of<possible>::type;
};

/// A function made anew in the executor together with its decoded captures.
template <class F, class Captures>
class closure;
template <class F, class... C>
class closure<F, captures<C...>> {
public:
  /// Throws decode_error, and what broadcast_source::get does.
  explicit closure(std::string_view encoded) : closure(decoder{encoded}) {}
  /// In the program itself.
  explicit closure(const captures<C...>& c) : captures_(c.values) {}

  template <class... A>
  decltype(auto) operator()(A&&... arguments) {
    return std::apply(
        [&](const captured<C>&... values) -> decltype(auto) {
          return function_(*values..., std::forward<A>(arguments)...);
        },
        captures_);
  }

private:
  explicit closure(decoder&& in) : captures_{captured<C>{in}...} { in.expect_end(); } // braces: left to right

  [[no_unique_address]] F function_{};
  std::tuple<captured<C>...> captures_;
};
template <class F>
class closure<F, captures<>> {
public:
  explicit closure(std::string_view encoded) { decoder{encoded}.expect_end(); }
  explicit closure(const captures<>&) {}

  template <class... A>
  decltype(auto) operator()(A&&... arguments) {
    return function_(std::forward<A>(arguments)...);
  }

private:
  [[no_unique_address]] F function_{};
};

/// The bytes from which `closure` is made, and what has to be kept with them: broadcasts.
struct encoded_captures {
  std::string bytes;
  std::vector<std::shared_ptr<const void>> held;
};
template <class... C>
encoded_captures encode_captures(const captures<C...>& c, const publish_function& publish) {
  encoded_captures encoded;
  std::apply([&](const C&... values) { (write_captured(encoded.bytes, encoded.held, values, publish), ...); },
             c.values);
  return encoded;
}

} // namespace detail

} // namespace troupe
