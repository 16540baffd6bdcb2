#pragma once

/// Typed datasets: descriptions of data that nobody has computed yet. Operations describe further datasets; an action
/// (collect, count, reduce, top, take, foreach) runs a job and returns its result.
///
/// A dataset is a small immutable value; copies share one graph. Any thread. Operations do nothing but describe
/// (sorting and zip_with_index look at the records first); actions throw `job_error` when the job does not succeed.
/// Functions are given in the forms that closure.hpp explains; every operation that takes one also takes
/// `troupe::with(values…)` before it.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <troupe/runtime/api/checks.hpp>
#include <troupe/runtime/api/closure.hpp>
#include <troupe/runtime/api/derived_operations.hpp>
#include <troupe/runtime/api/graph.hpp>
#include <troupe/runtime/api/narrow_operations.hpp>
#include <troupe/runtime/api/partition_operations.hpp>
#include <troupe/runtime/api/pipeline_operations.hpp>
#include <troupe/runtime/api/refused.hpp>
#include <troupe/runtime/api/session_core.hpp>
#include <troupe/runtime/api/shuffle_operations.hpp>
#include <troupe/runtime/api/sort_operations.hpp>
#include <troupe/runtime/api/terminal_operations.hpp>
#include <troupe/runtime/api/text_output.hpp>

namespace troupe {

template <class T>
class dataset : public detail::derived_operations<T> {
public:
  using record_type = T;

  /// --- narrow operations: each partition by itself, in the same task as what is before it ---

  /// One record for each: `f(record)`.
  /// Spark: map. `words.map([](const std::string& word) { return word.size(); })`
  template <class F>
  auto map(F f) const {
    return map(with(), f);
  }
  template <class... C, class F>
  auto map(const captures<C...>& c, F) const {
    [[maybe_unused]] constexpr bool said = detail::check_call<F, captures<C...>, void, T>();
    if constexpr (detail::is_callable<F, captures<C...>, void, T>)
      return narrow<detail::mapped<T, F, captures<C...>>, detail::map_operation<T, F, captures<C...>>>("map", c);
    else
      return dataset<detail::refused>{};
  }

  /// The records for which `f(record)` is true.
  /// Spark: filter. `words.filter([](const std::string& word) { return word.size() > 3; })`
  template <class F>
  dataset filter(F f) const {
    return filter(with(), f);
  }
  template <class... C, class F>
  dataset filter(const captures<C...>& c, F) const {
    [[maybe_unused]] constexpr bool said = detail::check_call<F, captures<C...>, bool, const T&>();
    if constexpr (detail::is_callable<F, captures<C...>, bool, const T&>)
      return narrow<T, detail::filter_operation<T, F, captures<C...>>>("filter", c);
    else
      return *this;
  }

  /// Any number of records for each: `f(record)` returns a container, or `f(record, troupe::emitter<U>& emit)` calls
  /// `emit(value)` for each.
  /// Spark: flatMap. `words.flat_map([](const std::string& word) { return std::vector{word, word}; })`
  template <class F>
  auto flat_map(F f) const {
    return flat_map(with(), f);
  }
  template <class... C, class F>
  auto flat_map(const captures<C...>& c, F) const {
    return expand<detail::flat_map_operation<T, F, captures<C...>>, T, F>("flat_map", c);
  }

  /// Any number of records for each partition, empty ones included: `f(std::vector<T>)` returns a container, or
  /// `f(std::vector<T>, troupe::emitter<U>& emit)` calls `emit(value)` for each.
  /// Spark: mapPartitions. `words.map_partitions([](std::vector<std::string> all) { return all; })`
  template <class F>
  auto map_partitions(F f) const {
    return map_partitions(with(), f);
  }
  template <class... C, class F>
  auto map_partitions(const captures<C...>& c, F) const {
    return expand<detail::map_partitions_operation<T, F, captures<C...>>, std::vector<T>, F>("map_partitions", c);
  }

