#pragma once

/// The typed name of every setting: `settings.get(keys::task_max_failures)`. Meaning, default and range stand in
/// schema.cpp and in the generated key reference.

#include <troupe/runtime/config/schema.hpp>

namespace troupe::keys {

using flag_key = key<bool>;
using count_key = key<std::int64_t>;
using memory_key = key<std::int64_t>;
using time_key = key<duration>;
using share_key = key<share>;
using text_key = key<std::string>;
using paths_key = key<std::vector<std::string>>;

inline constexpr text_key master{"troupe.master"};
inline constexpr text_key app_name{"troupe.app.name"};
inline constexpr text_key run_directory{"troupe.run-directory"};
inline constexpr text_key progress{"troupe.progress"};
inline constexpr time_key shutdown_grace{"troupe.shutdown.grace"};

inline constexpr count_key executor_cores{"troupe.executor.cores"};
inline constexpr memory_key executor_memory{"troupe.executor.memory"};
inline constexpr memory_key executor_memory_overhead{"troupe.executor.memory-overhead"};
inline constexpr share_key executor_memory_overhead_factor{"troupe.executor.memory-overhead-factor"};
inline constexpr memory_key executor_min_memory_overhead{"troupe.executor.min-memory-overhead"};
inline constexpr memory_key executor_off_heap{"troupe.executor.off-heap"};
inline constexpr memory_key executor_pyspark_memory{"troupe.executor.pyspark-memory"};
inline constexpr text_key executor_limits_cpu{"troupe.executor.limits.cpu"};
inline constexpr text_key executor_limits_memory{"troupe.executor.limits.memory"};
inline constexpr text_key executor_bind_address{"troupe.executor.bind-address"};
inline constexpr time_key executor_heartbeat_interval{"troupe.executor.heartbeat-interval"};
inline constexpr time_key executor_heartbeat_timeout{"troupe.executor.heartbeat-timeout"};
inline constexpr time_key executor_abandon_timeout{"troupe.executor.abandon-timeout"};
inline constexpr time_key executor_driver_timeout{"troupe.executor.driver-timeout"};
inline constexpr pattern_key<resource_amount> executor_resource_amount{"troupe.executor.resource.<name>.amount"};
inline constexpr pattern_key<std::vector<std::string>> executor_resource_addresses{
    "troupe.executor.resource.<name>.addresses"};
inline constexpr pattern_key<std::string> executor_resource_discovery_script{
    "troupe.executor.resource.<name>.discovery-script"};
inline constexpr pattern_key<std::string> executor_resource_vendor{"troupe.executor.resource.<name>.vendor"};

inline constexpr share_key task_cpus{"troupe.task.cpus"};
inline constexpr time_key stage_timeout{"troupe.stage.timeout"};
inline constexpr time_key task_timeout{"troupe.task.timeout"};
inline constexpr count_key barrier_max_slot_check_failures{"troupe.barrier.max-slot-check-failures"};
inline constexpr time_key barrier_slot_check_interval{"troupe.barrier.slot-check-interval"};
inline constexpr time_key barrier_sync_timeout{"troupe.barrier.sync-timeout"};
inline constexpr memory_key task_memory{"troupe.task.memory"};
inline constexpr memory_key task_memory_ceiling{"troupe.task.memory-ceiling"};
inline constexpr pattern_key<share> task_resource_amount{"troupe.task.resource.<name>.amount"};
inline constexpr count_key task_max_failures{"troupe.task.max-failures"};
inline constexpr count_key task_max_processes{"troupe.task.max-processes"};
inline constexpr memory_key task_max_inline_result{"troupe.task.max-inline-result"};
inline constexpr time_key task_kill_grace{"troupe.task.kill-grace"};
inline constexpr time_key task_writer_grace{"troupe.task.writer-grace"};
inline constexpr flag_key task_thread_variables{"troupe.task.thread-variables"};

inline constexpr time_key logs_keep{"troupe.logs.keep"};
inline constexpr memory_key logs_max_size{"troupe.logs.max-size"};

inline constexpr time_key scheduler_alternative_wait{"troupe.scheduler.alternative-wait"};
inline constexpr text_key scheduler_mode{"troupe.scheduler.mode"};
inline constexpr text_key scheduler_pool{"troupe.scheduler.pool"};
inline constexpr pattern_key<std::int64_t> scheduler_pool_min_share{"troupe.scheduler.pools.<name>.min-share"};
inline constexpr pattern_key<std::string> scheduler_pool_mode{"troupe.scheduler.pools.<name>.mode"};
inline constexpr pattern_key<std::int64_t> scheduler_pool_weight{"troupe.scheduler.pools.<name>.weight"};
inline constexpr text_key scheduler_placement{"troupe.scheduler.placement"};
inline constexpr time_key scheduler_scarce_resource_wait{"troupe.scheduler.scarce-resource-wait"};
inline constexpr text_key scheduler_profile_change{"troupe.scheduler.profile-change"};
inline constexpr text_key scheduler_profile_matching{"troupe.scheduler.profile-matching"};
inline constexpr text_key scheduler_support_matrix{"troupe.scheduler.support-matrix"};
inline constexpr time_key scheduler_infeasible_timeout{"troupe.scheduler.infeasible-timeout"};
inline constexpr count_key scheduler_max_stage_attempts{"troupe.scheduler.max-stage-attempts"};
inline constexpr count_key scheduler_max_batch{"troupe.scheduler.max-batch"};
inline constexpr count_key scheduler_window_batches{"troupe.scheduler.window-batches"};
inline constexpr time_key scheduler_queue_ahead{"troupe.scheduler.queue-ahead"};

inline constexpr flag_key exclude_on_failure_enabled{"troupe.exclude-on-failure.enabled"};
inline constexpr count_key exclude_on_failure_max_failed_tasks_per_executor{
    "troupe.exclude-on-failure.max-failed-tasks-per-executor"};
inline constexpr count_key exclude_on_failure_max_failed_executors_per_node{
    "troupe.exclude-on-failure.max-failed-executors-per-node"};
inline constexpr time_key exclude_on_failure_timeout{"troupe.exclude-on-failure.timeout"};
inline constexpr time_key exclude_on_failure_unschedulable_timeout{"troupe.exclude-on-failure.unschedulable-timeout"};

inline constexpr flag_key dynamic_allocation_enabled{"troupe.dynamic-allocation.enabled"};
inline constexpr count_key dynamic_allocation_max_executors{"troupe.dynamic-allocation.max-executors"};
inline constexpr time_key dynamic_allocation_executor_idle_timeout{"troupe.dynamic-allocation.executor-idle-timeout"};
inline constexpr time_key dynamic_allocation_cached_executor_idle_timeout{
    "troupe.dynamic-allocation.cached-executor-idle-timeout"};
inline constexpr time_key dynamic_allocation_launch_timeout{"troupe.dynamic-allocation.launch-timeout"};
inline constexpr time_key dynamic_allocation_retry_pause{"troupe.dynamic-allocation.retry-pause"};

inline constexpr text_key driver_bind_address{"troupe.driver.bind-address"};
inline constexpr count_key driver_port{"troupe.driver.port"};
inline constexpr memory_key pipeline_max_unconsumed{"troupe.pipeline.max-unconsumed"};
inline constexpr memory_key driver_max_result_size{"troupe.driver.max-result-size"};
inline constexpr count_key driver_retained_jobs{"troupe.driver.retained-jobs"};
inline constexpr time_key driver_request_timeout{"troupe.driver.request-timeout"};

inline constexpr memory_key files_max_partition_bytes{"troupe.files.max-partition-bytes"};
inline constexpr text_key event_log_directory{"troupe.event-log.directory"};
inline constexpr flag_key event_log_enabled{"troupe.event-log.enabled"};
inline constexpr count_key events_max_lag{"troupe.events.max-lag"};

inline constexpr flag_key security_insecure{"troupe.security.insecure"};
inline constexpr text_key security_secret_file{"troupe.security.secret-file"};

inline constexpr paths_key local_dir{"troupe.local.dir"};
inline constexpr time_key locality_executor_wait{"troupe.locality.executor-wait"};
inline constexpr time_key locality_host_wait{"troupe.locality.host-wait"};
inline constexpr flag_key speculation_enabled{"troupe.speculation.enabled"};
inline constexpr time_key speculation_min_task_runtime{"troupe.speculation.min-task-runtime"};
inline constexpr share_key speculation_multiplier{"troupe.speculation.multiplier"};
inline constexpr share_key speculation_quantile{"troupe.speculation.quantile"};

inline constexpr time_key transfer_connect_timeout{"troupe.transfer.connect-timeout"};
inline constexpr time_key transfer_read_timeout{"troupe.transfer.read-timeout"};
inline constexpr count_key transfer_attempts{"troupe.transfer.attempts"};
inline constexpr text_key transfer_same_host{"troupe.transfer.same-host"};
inline constexpr memory_key reducer_max_size_in_flight{"troupe.reducer.max-size-in-flight"};

inline constexpr text_key gpu_discovery{"troupe.gpu.discovery"};
inline constexpr count_key gpu_fake{"troupe.gpu.fake"};
inline constexpr time_key resources_discovery_timeout{"troupe.resources.discovery-timeout"};

inline constexpr text_key io_compression_codec{"troupe.io.compression.codec"};
inline constexpr count_key io_compression_level{"troupe.io.compression.level"};
inline constexpr share_key memory_fraction{"troupe.memory.fraction"};
inline constexpr share_key memory_storage_fraction{"troupe.memory.storage-fraction"};

inline constexpr text_key log_level{"troupe.log.level"};
inline constexpr pattern_key<std::string> log_level_of{"troupe.log.level.<actor>"};
inline constexpr memory_key log_file_size{"troupe.log.file-size"};
inline constexpr count_key log_files{"troupe.log.files"};

} // namespace troupe::keys
