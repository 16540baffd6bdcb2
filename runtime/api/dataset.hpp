#pragma once

/// Typed datasets: descriptions of data that nobody has computed yet. Operations describe further datasets; an action
/// (collect, count, reduce, top, take, foreach) runs a job and returns its result.
///
/// A dataset is a small immutable value; copies share one graph. Any thread. Operations do nothing but describe;
/// actions throw `job_error` when the job does not succeed. Functions are given in the forms that closure.hpp explains;
/// every operation that takes one also takes `troupe::with(values…)` before it.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <troupe/runtime/api/closure.hpp>
#include <troupe/runtime/api/graph.hpp>
#include <troupe/runtime/api/narrow_operations.hpp>
#include <troupe/runtime/api/pipeline_operations.hpp>
#include <troupe/runtime/api/refused.hpp>
#include <troupe/runtime/api/session_core.hpp>
#include <troupe/runtime/api/shuffle_operations.hpp>
#include <troupe/runtime/api/sort_operations.hpp>
#include <troupe/runtime/api/terminal_operations.hpp>
#include <troupe/runtime/api/text_output.hpp>

namespace troupe {

namespace detail {

template <class T>
struct pair_types {
  static constexpr bool is_pair = false;
  using key = T; // so that the one message about pairs is not followed by others
  using value = T;
};
template <class K, class V>
struct pair_types<std::pair<K, V>> {
  static constexpr bool is_pair = true;
  using key = K;
  using value = V;
};

/// Fails to compile, with the cure, where no dataset can have records of type `T`.
template <class T>
constexpr void check_record() {
  static_assert(!holds_view<T>::value,
                "troupe: records may not be pointers, references, C strings or views, nor hold any, which mean nothing "
                "in another process. Cure: return the value itself, e.g. std::string in place of std::string_view.");
}
template <class T>
using dataset_of = std::conditional_t<holds_view<T>::value, dataset<refused>, dataset<T>>;

/// Whether an operation may call `F` with captures and arguments and use what it returns as a `Result` (void: as it
/// is). Where it may not, check_call says why, and the operation does nothing else.
template <class F, class Captures, class Result, class... A>
inline constexpr bool is_callable = can_be_made_anew<F>&& call<F, Captures, A...>::possible &&
                                    (std::is_void_v<Result> ||
                                     std::is_convertible_v<typename call<F, Captures, A...>::result, Result>);

template <class F, class Captures, class Result, class... A>
constexpr void check_call() {
  check_closure<F>();
  constexpr bool possible = call<F, Captures, A...>::possible;
  static_assert(!can_be_made_anew<F> || possible,
                "troupe: this function cannot be called with the captures given by troupe::with, in their order, and "
                "then the operation's own arguments (the record; for reduce and top: two of them; for "
                "map_partitions: a std::vector of records). Cure: take the record by value or as a const reference; "
                "auto& and T& take none, for records are passed on, not changed in place.");
  static_assert(!can_be_made_anew<F> || !possible || is_callable<F, Captures, Result, A...>,
                "troupe: this function returns another type than the operation needs (reduce: the record's type; "
                "reduce_by_key: the value's; filter and top: bool)");
}

} // namespace detail

template <class T>
class dataset {
public:
  using record_type = T;

  /// --- narrow operations: each partition by itself, in the same task as what is before it ---

  /// One record for each: `f(record)`.
  template <class F>
  auto map(F f) const {
    return map(with(), f);
  }
  template <class... C, class F>
  auto map(const captures<C...>& c, F) const {
    detail::check_call<F, captures<C...>, void, T>();
    if constexpr (detail::is_callable<F, captures<C...>, void, T>)
      return narrow<detail::mapped<T, F, captures<C...>>, detail::map_operation<T, F, captures<C...>>>("map", c);
    else
      return dataset<detail::refused>{};
  }

  /// The records for which `f(record)` is true.
  template <class F>
  dataset filter(F f) const {
    return filter(with(), f);
  }
  template <class... C, class F>
  dataset filter(const captures<C...>& c, F) const {
    detail::check_call<F, captures<C...>, bool, const T&>();
    if constexpr (detail::is_callable<F, captures<C...>, bool, const T&>)
      return narrow<T, detail::filter_operation<T, F, captures<C...>>>("filter", c);
    else
      return *this;
  }

  /// Any number of records for each: `f(record)` returns a container, or `f(record, troupe::emitter<U>& emit)` calls
  /// `emit(value)` for each.
  template <class F>
  auto flat_map(F f) const {
    return flat_map(with(), f);
  }
  template <class... C, class F>
  auto flat_map(const captures<C...>& c, F) const {
    return expand<detail::flat_map_operation<T, F, captures<C...>>, T, F>("flat_map", c);
  }

  /// The same for a whole partition at once, empty ones included: `f(std::vector<T>)` returns a container, or
  /// `f(std::vector<T>, troupe::emitter<U>& emit)`.
  template <class F>
  auto map_partitions(F f) const {
    return map_partitions(with(), f);
  }
  template <class... C, class F>
  auto map_partitions(const captures<C...>& c, F) const {
    return expand<detail::map_partitions_operation<T, F, captures<C...>>, std::vector<T>, F>("map_partitions", c);
  }

