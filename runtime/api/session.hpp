#pragma once

/// Where a program's datasets and jobs begin. `troupe::run` makes one and passes it to the program's body.

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <troupe/runtime/api/accumulator.hpp>
#include <troupe/runtime/api/broadcast.hpp>
#include <troupe/runtime/api/dataset.hpp>
#include <troupe/runtime/api/input_files.hpp>
#include <troupe/runtime/api/job.hpp>
#include <troupe/runtime/api/session_core.hpp>
#include <troupe/runtime/api/sources.hpp>

namespace troupe {

/// A program's way to its cluster. Any thread; several jobs may run at once. Datasets may outlive it.
/// `partitions` is 0 for the default wherever it can be given.
class session {
public:
  session(std::shared_ptr<job_client> client, session_options options);

  /// The numbers from `begin` to below `end`.
  /// Spark: range. `session.range(0, 100)`
  dataset<std::int64_t> range(std::int64_t begin, std::int64_t end, std::uint32_t partitions = 0);

  /// Values of this program; they travel with the job.
  /// Spark: parallelize. `session.parallelize(std::vector<std::string>{"a", "b"})`
  template <class T>
  detail::dataset_of<T> parallelize(const std::vector<T>& values, std::uint32_t partitions = 0) {
    detail::check_record<T>();
    if constexpr (detail::holds_view<T>::value) {
      return {};
    } else {
      detail::check_travels<detail::stuck_part<T>>();
      auto node = source("parallelize", core_->partitions_or_default(partitions));
      if constexpr (detail::can_travel<T>::value) {
        node->step = detail::make_operation<detail::values_source<T>>();
        node->arguments = detail::values_column(values, node->partitions);
      }
      return {core_, std::move(node)};
    }
  }

  /// The lines of text files, without line ends. A pattern may hold `*`, `?` and `[…]`; a file with several names
  /// comes once (see find_input_files). Each file is a partition, and a large one several (of at most
  /// `troupe.files.max-partition-bytes`, and of 4 MiB at least where that many slots have something to do); or all
  /// bytes are shared out to `partitions`. A line belongs to where it begins. Every executor must see the files under
  /// the same path; one that has become shorter meanwhile fails the job. Throws job_error where no file is found.
  /// Spark: textFile. `session.text_files("logs/*.txt")`
  dataset<std::string> text_files(const std::vector<std::string>& patterns, std::uint32_t partitions = 0);
  dataset<std::string> text_files(const std::string& pattern, std::uint32_t partitions = 0) {
    return text_files(std::vector{pattern}, partitions);
  }

  /// The same files as pairs of path and content.
  /// Spark: wholeTextFiles. `session.whole_text_files("logs/*.txt")`
  dataset<std::pair<std::string, std::string>> whole_text_files(const std::vector<std::string>& patterns,
                                                                std::uint32_t partitions = 0);
  dataset<std::pair<std::string, std::string>> whole_text_files(const std::string& pattern,
                                                                std::uint32_t partitions = 0) {
    return whole_text_files(std::vector{pattern}, partitions);
  }

  /// A value that many tasks read: it goes to each host once, however many tasks and jobs are given the handle (see
  /// broadcast.hpp). Throws job_error where it cannot be kept.
  /// Spark: broadcast. `session.broadcast(std::vector<int>{1, 2})`
  template <class T>
  auto broadcast(T&& value) {
    using type = std::decay_t<T>;
    detail::check_travels<detail::stuck_part<type>>();
    auto shared = std::make_shared<const type>(std::forward<T>(value));
    auto [reference, published] = core_->publish({shared, typeid(type), [&] { return encode_value(*shared); }});
    // Who keeps it keeps the value as well, in which there may be other handles.
    auto kept = std::make_shared<const std::pair<std::shared_ptr<const void>, std::shared_ptr<const type>>>(
        std::move(published), shared);
    return troupe::broadcast<type>{std::move(shared), std::move(reference), std::move(kept)};
  }

  /// A number that tasks count beside their results, 0 at first; two of one name are one (see accumulator.hpp). It is
  /// shared with what `in_pool` and `in_group` give. Throws std::invalid_argument for a name that is empty or has more
  /// than `max_accumulator_name` bytes.
  /// Spark: longAccumulator. `session.accumulator("bad lines")`
  troupe::accumulator accumulator(std::string name) const;

  /// Runs a job for its effects. Throws job_error.
  void run(const job& j);
  /// Runs a job and gives the results of its last stage, one per task in their order. Throws job_error;
  /// std::invalid_argument where `last` is not the last stage of `j`.
  template <class R, class A>
  detail::results_of<R> run(const job& j, const task_stage<R, A>& last) {
    detail::results_of<R> results;
    if constexpr (!std::is_same_v<R, detail::refused>) {
      last.check_last_of(j);
      auto [spec, held] = j.build(core_->options().jobs, last.index_, core_->publisher());
      core_->run(std::move(spec), [&](std::string_view bytes) { results.push_back(last.decode_(bytes)); });
    }
    return results;
  }
  /// The same where the tasks of the last stage give no results.
  template <class A>
  void run(const job& j, const task_stage<void, A>& last) {
    last.check_last_of(j);
    run(j);
  }

  /// The same session for jobs of a pool (see `troupe.scheduler.mode`), also of what datasets run that it makes. Its
  /// `last_job` is its own.
  /// Spark: spark.scheduler.pool. `session.in_pool("reports")`
  session in_pool(std::string name) const { return session{core_->in_pool(std::move(name))}; }
  /// The same session for jobs of a group, which can be cancelled together: what it runs, and what datasets run that it
  /// makes, is of the group. Its `last_job` is its own. "" is no group.
  /// Spark: setJobGroup. `session.in_group("nightly")`
  session in_group(std::string name) const { return session{core_->in_group(std::move(name))}; }
  /// Ends every unfinished job of a group, from any thread; whoever waits for one of them gets job_error with
  /// ec::cancelled. Jobs of the group that start later are not concerned. @returns how many it has ended. Throws
  /// job_error: ec::not_found where no job of the group is known.
  /// Spark: cancelJobGroup. `session.cancel_group("nightly")`
  std::size_t cancel_group(std::string_view name) { return core_->cancel_group(name); }

  /// The program's own arguments, without its name and without those that `troupe::run` took.
  const std::vector<std::string>& arguments() const noexcept { return core_->options().arguments; }
  /// Resources (`gpu`) whose addresses are made up by the configuration, for trying things out without the hardware.
  const std::vector<std::string>& fake_resources() const noexcept { return core_->options().fake_resources; }

  /// The job that ended last, with its stages; no stages where there was none.
  job_progress last_job() const { return core_->last_job(); }
  /// Which executor and which addresses ran which task of it, stage by stage. Throws job_error.
  std::vector<task_placement> last_placements() const { return core_->last_placements(); }

private:
  explicit session(std::shared_ptr<detail::session_core> core) : core_(std::move(core)) {}
  static std::shared_ptr<detail::dataset_node> source(std::string name, std::uint32_t partitions);
  static std::shared_ptr<detail::dataset_node> file_source(std::string name, operation step,
                                                           std::shared_ptr<const packed_column> arguments);

  std::shared_ptr<detail::session_core> core_;
};

} // namespace troupe
