#pragma once

/// Jobs built stage by stage from named task functions, for work that is not a dataset. One value per task goes in, one
/// comes out:
///
///     double score(const model& m, const std::string& file);   // captures of the stage, argument of the task
///     constexpr auto score_task = troupe::task<"score", score>;
///     …
///     troupe::job job{"scores"};
///     auto scored = job.stage("score").run(score_task, m).arguments(files).profile(gpu);
///     std::vector<double> scores = session.run(job, scored);
///
/// A task function is `R f()`, `R f(A)` or `R f(C, A)`, where `A` is the task's argument and `C` what the stage's tasks
/// share (above 1 MiB as a broadcast); they travel by serialize.hpp, `R` too (or is void). One that wants the bytes
/// themselves is `std::string f(troupe::task_context&, std::string_view captures, std::string_view argument)`. The name
/// is the entry in the table of functions; two functions of one name are an error at the program's start.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <troupe/runtime/api/closure.hpp>
#include <troupe/runtime/api/compile.hpp>
#include <troupe/runtime/api/refused.hpp>
#include <troupe/runtime/api/serialize.hpp>
#include <troupe/runtime/dag/job_spec.hpp>
#include <troupe/runtime/execution/function_table.hpp>
#include <troupe/runtime/resources/resource_profile.hpp>

namespace troupe {

namespace detail {

/// A text as a template argument.
template <std::size_t N>
struct fixed_text {
  char data[N]{};
  constexpr fixed_text(const char (&text)[N]) { std::copy_n(text, N, data); } // NOLINT: implicit on purpose
};

template <fixed_text Name>
struct task_key {
  static constexpr std::string_view name() noexcept { return {Name.data, sizeof(Name.data) - 1}; }
};

struct nothing {};

template <class Result, class Captures, class Argument, bool Raw = false>
struct task_types {
  using result = Result;
  using captures = Captures;
  using argument = Argument;
  static constexpr bool raw = Raw;
  static constexpr bool known = true;
  static constexpr bool changes = false; ///< what it is given
};

/// Of anything else than the forms below.
template <class F>
struct task_signature : task_types<refused, nothing, refused> {
  static constexpr bool known = false;
};
template <class R>
struct task_signature<R (*)()> : task_types<R, nothing, nothing> {};
template <class A>
inline constexpr bool is_changeable = std::is_lvalue_reference_v<A> && !std::is_const_v<std::remove_reference_t<A>>;

template <class R, class A>
struct task_signature<R (*)(A)> : task_types<R, nothing, std::decay_t<A>> {
  static constexpr bool changes = is_changeable<A>;
};
template <class R, class C, class A>
struct task_signature<R (*)(C, A)> : task_types<R, std::decay_t<C>, std::decay_t<A>> {
  static constexpr bool changes = is_changeable<C> || is_changeable<A>;
};
template <>
struct task_signature<task_function> : task_types<std::string, std::string, std::string, true> {};
template <class R, class... A>
struct task_signature<R (*)(A...) noexcept> : task_signature<R (*)(A...)> {};

/// A value that may be left out.
template <class T>
std::string encode_part(const T& value) {
  std::string encoded;
  if constexpr (!std::is_same_v<T, nothing>) encoder{encoded}(value);
  return encoded;
}

template <class T>
inline constexpr bool is_absent_or_travels =
    std::disjunction_v<std::is_void<T>, std::is_same<T, nothing>, can_travel<T>>;

/// Whether functions of type `F` can be tasks: they can be called, and what they take and give travels.
template <class F, class Types = task_signature<F>>
inline constexpr bool is_task =
    Types::known && !Types::changes && is_absent_or_travels<typename Types::result> &&
    is_absent_or_travels<typename Types::captures> && is_absent_or_travels<typename Types::argument>;

template <class T>
constexpr void check_part_travels() {
  if constexpr (!is_absent_or_travels<T>) check_travels<stuck_part<T>>();
}
/// Fails to compile, with the cure, where they cannot.
template <class F>
constexpr void check_task() {
  using types = task_signature<F>;
  static_assert(types::known,
                "troupe: a task function is R f(), R f(argument), R f(captures, argument), or std::string "
                "f(task_context&, std::string_view captures, std::string_view argument)");
  static_assert(!types::changes,
                "troupe: a task function takes its argument by value or by const reference, and its captures likewise: "
                "nobody would see the change");
  if constexpr (types::known) {
    check_part_travels<typename types::result>();
    check_part_travels<typename types::captures>();
    check_part_travels<typename types::argument>();
  }
}

template <auto Function>
std::string run_task(task_context& context, std::string_view captures, std::string_view argument) {
  using types = task_signature<decltype(Function)>;
  if constexpr (types::raw) {
    return Function(context, captures, argument);
  } else if constexpr (!is_task<decltype(Function)>) {
    return {}; // check_task has said why
  } else {
    const auto call = [&]() -> decltype(auto) {
      if constexpr (!std::is_same_v<typename types::captures, nothing>)
        return Function(*captures_of<typename types::captures>(captures),
                        decode_value<typename types::argument>(argument));
      else if constexpr (!std::is_same_v<typename types::argument, nothing>)
        return Function(decode_value<typename types::argument>(argument));
      else
        return Function();
    };
    if constexpr (std::is_void_v<typename types::result>)
      return call(), std::string{};
    else
      return encode_value(call());
  }
}

} // namespace detail

/// A function under a name; see `task`.
template <detail::fixed_text Name, auto Function>
struct named_task {
  using types = detail::task_signature<decltype(Function)>;
  /// Its place in the table of functions. Mentioning it anywhere puts it there before main.
  static std::uint32_t index() {
    return registered_function<detail::task_key<Name>, &detail::run_task<Function>>::index();
  }
};
template <detail::fixed_text Name, auto Function>
inline constexpr named_task<Name, Function> task{};

class job;

namespace detail {

/// A stage as it is being described.
struct drafted_stage {
  stage_spec spec;
  std::uint32_t task = 0; ///< in the table of functions
  resource_profile profile;
  std::function<encoded_captures(const publish_function&)> captures;
};
using job_draft = std::vector<drafted_stage>;

} // namespace detail

/// A stage whose tasks take an `A` and give an `R`. Refers to its job, which it keeps alive; copies name the same
/// stage, and that is what the functions give which say more of it.
template <class R, class A>
class task_stage {
public:
  /// So many tasks, all without an argument. The last call of `tasks` and `arguments` wins.
  task_stage tasks(std::uint32_t count) const {
    static_assert(std::is_same_v<A, detail::nothing> || std::is_same_v<A, std::string>,
                  "troupe: this task function takes an argument: use .arguments(values), one per task");
    stage().tasks = count;
    stage().arguments = nullptr;
    return *this;
  }

