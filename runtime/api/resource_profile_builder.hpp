#pragma once

/// How programs write resource profiles. Not thread-safe; what is built is a plain value.

#include <concepts>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/runtime/resources/resource_profile.hpp>
#include <troupe/runtime/result.hpp>

namespace troupe {

/// What an executor must have. A later call for one name replaces the earlier one. Amounts are checked by
/// `resource_profile_builder::build`; texts that do not parse are remembered and reported there too.
class executor_resource_requests {
public:
  executor_resource_requests& cores(std::int64_t count);
  template <std::floating_point Number>
  executor_resource_requests& cores(Number) {
    return refuse<Number>();
  }
  executor_resource_requests& memory(std::string_view size); ///< `"1g"`; see parse_memory
  executor_resource_requests& memory_overhead(std::string_view size);
  executor_resource_requests& off_heap(std::string_view size);
  executor_resource_requests& pyspark_memory(std::string_view size);
  executor_resource_requests& resource(std::string name, std::int64_t amount, std::string discovery_script = {},
                                       std::string vendor = {});
  template <std::floating_point Number, class... More>
  executor_resource_requests& resource(const std::string&, Number, const More&...) {
    return refuse<Number>();
  }
  /// `"2"` is that count, `"40g"` a counted size; see parse_resource_amount.
  executor_resource_requests& resource(std::string name, std::string_view amount, std::string discovery_script = {},
                                       std::string vendor = {});

  const std::map<std::string, executor_request>& requests() const noexcept { return requests_; }
  const std::vector<error>& errors() const noexcept { return errors_; }

private:
  /// A number with a point would be cut to a whole one.
  template <class Number>
  executor_resource_requests& refuse() {
    static_assert(sizeof(Number) == 0, "an executor has whole cores and devices: write a whole number");
    return *this;
  }
  executor_resource_requests& sized(std::string_view name, std::string_view size);

  std::map<std::string, executor_request> requests_;
  std::vector<error> errors_;
};

/// What one task takes. A later call for one name replaces the earlier one.
class task_resource_requests {
public:
  task_resource_requests& cpus(std::int64_t count);
  task_resource_requests& cpus(std::string_view amount); ///< `"0.5"`, `"1/3"`
  template <std::floating_point Number>
  task_resource_requests& cpus(Number) {
    return refuse<Number>();
  }
  /// Bytes of the executor's memory, as in `"512m"` (see parse_memory). Executors run no more tasks at once than have
  /// room there. Commands that take more are ended; native tasks share the memory of their process and are trusted.
  task_resource_requests& memory(std::string_view size);
  task_resource_requests& resource(std::string name, std::int64_t amount);
  task_resource_requests& resource(std::string name, std::string_view amount); ///< `"0.5"`, `"1/3"`, `"2"`, `"10g"`
  task_resource_requests& resource(std::string name, const char* amount) {
    return resource(std::move(name), std::string_view{amount});
  }

  template <std::floating_point Number>
  task_resource_requests& resource(const std::string&, Number) {
    return refuse<Number>();
  }

  const std::map<std::string, share>& requests() const noexcept { return requests_; }
  const std::vector<error>& errors() const noexcept { return errors_; }

private:
  /// A number with a point would be cut to a whole one.
  template <class Number>
  task_resource_requests& refuse() {
    static_assert(sizeof(Number) == 0, "a part of a resource is exact: write it as a text, such as \"0.5\" or \"1/3\"");
    return *this;
  }
  task_resource_requests& put(std::string name, result<share> amount);

  std::map<std::string, share> requests_;
  std::vector<error> errors_;
};

/// Collects requests and builds profiles from them. Stays usable after `build`.
class resource_profile_builder {
public:
  resource_profile_builder& require(const executor_resource_requests& requests);
  resource_profile_builder& require(const task_resource_requests& requests);
  /// At most so many tasks of the profile run on one executor at once, whatever else it has room for: one task per
  /// executor, say, whose memory bandwidth is the limit.
  resource_profile_builder& max_tasks_per_executor(std::int64_t count);
  /// An executor that runs tasks of the profile runs none of another one meanwhile.
  resource_profile_builder& exclusive();
  /// A task that runs out of memory is tried again with twice as much, up to `size` ("16g"), without a failure being
  /// counted: of its task's memory where it takes some, else of its executor's.
  resource_profile_builder& memory_ceiling(std::string_view size);
  /// Where what was required is not to be had, tasks may run as `alternative` ("1 gpu, else 16 cpus"). May be called
  /// several times, in order of preference.
  resource_profile_builder& or_else(resource_profile alternative);

  /// The profile, or the first rule that it breaks: a bad name; an amount that did not parse, is not positive,
  /// overflows, or lies above 1 without being whole (custom task amounts); `cpus` on the executor side or a built-in
  /// executor name other than memory on the task side; a bound of tasks per executor that is not positive; a counted
  /// size with a discovery script or a vendor, or a task that takes a fraction of it; a custom task resource that the
  /// executor half lacks; a task that needs more than an executor of this very profile has. A profile with nothing in
  /// it passes: it stands for the default one.
  result<resource_profile> try_build() const;
  /// The same; throws std::invalid_argument with the error's message.
  resource_profile build() const;

private:
  std::map<std::string, executor_request> executor_;
  std::map<std::string, share> task_;
  std::int64_t memory_ceiling_ = 0;
  std::vector<resource_profile> alternatives_;
  std::int64_t max_tasks_per_executor_ = 0;
  bool exclusive_ = false;
  std::vector<error> errors_;
};

/// A number for one more profile of this process (see `resource_profile::build`). Any thread.
std::uint64_t next_profile_build() noexcept;

} // namespace troupe