  /// Each record with the chance `fraction`, from 0 to 1: about that part of them, the same ones for the same `seed`.
  /// Throws std::invalid_argument.
  /// Spark: sample. `words.sample(0.1)`
  dataset sample(double fraction, std::uint64_t seed = 0) const {
    if (!(fraction >= 0 && fraction <= 1))
      throw std::invalid_argument("sample(" + std::to_string(fraction) + "): give a fraction from 0 to 1");
    auto node = after("sample");
    // A sample of a sample draws other numbers, or it would take those again that had the luck before.
    node->step = detail::make_operation<detail::sample_operation<T>>(
        encode_value(std::pair{fraction, seed + 0x9e3779b97f4a7c15 * node->samples++}));
    return {core_, std::move(node)};
  }

  /// Pairs of a record and its number, from 0, in partition order. At once runs a job that counts the partitions; their
  /// records are kept, as by sort_by_key. A task that finds another number of records than was counted fails.
  /// Spark: zipWithIndex. `words.zip_with_index()`
  dataset<std::pair<T, std::uint64_t>> zip_with_index() const {
    detail::check_travels<detail::stuck_part<T>>();
    if constexpr (travels) {
      const auto records = once();
      std::vector<std::uint64_t> firsts{0}; // and behind all of them how many there are
      records.act(detail::make_operation<detail::count_terminal<T>>(), "count", [&](std::string_view bytes) {
        firsts.push_back(firsts.back() + decode_value<std::uint64_t>(bytes));
      });
      auto node = records.after("zip_with_index");
      node->kept_before = kept_for_two(records);
      auto encoded = detail::encode_captures(with(std::move(firsts)), core_->publisher());
      node->step = detail::make_operation<detail::number_operation<T>>(std::move(encoded.bytes));
      node->held = std::move(encoded.held);
      return {core_, std::move(node)};
    } else {
      return {core_, nullptr};
    }
  }

  /// --- operations that move partitions: a shuffle ---

  /// The records of this and then those of `other`, each in its order, in as many partitions as both have.
  /// Spark: union. `words.union_with(words)`
  dataset union_with(const dataset& other) const {
    detail::check_travels<detail::stuck_part<T>>();
    if constexpr (travels) {
      const auto count = node_->partitions + other.node_->partitions;
      return moved_reader<2>("union_with", {moved(count, {}), other.moved(count, {node_->partitions, 1, 1})}, count);
    } else {
      return *this;
    }
  }

  /// The same records, spread evenly over `partitions`, in no order that means something.
  /// Spark: repartition. `words.repartition(8)`
  dataset repartition(std::uint32_t partitions) const {
    detail::check_travels<detail::stuck_part<T>>();
    if constexpr (travels) {
      const auto count = core_->partitions_or_default(partitions);
      // Records of a row that may be another one next time go where their content says.
      bool by_content = false;
      for (const auto* node = node_.get(); node; node = node->parent.get())
        by_content = by_content || node->indeterminate;
      auto write = detail::make_operation<detail::spread_write<T>>(encode_value(by_content));
      return moved_reader<1>("repartition", {shuffle(std::move(write), count)}, count);
    } else {
      return *this;
    }
  }

  /// The same records in the same order in no more than so many partitions, each of some that lay side by side.
  /// Spark: coalesce. `words.coalesce(1)`
  dataset coalesce(std::uint32_t partitions) const {
    detail::check_travels<detail::stuck_part<T>>();
    if constexpr (travels) {
      const auto count = core_->partitions_or_default(partitions);
      if (count >= node_->partitions) return *this;
      return moved_reader<1>("coalesce", {moved(count, {0, count, node_->partitions})}, count);
    } else {
      return *this;
    }
  }

  /// --- wide operations on pairs (key, value): a shuffle, after which a new stage begins ---

  /// One pair per key, its values combined by `f(value, value)`, already before the shuffle. `partitions`: 0 for the
  /// session's default.
  /// Spark: reduceByKey. `pairs.reduce_by_key(std::plus<>{})`
  template <class F>
  dataset reduce_by_key(F f, std::uint32_t partitions = 0) const {
    return reduce_by_key(with(), f, partitions);
  }
  template <class... C, class F>
  dataset reduce_by_key(const captures<C...>& c, F, std::uint32_t partitions = 0) const {
    check_pair();
    if constexpr (is_pair) {
      if constexpr (travels) detail::check_call<F, captures<C...>, value_of, value_of, value_of>();
      if constexpr (travels && detail::is_callable<F, captures<C...>, value_of, value_of, value_of>) {
        const auto count = core_->partitions_or_default(partitions);
        const auto encoded = detail::encode_captures(c, core_->publisher());
        using write = detail::combining_write<key_of, value_of, F, captures<C...>>;
        auto edge = shuffle(detail::make_operation<write>(encoded.bytes), count, encoded.held);
        auto step = detail::make_operation<detail::reduce_read<key_of, value_of, F, captures<C...>>>(encoded.bytes);
        return {core_, reader("reduce_by_key", std::move(step), {std::move(edge)}, count)};
      }
    }
    return *this;
  }