  /// One task per value.
  task_stage arguments(const std::vector<A>& values) const {
    auto column = std::make_shared<packed_column>();
    for (const auto& value : values) column->push_back(encode_(value));
    stage().tasks = static_cast<std::uint32_t>(values.size());
    stage().arguments = std::move(column);
    return *this;
  }

  /// Where each task would rather run: `HOST`, or `HOST/7` for executor 7 there, in any order; {}: anywhere. One entry
  /// for each task, or one for all of them. A free slot waits for `troupe.locality.executor-wait` and
  /// `troupe.locality.host-wait` before it takes a task that would rather be elsewhere.
  task_stage prefer(const std::vector<std::vector<std::string>>& locations) const {
    auto column = std::make_shared<packed_column>();
    for (const auto& of_task : locations) {
      std::string entry;
      for (const auto& one : of_task) entry += (entry.empty() ? "" : "\n") + one;
      column->push_back(entry);
    }
    stage().locations = std::move(column);
    return *this;
  }

  /// Starts only when all tasks of an earlier stage of this job are done.
  template <class R2, class A2>
  task_stage after(const task_stage<R2, A2>& earlier) const {
    if constexpr (!std::is_same_v<R2, detail::refused>)
      stage().dependencies.push_back({earlier.index_, dependency_kind::all});
    return *this;
  }

  /// Its tasks are a gang: they start together, and one that fails fails them all, which then run again. They may call
  /// `task_context::current().barrier()` and `all_gather(text)`; `prefer` has no effect.
  task_stage barrier() const {
    stage().barrier = true;
    return *this;
  }

  /// The resources of its tasks; the last call wins.
  task_stage profile(resource_profile profile) const {
    (*draft_)[index_].profile = std::move(profile);
    return *this;
  }

private:
  friend class job;
  friend class stage_name;
  friend class session;
  template <class, class>
  friend class task_stage;
  using encode_function = std::string (*)(const A&);

  /// Throws std::invalid_argument where it is not.
  void check_last_of(const job& j) const;

  task_stage(std::shared_ptr<detail::job_draft> draft, encode_function encode, R (*decode)(std::string_view))
    : draft_(std::move(draft)), index_(static_cast<std::uint32_t>(draft_->size() - 1)), encode_(encode),
      decode_(decode) {}

  stage_spec& stage() const { return (*draft_)[index_].spec; }