  /// --- wide operations on pairs (key, value): a shuffle, after which a new stage begins ---

  /// One pair per key, its values combined by `f(value, value)`, already before the shuffle. `partitions`: 0 for the
  /// session's default.
  template <class F>
  dataset reduce_by_key(F f, std::uint32_t partitions = 0) const {
    return reduce_by_key(with(), f, partitions);
  }
  template <class... C, class F>
  dataset reduce_by_key(const captures<C...>& c, F, std::uint32_t partitions = 0) const {
    check_pair();
    if constexpr (is_pair) {
      detail::check_call<F, captures<C...>, value_of, value_of, value_of>();
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

  /// A pair (key, (left, right)) for every two values of one key. `right`: pairs with the same type of key.
  template <class U>
  auto join(const dataset<U>& right, std::uint32_t partitions = 0) const {
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
        using joined = std::pair<key_of, std::pair<value_of, right_value>>;
        const auto count = core_->partitions_or_default(partitions);
        auto step = detail::make_operation<detail::join_read<key_of, value_of, right_value>>();
        return dataset<joined>{
            core_, reader("join", std::move(step), {plain_shuffle(count), right.plain_shuffle(count)}, count)};
      } else {
        return dataset<detail::refused>{};
      }
    } else {
      return dataset<detail::refused>{};
    }
  }

  /// The pairs in the order of their keys (`operator<`, or the other way round), over all partitions; equal keys keep
  /// their order. Numbers and enums are in the order of their values, whatever `operator<` an enum has; what is no
  /// number comes behind all others, also within pairs and the like. At once runs a job that looks at a sample of the
  /// keys, where there is more than one partition to make.
  dataset sort_by_key(sort_order order = sort_order::ascending, std::uint32_t partitions = 0) const {
    check_pair();
    if constexpr (is_pair)
      return sort_as<detail::sorted_pairs<key_of, value_of>>("sort_by_key", order, partitions);
    else
      return *this;
  }

  /// The same for the records themselves.
  dataset sorted(sort_order order = sort_order::ascending, std::uint32_t partitions = 0) const {
    return sort_as<detail::sorted_wholes<T>>("sorted", order, partitions);
  }

  /// --- attributes; the last call wins ---

  /// The tasks that compute this dataset run under `profile`, and with them all that is computed in the same tasks:
  /// everything back to the last shuffle, source or other call of this, and where no other one follows, on to the next
  /// shuffle or action. Between two profiles that differ the stage is cut, and its parts are a pipeline: a task of the
  /// later one starts as soon as the same partition of the earlier one is there (`troupe.scheduler.profile-change`).
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
  dataset barrier() const {
    auto node = std::make_shared<detail::dataset_node>(*node_);
    node->barrier = true;
    return {core_, std::move(node)};
  }

  /// Computed again, it may have other records, or in another order (random numbers, the time, what a service says):
  /// what a pipeline has made of it is kept until the next stage is complete. If it is lost all the same, and one of
  /// two later stages has read it while the other has not, the job fails: they would go on from different records.
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
  /// The same in memory, where there is room.
  dataset cache() const { return persist(storage_level::memory); }
  /// Executors drop what they keep of it when the jobs that read it have ended, and later jobs keep none of it. No
  /// effect on a dataset that is not kept.
  void unpersist() const {
    if (node_->kept) node_->kept->withdraw();
  }

  /// A name for people: of the stage that computes this dataset, and in messages.
  dataset named(std::string name) const {
    auto node = std::make_shared<detail::dataset_node>(*node_);
    node->name = std::move(name);
    node->named = true;
    return {core_, std::move(node)};
  }

  std::uint32_t partitions() const noexcept { return node_->partitions; }
  const std::string& name() const noexcept { return node_->name; }

  /// --- actions: each runs a job ---

  /// All records, in partition order.
  std::vector<T> collect() const { return gather(std::numeric_limits<std::uint64_t>::max(), "collect"); }

  /// The first `count` records in partition order. Every partition is computed.
  std::vector<T> take(std::uint64_t count) const {
    auto records = gather(count, "take");
    if (records.size() > count) records.erase(records.begin() + static_cast<std::ptrdiff_t>(count), records.end());
    return records;
  }

  std::uint64_t count() const {
    std::uint64_t total = 0;
    act(detail::make_operation<detail::count_terminal<T>>(), "count",
        [&](std::string_view bytes) { total += decode_value<std::uint64_t>(bytes); });
    return total;
  }