  /// One pair per key with all its values, those of earlier partitions first.
  /// Spark: groupByKey. `pairs.group_by_key()`
  auto group_by_key(std::uint32_t partitions = 0) const {
    check_pair();
    if constexpr (is_pair && travels) {
      using grouped = std::pair<key_of, std::vector<value_of>>;
      const auto count = core_->partitions_or_default(partitions);
      return dataset<grouped>{core_,
                              reader("group_by_key", detail::make_operation<detail::group_read<key_of, value_of>>(),
                                     {plain_shuffle(count)}, count)};
    } else {
      return dataset<detail::refused>{};
    }
  }

  /// One pair per key: what `zero` becomes when `fold(folded, value)` takes up values of one task, and
  /// `merge(folded, folded)` what they have become. A task whose keys are many begins with `zero` more than once for a
  /// key, so merging with it must change nothing. `zero` decides the type: `0.0`, not `0`, for sums of numbers.
  /// Spark: aggregateByKey. `pairs.aggregate_by_key(0.0, [](double s, auto n) { return s + 0.5 * n; }, std::plus<>{})`
  template <class A, class Fold, class Merge>
  auto aggregate_by_key(A zero, Fold fold, Merge merge, std::uint32_t partitions = 0) const {
    return aggregate_by_key(with(), std::move(zero), fold, merge, partitions);
  }
  template <class... C, class A, class Fold, class Merge>
  auto aggregate_by_key(const captures<C...>& c, A zero, Fold, Merge, std::uint32_t partitions = 0) const {
    check_pair();
    if constexpr (is_pair) {
      detail::check_travels<detail::stuck_part<A>>();
      if constexpr (travels && detail::can_travel<A>::value) {
        detail::check_call<Fold, captures<C...>, A, A, value_of>();
        detail::check_call<Merge, captures<C...>, A, A, A>();
        static_assert(
            !detail::is_cut<typename detail::call<Fold, captures<C...>, A, value_of>::result, A>,
            "troupe: what is folded is more than zero's type may hold. Cure: a zero of that type, such as 0.0 "
            "or std::int64_t{0}");
      }
      if constexpr (travels && detail::can_travel<A>::value &&
                    detail::is_callable<Fold, captures<C...>, A, A, value_of> &&
                    detail::is_callable<Merge, captures<C...>, A, A, A>) {
        const auto count = core_->partitions_or_default(partitions);
        const auto to_fold = detail::encode_captures(
            std::apply([&](const C&... values) { return with(std::move(zero), values...); }, c.values),
            core_->publisher());
        const auto to_merge = detail::encode_captures(c, core_->publisher());
        using write = detail::combining_write<key_of, value_of, detail::fold_from_zero<Fold, A, value_of, C...>,
                                              captures<A, C...>, A>;
        auto held = to_fold.held;
        held.insert(held.end(), to_merge.held.begin(), to_merge.held.end());
        auto edge = shuffle(detail::make_operation<write>(to_fold.bytes), count, std::move(held));
        auto step = detail::make_operation<detail::reduce_read<key_of, A, Merge, captures<C...>>>(to_merge.bytes);
        return dataset<std::pair<key_of, A>>{core_,
                                             reader("aggregate_by_key", std::move(step), {std::move(edge)}, count)};
      } else {
        return dataset<detail::refused>{};
      }
    } else {
      return dataset<detail::refused>{};
    }
  }

