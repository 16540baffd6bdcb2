#pragma once

/// Values of every struct that crosses between actors, for round trips. No field of a full sample has its default
/// value, so that a field which the codec forgets is seen.

#include <cstddef>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <troupe/messages/type_ids.hpp>

namespace troupe::samples {

/// Full samples first; none where a struct has no sample yet, which a test reports.
template <class T>
std::vector<T> of();

namespace detail {

template <class T>
struct boxed_value {
  using list = std::tuple<>;
};
template <class T>
struct boxed_value<boxed<T>> {
  using list = std::tuple<T>;
};

template <class Indices>
struct announced;
template <std::size_t... I>
struct announced<std::index_sequence<I...>> {
  using list = decltype(std::tuple_cat(
      std::declval<typename boxed_value<typename caf::type_by_id<caf::id_block::troupe::begin + I>::type>::list>()...));
};

template <class Tuple>
struct as_types;
template <class... T>
struct as_types<std::tuple<T...>> {
  using type = ::testing::Types<T...>;
};

} // namespace detail

/// Every struct whose box is announced in the type-id block, as GoogleTest wants it.
using announced_types = typename detail::as_types<typename detail::announced<
    std::make_index_sequence<caf::id_block::troupe::end - caf::id_block::troupe::begin>>::list>::type;

/// A batch of four tasks with arguments of their own, out of order and with attempts.
task_batch scattered_batch();
/// Outcomes of three tasks, one of which failed.
outcome_batch mixed_outcomes();
/// A command with everything that one can have.
command_program full_command();

} // namespace troupe::samples
