#pragma once

/// Short ways to write jobs, profiles and executors down. For tests of the deciding half and for simulations; any test
/// framework. Misuse throws std::logic_error.

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <troupe/runtime/dag/job_spec.hpp>
#include <troupe/runtime/resources/resource_profile.hpp>
#include <troupe/runtime/scheduling/reports.hpp>

namespace troupe::testing {

using amounts = std::initializer_list<std::pair<std::string, std::int64_t>>;
using shares = std::initializer_list<std::pair<std::string, std::string_view>>;

/// The default profile that tests run under: 1 core, 1 GiB, 1 cpu per task.
resource_profile default_test_profile();
/// A complete profile: `make_profile({{"cores", 2}, {"gpu", 1}}, {{"cpus", "1"}, {"gpu", "0.5"}})`. What is left out of
/// cores, memory and cpus is that of the default one.
resource_profile make_profile(amounts executor, shares task);

/// Describes executors. Memory is plentiful unless set.
class executor_builder {
public:
  executor_builder();
  executor_builder& cores(std::int64_t n);
  executor_builder& memory(std::int64_t bytes);
  /// `n` addresses `0`, `1`, ….
  executor_builder& custom(const std::string& name, std::int64_t n);
  executor_builder& gpus(std::int64_t n) { return custom("gpu", n); }
  /// The profile that it was started for; its amounts become the capacity.
  executor_builder& started_for(const resource_profile& profile);
  executor_builder& request(std::uint64_t id);
  /// The shape that it registers as.
  executor_builder& shape(shape_id id);
  executor_builder& host(std::string name);
  executor_builder& commands_only();
  executor_builder& in_process();
  executor_builder& shuffle_service();
  executor_builder& build(std::string id);
  executor_info make(executor_id id, incarnation epoch) const;

private:
  executor_info info_;
};

/// Describes jobs; what follows `stage` changes that stage.
class job_builder {
public:
  explicit job_builder(std::string name = "job");
  /// Adds a profile. Stages name it by its number; 0 is the default one, the first added is 1.
  job_builder& profile(resource_profile p);
  job_builder& max_failures(std::uint32_t n);
  job_builder& group(std::string name);

  job_builder& stage(std::string name, std::uint32_t tasks);
  job_builder& with(std::uint32_t profile);
  job_builder& in_pool(std::string name);
  /// Of the last stage.
  job_builder& timeout(duration t);
  job_builder& buckets(std::uint32_t n);
  job_builder& after(std::uint32_t parent, dependency_kind kind = dependency_kind::all);
  job_builder& reads(std::uint32_t parent) { return after(parent, dependency_kind::shuffle); }
  job_builder& command();
  /// Each task of the last stage, which runs commands, leaves a file `out-<partition>`, to be published below
  /// `directory`.
  job_builder& outputs(const std::string& directory = "/out");
  job_builder& build_id(std::string id);
  job_builder& arguments(std::vector<std::string> each);
  /// Where its tasks would rather run: an entry for each, or one for all.
  job_builder& prefers(std::vector<std::string> each);
  /// Its tasks may make something else when they run again.
  job_builder& indeterminate();
  /// What it makes is kept for later jobs.
  job_builder& keeps(broadcast_id dataset, storage_level level = storage_level::memory);
  /// Its tasks are a gang, which waits so long for each other.
  job_builder& barrier(duration sync_timeout = never);

  /// The job; checked by `validate`.
  std::shared_ptr<const job_spec> make() const;

private:
  stage_spec& last();
  job_spec job_;
};

/// Result entries as executors encode them.
std::string inline_result(std::string_view value);
std::string stored_result(std::uint64_t bytes);
std::string map_result(std::uint64_t bytes, std::string_view buckets = {});

} // namespace troupe::testing