  /// A pair (key, (left, right)) for every two values of one key. `right`: pairs with the same type of key.
  /// Spark: join. `pairs.join(pairs)`
  template <class U>
  auto join(const dataset<U>& right, std::uint32_t partitions = 0) const {
    return joined<detail::inner_form>("join", right, partitions);
  }
  /// A pair (key, (left, right)) for every two values of one key, and for values on the left side that meet none: the
  /// right half is a std::optional.
  /// Spark: leftOuterJoin. `pairs.left_join(pairs)`
  template <class U>
  auto left_join(const dataset<U>& right, std::uint32_t partitions = 0) const {
    return joined<detail::left_form>("left_join", right, partitions);
  }
  /// A pair (key, (left, right)) for every two values of one key, and for values on either side that meet none: both
  /// halves are a std::optional.
  /// Spark: fullOuterJoin. `pairs.full_join(pairs)`
  template <class U>
  auto full_join(const dataset<U>& right, std::uint32_t partitions = 0) const {
    return joined<detail::full_form>("full_join", right, partitions);
  }
  /// One pair (key, (values of the left side, values of the right side)) for each key that either side has.
  /// Spark: cogroup. `pairs.cogroup(pairs)`
  template <class U>
  auto cogroup(const dataset<U>& right, std::uint32_t partitions = 0) const {
    return joined<detail::group_form>("cogroup", right, partitions);
  }

  /// The pairs in the order of their keys (`operator<`, or the other way round), over all partitions; equal keys keep
  /// their order. Numbers and enums are in the order of their values, whatever `operator<` an enum has; what is no
  /// number comes behind all others, also within pairs and the like. At once runs a job that looks at a sample of the
  /// keys, where there is more than one partition to make; the records are kept for it (persist, in memory and on
  /// disk), so that nothing runs twice, as long as this dataset or one made from it is there.
  /// Spark: sortByKey. `pairs.sort_by_key(troupe::sort_order::descending)`
  dataset sort_by_key(sort_order order = sort_order::ascending, std::uint32_t partitions = 0) const {
    check_pair();
    if constexpr (is_pair)
      return sort_as<detail::sorted_pairs<key_of, value_of>>("sort_by_key", order, partitions);
    else
      return *this;
  }

  /// The records in their order, as sort_by_key orders keys.
  /// Spark: sortBy(x => x). `words.sorted()`
  dataset sorted(sort_order order = sort_order::ascending, std::uint32_t partitions = 0) const {
    return sort_as<detail::sorted_wholes<T>>("sorted", order, partitions);
  }

  /// --- attributes; the last call wins ---

  /// The tasks that compute this dataset run under `profile`, and with them all that is computed in the same tasks:
  /// everything back to the last shuffle, source or other call of this, and where no other one follows, on to the next
  /// shuffle or action. Between two profiles that differ the stage is cut, and its parts are a pipeline: a task of the
  /// later one starts as soon as the same partition of the earlier one is there (`troupe.scheduler.profile-change`).
  /// Spark: withResources. `words.with_resources(troupe::resource_profile{})`
  dataset with_resources(resource_profile profile) const {
    auto node = std::make_shared<detail::dataset_node>(*node_);
    node->profile = std::move(profile);
    node->records.reset();
    if constexpr (travels)
      node->records = detail::hand_over{detail::make_operation<detail::partition_write<T>>(),
                                        detail::make_operation<detail::partition_read<T>>()};
    return {core_, std::move(node)};
  }

  /// The tasks that compute this dataset are a gang, with all that is computed in the same tasks (see with_resources):
  /// they start together, and one that fails fails them all, which then run again. Functions of them may call
  /// `task_context::current().barrier()` and `all_gather(text)`.
  /// Spark: barrier. `words.barrier()`
  dataset barrier() const {
    auto node = std::make_shared<detail::dataset_node>(*node_);
    node->barrier = true;
    return {core_, std::move(node)};
  }

  /// Computed again, it may have other records, or in another order (random numbers, the time, what a service says):
  /// what a pipeline has made of it is kept until the next stage is complete. If it is lost all the same, and one of
  /// two later stages has read it while the other has not, the job fails: they would go on from different records.
  /// Spark: —. `words.indeterminate()`
  dataset indeterminate() const {
    auto node = std::make_shared<detail::dataset_node>(*node_);
    node->indeterminate = true;
    return {core_, std::move(node)};
  }

  /// --- keeping records for later jobs ---