  /// All records folded by `f(record, record)`, within partitions and then in their order; nothing where there are no
  /// records.
  template <class F>
  std::optional<T> reduce(F f) const {
    return reduce(with(), f);
  }
  template <class... C, class F>
  std::optional<T> reduce(const captures<C...>& c, F) const {
    detail::check_call<F, captures<C...>, T, T, T>();
    detail::check_travels<detail::stuck_part<T>>();
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
    detail::check_call<F, captures<C...>, bool, const T&, const T&>();
    detail::check_travels<detail::stuck_part<T>>();
    if constexpr (travels && detail::is_callable<F, captures<C...>, bool, const T&, const T&>) {
      const auto encoded = detail::encode_captures(c, core_->publisher());
      using order = detail::closure<F, captures<C...>>;
      detail::best_records<T, order> best{static_cast<std::size_t>(count), order{c}};
      act(detail::make_operation<detail::top_terminal<T, F, captures<C...>>>(encode_value(count) + encoded.bytes),
          "top", [&](std::string_view bytes) {
            for (auto& record : decode_value<std::vector<T>>(bytes)) best.add(std::move(record));
          });
      return best.take();
    } else {
      return {};
    }
  }

  /// Calls `f(record)` in the executors, for its effects. A task that runs again (after a failure) repeats them.
  template <class F>
  void foreach (F f) const {
    foreach (with(), f)
      ;
  }
  template <class... C, class F>
  void foreach (const captures<C...>& c, F) const {
    detail::check_call<F, captures<C...>, void, T>();
    if constexpr (detail::is_callable<F, captures<C...>, void, T>) {
      const auto encoded = detail::encode_captures(c, core_->publisher());
      act(detail::make_operation<detail::foreach_terminal<T, F, captures<C...>>>(encoded.bytes), "foreach",
          [](std::string_view) {});
    }
  }

  /// Writes each record of a dataset of strings as a line, one file `part-00000` and so on for each partition, below a
  /// directory that is not there yet, or is empty. Attempts write apart, and what the accepted ones have written is
  /// renamed when the job has succeeded; `_SUCCESS` says that all is there. This process and the executors must see the
  /// directory under the same path. Throws job_error; nothing is left then.
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
    static_assert(is_pair,
                  "troupe: operations by key need records of type std::pair<key, value>. Cure: .map([](record r) { "
                  "return std::pair{key, value}; }) before it.");
    if constexpr (is_pair) detail::check_travels<detail::stuck_part<T>>();
  }

  template <class Out, class Operation, class... C>
  auto narrow(const char* name, const captures<C...>& c) const {
    static_assert(!std::is_void_v<Out>, "troupe: this function returns nothing where a record is expected");
    if constexpr (!std::is_void_v<Out>) detail::check_record<Out>();
    if constexpr (std::is_void_v<Out> || detail::holds_view<Out>::value) {
      return dataset<detail::refused>{};
    } else {
      auto node = std::make_shared<detail::dataset_node>();
      node->name = name;
      node->partitions = node_->partitions;
      auto encoded = detail::encode_captures(c, core_->publisher());
      node->step = detail::make_operation<Operation>(std::move(encoded.bytes));
      node->held = std::move(encoded.held);
      node->parent = node_;
      return dataset<Out>{core_, std::move(node)};
    }
  }

  template <class Operation, class In, class F, class... C>
  auto expand(const char* name, const captures<C...>& c) const {
    detail::check_closure<F>();
    using record = typename detail::expansion<In, F, captures<C...>>::record;
    constexpr bool known = !std::is_void_v<record>;
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
  edge_pointer plain_shuffle(std::uint32_t buckets) const {
    return shuffle(detail::make_operation<detail::shuffle_write<key_of, value_of>>(), buckets);
  }

  template <class Form>
  dataset sort_as(const char* name, sort_order order, std::uint32_t partitions) const {
    constexpr bool ordered = detail::is_ordered<typename Form::key>::value;
    detail::check_travels<detail::stuck_part<T>>();
    static_assert(ordered, "troupe: sorting needs an operator< for the type of the key, and of all that it is made of. "
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
    std::vector<std::string> bounds;
    if (wanted > 1) {
      constexpr std::uint64_t per_range = 60;           // so that no range is much larger than the others
      constexpr std::uint64_t sample_bytes = 512 << 10; // which the driver passes on
      const std::uint64_t parts = std::max(1u, node_->partitions);
      const std::pair of_each{std::max<std::uint64_t>(4, per_range * wanted / parts), sample_bytes / parts};
      std::vector<std::pair<std::uint64_t, std::vector<std::string>>> samples;
      act(detail::make_operation<detail::sample_terminal<Form>>(encode_value(of_each)), "sample",
          [&](std::string_view bytes) {
            samples.push_back(decode_value<std::pair<std::uint64_t, std::vector<std::string>>>(bytes));
          });
      bounds = detail::range_bounds<detail::directed_order<typename Form::key, Down>>(samples, wanted);
    }
    const auto count = static_cast<std::uint32_t>(bounds.size() + 1);
    auto encoded = detail::encode_captures(with(std::move(bounds)), core_->publisher());
    auto edge = shuffle(detail::make_operation<detail::range_write<Form, Down>>(std::move(encoded.bytes)), count,
                        std::move(encoded.held));
    return {core_, reader(name, detail::make_operation<detail::sort_read<Form, Down>>(), {std::move(edge)}, count)};
  }

  static node_pointer reader(const char* name, operation step, std::vector<edge_pointer> shuffles,
                             std::uint32_t partitions) {
    auto node = std::make_shared<detail::dataset_node>();
    node->name = name;
    node->partitions = partitions;
    node->step = std::move(step);
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