  std::shared_ptr<detail::job_draft> draft_;
  std::uint32_t index_;
  encode_function encode_;
  R (*decode_)(std::string_view);
};

/// Of a function that cannot be a task: it takes everything, see refused.hpp.
template <>
class task_stage<detail::refused, detail::refused> {
public:
  task_stage tasks(std::uint32_t) const { return *this; }
  template <class Values>
  task_stage arguments(const Values&) const {
    return *this;
  }
  template <class Value>
  task_stage arguments(std::initializer_list<Value>) const {
    return *this;
  }
  task_stage prefer(const std::vector<std::vector<std::string>>&) const { return *this; }
  template <class Stage>
  task_stage after(const Stage&) const {
    return *this;
  }
  task_stage barrier() const { return *this; }
  task_stage profile(const resource_profile&) const { return *this; }
};

/// A stage that has a name and nothing else yet.
class stage_name {
public:
  /// What its tasks run.
  template <detail::fixed_text Name, auto Function>
  auto run(named_task<Name, Function> task) {
    detail::check_task<decltype(Function)>();
    using captures = typename named_task<Name, Function>::types::captures;
    static_assert(std::is_same_v<captures, detail::nothing> || named_task<Name, Function>::types::raw,
                  "troupe: this task function takes captures: .run(task, captures)");
    return draft(task, [](const auto&) { return detail::encoded_captures{}; });
  }
  /// The same with the captures that all its tasks share.
  template <detail::fixed_text Name, auto Function>
  auto run(named_task<Name, Function> task, const typename named_task<Name, Function>::types::captures& captures) {
    detail::check_task<decltype(Function)>();
    if constexpr (named_task<Name, Function>::types::raw)
      return draft(task, [captures](const auto&) { return detail::encoded_captures{captures, {}}; });
    else if constexpr (!detail::is_task<decltype(Function)>)
      return task_stage<detail::refused, detail::refused>{};
    else
      return draft(task, [shared = std::make_shared<const troupe::captures<std::decay_t<decltype(captures)>>>(
                              troupe::with(captures))](const detail::publish_function& publish) {
        return detail::encode_captures(*shared, publish);
      });
  }

private:
  friend class job;
  stage_name(std::shared_ptr<detail::job_draft> draft, std::string name)
    : draft_(std::move(draft)), name_(std::move(name)) {}

  template <detail::fixed_text Name, auto Function>
  auto draft(named_task<Name, Function>,
             std::function<detail::encoded_captures(const detail::publish_function&)> captures) {
    using types = typename named_task<Name, Function>::types;
    using result = typename types::result;
    using argument = typename types::argument;
    if constexpr (!detail::is_task<decltype(Function)>)
      return task_stage<detail::refused, detail::refused>{};
    else {
      detail::drafted_stage stage;
      stage.spec.name = std::move(name_);
      stage.spec.tasks = 1;
      stage.task = named_task<Name, Function>::index();
      stage.captures = std::move(captures);
      draft_->push_back(std::move(stage));
      if constexpr (types::raw)
        return task_stage<result, argument>{draft_, [](const std::string& bytes) { return bytes; },
                                            [](std::string_view bytes) { return std::string{bytes}; }};
      else if constexpr (std::is_void_v<result>)
        return task_stage<result, argument>{draft_, encode_argument<argument>, [](std::string_view) {}};
      else
        return task_stage<result, argument>{draft_, encode_argument<argument>, &decode_value<result>};
    }
  }
  template <class A>
  static std::string encode_argument(const A& value) {
    return detail::encode_part(value);
  }

  std::shared_ptr<detail::job_draft> draft_;
  std::string name_;
};

/// A job under construction. Not thread-safe.
class job {
public:
  explicit job(std::string name) : name_(std::move(name)), draft_(std::make_shared<detail::job_draft>()) {}

  /// Adds a stage after those added before.
  stage_name stage(std::string name) { return {draft_, std::move(name)}; }

  const std::string& name() const noexcept { return name_; }

  /// The job as it is submitted. Only the results of stage `keep` go to the submitter.
  job_spec build(const compile_options& options, std::optional<std::uint32_t> keep) const {
    return build(options, keep, {}).first;
  }

private:
  friend class session;
  template <class, class>
  friend class task_stage;

  /// And what has to stay as long as it runs.
  std::pair<job_spec, std::vector<std::shared_ptr<const void>>> build(const compile_options& options,
                                                                      std::optional<std::uint32_t> keep,
                                                                      const detail::publish_function& publish) const;

  std::string name_;
  std::shared_ptr<detail::job_draft> draft_;
};

template <class R, class A>
void task_stage<R, A>::check_last_of(const job& j) const {
  if (draft_ != j.draft_ || index_ + 1 != j.draft_->size())
    throw std::invalid_argument("results can be had of the last stage of job '" + j.name() + "' only");
}

} // namespace troupe