  /// The same records, which the first job that computes them leaves with the executors, each partition where it was
  /// made, for all that read them later: jobs of this and other datasets, near them where there is room. What was lost
  /// or had to make room is computed again when it is needed. They stay until `unpersist`, or until nobody has this
  /// dataset or one made from it any more.
  /// Spark: persist. `words.persist(troupe::storage_level::disk)`
  dataset persist(storage_level level) const {
    detail::check_travels<detail::stuck_part<T>>();
    auto node = std::make_shared<detail::dataset_node>(*node_);
    if constexpr (travels) {
      auto [reference, published] =
          core_->publish({std::make_shared<const char>(), typeid(char), [] { return std::string{}; }});
      node->kept =
          std::make_shared<detail::kept_records>(kept_dataset{reference.id, level},
                                                 detail::hand_over{detail::make_operation<detail::partition_write<T>>(),
                                                                   detail::make_operation<detail::partition_read<T>>()},
                                                 std::move(published));
    }
    return {core_, std::move(node)};
  }
  /// `persist` in memory, where there is room.
  /// Spark: cache. `words.cache()`
  dataset cache() const { return persist(storage_level::memory); }
  /// Executors drop what they keep of it when the jobs that read it have ended, and later jobs keep none of it. So they
  /// do with what a sort or zip_with_index has had kept in order to read it twice; other datasets that come from there
  /// compute it again. No effect on a dataset that is not kept.
  /// Spark: unpersist. `words.unpersist()`
  void unpersist() const {
    for (const auto& kept : {node_->kept, node_->kept_before})
      if (kept) kept->withdraw();
  }

  /// A name for people: of the stage that computes this dataset, and in messages.
  /// Spark: setName. `words.named("the words")`
  dataset named(std::string name) const {
    auto node = std::make_shared<detail::dataset_node>(*node_);
    node->name = std::move(name);
    node->named = true;
    return {core_, std::move(node)};
  }

  /// How many partitions it has.
  /// Spark: getNumPartitions. `words.partitions()`
  std::uint32_t partitions() const noexcept { return node_->partitions; }
  /// Its name; without `named`, that of its last operation.
  /// Spark: name. `words.name()`
  const std::string& name() const noexcept { return node_->name; }

  /// --- actions: each runs a job ---

  /// All records, in partition order.
  /// Spark: collect. `words.collect()`
  std::vector<T> collect() const { return gather(std::numeric_limits<std::uint64_t>::max(), "collect"); }

  /// The first `count` records in partition order. Every partition is computed.
  /// Spark: take. `words.take(10)`
  std::vector<T> take(std::uint64_t count) const {
    auto records = gather(count, "take");
    if (records.size() > count) records.erase(records.begin() + static_cast<std::ptrdiff_t>(count), records.end());
    return records;
  }

  /// How many records there are.
  /// Spark: count. `words.count()`
  std::uint64_t count() const {
    std::uint64_t total = 0;
    act(detail::make_operation<detail::count_terminal<T>>(), "count",
        [&](std::string_view bytes) { total += decode_value<std::uint64_t>(bytes); });
    return total;
  }

  /// All records folded by `f(record, record)`, within partitions and then in their order; nothing where there are no
  /// records.
  /// Spark: reduce. `numbers.reduce(std::plus<>{})`
  template <class F>
  std::optional<T> reduce(F f) const {
    return reduce(with(), f);
  }
  template <class... C, class F>
  std::optional<T> reduce(const captures<C...>& c, F) const {
    [[maybe_unused]] constexpr bool said = detail::check_call<F, captures<C...>, T, T, T>();
    if constexpr (detail::is_callable<F, captures<C...>, T, T, T>) detail::check_travels<detail::stuck_part<T>>();
    std::optional<T> total;
    if constexpr (travels && detail::is_callable<F, captures<C...>, T, T, T>) {
      const auto encoded = detail::encode_captures(c, core_->publisher());
      detail::closure<F, captures<C...>> function{c};
      act(detail::make_operation<detail::reduce_terminal<T, F, captures<C...>>>(encoded.bytes), "reduce",
          [&](std::string_view bytes) {
            auto part = decode_value<std::optional<T>>(bytes);
            if (!part) return;
            if (total)
              total = function(std::move(*total), std::move(*part));
            else
              total = std::move(part);
          });
    }
    return total;
  }

  /// The `count` records that come first where `before(a, b)` says that `a` comes before `b`; among equal ones those of
  /// earlier partitions. Without `before`: the largest (pairs by value, then the smaller key).
  /// Spark: top. `words.top(3)`
  std::vector<T> top(std::uint64_t count) const {
    static_assert(detail::is_ordered<T>::value,
                  "troupe: top needs an operator< for the type of the records (of pairs: for "
                  "both halves). Cure: write one, as a member or next to the type, or give "
                  "an order: .top(3, [](const record& a, const record& b) { … })");
    if constexpr (detail::is_ordered<T>::value)
      return top(count, largest_first{});
    else
      return {};
  }
  template <class F>
  std::vector<T> top(std::uint64_t count, F before) const {
    return top(count, with(), before);
  }
  template <class... C, class F>
  std::vector<T> top(std::uint64_t count, const captures<C...>& c, F) const {
    [[maybe_unused]] constexpr bool said = detail::check_call<F, captures<C...>, bool, const T&, const T&>();
    if constexpr (detail::is_callable<F, captures<C...>, bool, const T&, const T&>)
      detail::check_travels<detail::stuck_part<T>>();
    if constexpr (travels && detail::is_callable<F, captures<C...>, bool, const T&, const T&>) {
      const auto encoded = detail::encode_captures(c, core_->publisher());
      using order = detail::closure<F, captures<C...>>;
      detail::best_records<T, order> best{static_cast<std::size_t>(count), order{c}};
      act(detail::make_operation<detail::top_terminal<T, F, captures<C...>>>(encode_value(count) + encoded.bytes),
          "top", [&](std::string_view bytes) {
            for (auto&& record : decode_value<std::vector<T>>(bytes)) best.add(T(std::move(record)));
          });
      return best.take();
    } else {
      return {};
    }
  }

  /// Calls `f(record)` in the executors, for its effects. A task that runs again (after a failure) repeats them.
  /// Spark: foreach. `words.foreach([](const std::string& word) { std::puts(word.c_str()); })`
  template <class F>
  void foreach (F f) const {
    foreach (with(), f)
      ;
  }
  template <class... C, class F>
  void foreach (const captures<C...>& c, F) const {
    [[maybe_unused]] constexpr bool said = detail::check_call<F, captures<C...>, void, T>();
    if constexpr (detail::is_callable<F, captures<C...>, void, T>) {
      const auto encoded = detail::encode_captures(c, core_->publisher());
      act(detail::make_operation<detail::foreach_terminal<T, F, captures<C...>>>(encoded.bytes), "foreach",
          [](std::string_view) {});
    }
  }

  /// Writes each record of a dataset of strings as a line, one file `part-00000` and so on for each partition, below a
  /// directory that is not there yet, or is empty. Attempts write apart, and what the accepted ones have written is
  /// renamed when the job has succeeded; `_SUCCESS` says that all is there. This process and the executors must see the
  /// directory under the same path. Throws job_error; nothing is left then. A directory that is not empty is refused
  /// before a task of this job runs; what sort_by_key and sorted have run at once to get here has run by then.
  /// Spark: saveAsTextFile. `words.save_as_text("words")`
  void save_as_text(const std::string& directory) const {
    static_assert(std::is_same_v<T, std::string>,
                  "troupe: save_as_text writes records of type std::string. Cure: .map(...) the records to their lines "
                  "before it.");
    if constexpr (std::is_same_v<T, std::string>) {
      detail::text_directory into{directory};
      act(detail::text_terminal(into.staging()), "save_as_text",
          [&](std::string_view name) { into.publish(decode_value<std::string>(name)); });
      into.commit();
    }
  }

private:
  template <class>
  friend class dataset;
  template <class>
  friend class detail::derived_operations;
  friend class session;

  using node_pointer = std::shared_ptr<const detail::dataset_node>;
  using edge_pointer = std::shared_ptr<const detail::shuffle_edge>;
  using key_of = typename detail::pair_types<T>::key;
  using value_of = typename detail::pair_types<T>::value;
  static constexpr bool is_pair = detail::pair_types<T>::is_pair;
  static constexpr bool travels = detail::can_travel<T>::value;

  dataset(std::shared_ptr<detail::session_core> core, node_pointer node)
    : core_(std::move(core)), node_(std::move(node)) {}

  static constexpr void check_pair() {
    detail::check_pair<T>();
    if constexpr (is_pair) detail::check_travels<detail::stuck_part<T>>();
  }

  template <class Out, class Operation, class... C>
  auto narrow(const char* name, const captures<C...>& c) const {
    static_assert(!std::is_void_v<Out>, "troupe: this function returns nothing where a record is expected");
    if constexpr (!std::is_void_v<Out>) detail::check_record<Out>();
    if constexpr (std::is_void_v<Out> || detail::holds_view<Out>::value) {
      return dataset<detail::refused>{};
    } else {
      auto node = after(name);
      auto encoded = detail::encode_captures(c, core_->publisher());
      node->step = detail::make_operation<Operation>(std::move(encoded.bytes));
      node->held = std::move(encoded.held);
      return dataset<Out>{core_, std::move(node)};
    }
  }

  /// One reader of this and of `right`, whose pairs have the same type of key.
  template <template <class, class> class Form, class U>
  auto joined(const char* name, const dataset<U>& right, std::uint32_t partitions) const {
    check_pair();
    if constexpr (!std::is_same_v<U, detail::refused>) {
      dataset<U>::check_pair();
      constexpr bool pairs = is_pair && dataset<U>::is_pair;
      constexpr bool same_key = std::is_same_v<key_of, typename dataset<U>::key_of>;
      static_assert(!pairs || same_key,
                    "troupe: join needs the same type of key on both sides, for keys are compared by their bytes. "
                    "Cure: .map(...) one side to the other's type of key before it.");
      if constexpr (pairs && same_key && travels && dataset<U>::travels) {
        using right_value = typename dataset<U>::value_of;
        using record = std::pair<key_of, typename Form<value_of, right_value>::record>;
        const auto count = core_->partitions_or_default(partitions);
        auto step = detail::make_operation<detail::join_read<key_of, value_of, right_value, Form>>();
        return dataset<record>{
            core_, reader(name, std::move(step), {plain_shuffle(count), right.plain_shuffle(count)}, count)};
      } else {
        return dataset<detail::refused>{};
      }
    } else {
      return dataset<detail::refused>{};
    }
  }

  template <class Operation, class In, class F, class... C>
  auto expand(const char* name, const captures<C...>& c) const {
    detail::check_closure<F>();
    using expansion = detail::expansion<In, F, captures<C...>>;
    using record = typename expansion::record;
    constexpr bool known = !std::is_void_v<record> && expansion::possible;
    static_assert(known || !detail::can_be_made_anew<F>,
                  "troupe: the function given to flat_map or map_partitions must return a container of records, or "
                  "take a last parameter troupe::emitter<U>& and call it for each; before that it takes the captures "
                  "given by troupe::with and the record (map_partitions: a std::vector of records)");
    if constexpr (known && detail::can_be_made_anew<F>)
      return narrow<record, Operation>(name, c);
    else
      return dataset<detail::refused>{};
  }

  edge_pointer shuffle(operation write, std::uint32_t buckets,
                       std::vector<std::shared_ptr<const void>> held = {}) const {
    return std::make_shared<detail::shuffle_edge>(node_, std::move(write), buckets, std::move(held));
  }
  edge_pointer moved(std::uint32_t buckets, const detail::partition_move& where) const {
    return shuffle(detail::make_operation<detail::move_write<T>>(encode_value(where)), buckets);
  }
  /// What was moved, one shuffle after the other.
  template <std::uint8_t Shuffles>
  dataset moved_reader(const char* name, std::vector<edge_pointer> edges, std::uint32_t count) const {
    return {core_, reader(name, detail::make_operation<detail::moved_read<T, Shuffles>>(), std::move(edges), count)};
  }
  edge_pointer plain_shuffle(std::uint32_t buckets) const {
    return shuffle(detail::make_operation<detail::shuffle_write<key_of, value_of>>(), buckets);
  }

  /// A narrow step behind this, without what it does.
  std::shared_ptr<detail::dataset_node> after(const char* name) const {
    auto node = std::make_shared<detail::dataset_node>();
    node->name = name;
    node->partitions = node_->partitions;
    node->samples = node_->samples;
    node->parent = node_;
    return node;
  }

  /// The same records for two jobs in a row, of which the second one does not run the author's functions again: they
  /// are kept, unless nothing of the author's has made them, or they are kept anyway.
  dataset once() const {
    const bool is_bare = !node_->parent && node_->shuffles.empty() && !node_->indeterminate;
    return is_bare || (node_->kept && node_->kept->begin_use()) ? *this : persist(storage_level::memory_and_disk);
  }

  /// What `once` has had kept; null where nothing.
  std::shared_ptr<detail::kept_records> kept_for_two(const dataset& records) const {
    return records.node_ == node_ ? nullptr : records.node_->kept;
  }

  /// The same dataset by the name of another operation.
  dataset called(const char* name) const {
    auto node = std::make_shared<detail::dataset_node>(*node_);
    node->name = name;
    return {core_, std::move(node)};
  }
  /// Likewise, of an operation that `first` is a part of.
  template <class U>
  dataset called(const char* name, const dataset<U>& first) const {
    auto node = std::make_shared<detail::dataset_node>(*node_);
    node->name = name;
    node->kept_before = first.node_->kept_before;
    return {core_, std::move(node)};
  }

  template <class Form>
  dataset sort_as(const char* name, sort_order order, std::uint32_t partitions) const {
    constexpr bool ordered = detail::is_ordered<typename Form::key>::value;
    detail::check_travels<detail::stuck_part<T>>();
    static_assert(ordered || !travels,
                  "troupe: sorting needs an operator< for the type of the key, and of all that it is made of. "
                  "Cure: write one, as a member or next to the type, or .map(...) the records to keys that "
                  "have one.");
    if constexpr (ordered && travels)
      return order == sort_order::ascending ? sort_as<Form, false>(name, partitions)
                                            : sort_as<Form, true>(name, partitions);
    else
      return *this;
  }
  template <class Form, bool Down>
  dataset sort_as(const char* name, std::uint32_t partitions) const {
    const auto wanted = core_->partitions_or_default(partitions);
    const auto records = wanted > 1 ? once() : *this;
    std::vector<std::string> bounds;
    if (wanted > 1) {
      constexpr std::uint64_t per_range = 60;           // so that no range is much larger than the others
      constexpr std::uint64_t sample_bytes = 512 << 10; // which the driver passes on
      const std::uint64_t parts = std::max(1u, node_->partitions);
      const std::pair of_each{std::max<std::uint64_t>(4, per_range * wanted / parts), sample_bytes / parts};
      std::vector<std::pair<std::uint64_t, std::vector<std::string>>> samples;
      records.act(detail::make_operation<detail::sample_terminal<Form>>(encode_value(of_each)), "sample",
                  [&](std::string_view bytes) {
                    samples.push_back(decode_value<std::pair<std::uint64_t, std::vector<std::string>>>(bytes));
                  });
      bounds = detail::range_bounds<detail::directed_order<typename Form::key, Down>>(samples, wanted);
    }
    const auto count = static_cast<std::uint32_t>(bounds.size() + 1);
    auto encoded = detail::encode_captures(with(std::move(bounds)), core_->publisher());
    auto edge = records.shuffle(detail::make_operation<detail::range_write<Form, Down>>(std::move(encoded.bytes)),
                                count, std::move(encoded.held));
    auto node = reader(name, detail::make_operation<detail::sort_read<Form, Down>>(), {std::move(edge)}, count);
    node->kept_before = kept_for_two(records);
    return {core_, std::move(node)};
  }

  static std::shared_ptr<detail::dataset_node> reader(const char* name, operation step,
                                                      std::vector<edge_pointer> shuffles, std::uint32_t partitions) {
    auto node = std::make_shared<detail::dataset_node>();
    node->name = name;
    node->partitions = partitions;
    node->step = std::move(step);
    for (const auto& edge : shuffles) node->samples = std::max(node->samples, edge->parent->samples);
    node->shuffles = std::move(shuffles);
    return node;
  }

  void act(const operation& end, const char* action, const detail::session_core::visitor& each) const {
    core_->run(*node_, end, action, each);
  }

  std::vector<T> gather(std::uint64_t limit, const char* action) const {
    detail::check_travels<detail::stuck_part<T>>();
    std::vector<T> records;
    if constexpr (travels)
      act(detail::make_operation<detail::collect_terminal<T>>(encode_value(limit)), action,
          [&](std::string_view bytes) {
            decoder in{bytes};
            while (!in.at_end()) records.push_back(serializer<T>::read(in));
          });
    return records;
  }

  std::shared_ptr<detail::session_core> core_;
  node_pointer node_;
};

} // namespace troupe
