#include <troupe/runtime/config/keys.hpp>
#include <troupe/runtime/config/schema.hpp>

/// The table behind schema(): the one place where a key's default, range and meaning are written.

namespace troupe {
namespace {

using enum setting_reader;

constexpr std::int64_t ns_per_ms = 1'000'000;
constexpr std::int64_t ns_per_s = 1'000'000'000;
constexpr std::int64_t ns_per_day = 86'400 * ns_per_s;
constexpr std::int64_t mib = 1 << 20;
constexpr std::string_view log_levels = "trace|debug|info|warn|error|off";

// One function per type, so that a key's C++ type and its entry cannot disagree.
constexpr setting_schema flag(key<bool> k, std::string_view value, setting_reader who, std::string_view text) {
  return {k.name, setting_type::flag, value, {}, {}, 0, 0, who, text};
}
constexpr setting_schema count(key<std::int64_t> k, std::string_view value, std::int64_t least, std::int64_t most,
                               setting_reader who, std::string_view text) {
  return {k.name, setting_type::count, value, {}, {}, least, most, who, text};
}
constexpr setting_schema memory(key<std::int64_t> k, std::string_view value, std::int64_t least, setting_reader who,
                                std::string_view text, std::int64_t most = most_memory) {
  return {k.name, setting_type::memory, value, {}, {}, least, most, who, text};
}
constexpr setting_schema time(key<duration> k, std::string_view value, std::int64_t least, setting_reader who,
                              std::string_view text) {
  return {k.name, setting_type::time, value, {}, {}, least, 1000 * ns_per_day, who, text};
}
constexpr setting_schema time_or_never(key<duration> k, std::string_view value, std::int64_t least, setting_reader who,
                                       std::string_view text) {
  return {k.name, setting_type::time_or_never, value, {}, {}, least, 1000 * ns_per_day, who, text};
}
constexpr setting_schema portion(key<share> k, std::string_view value, setting_reader who, std::string_view text,
                                 std::int64_t least = 1, std::int64_t most = INT64_MAX) {
  return {k.name, setting_type::share, value, {}, {}, least, most, who, text};
}
constexpr setting_schema text(key<std::string> k, std::string_view value, setting_reader who, std::string_view words) {
  return {k.name, setting_type::text, value, {}, {}, 0, 0, who, words};
}
constexpr setting_schema choice(key<std::string> k, std::string_view value, std::string_view choices,
                                setting_reader who, std::string_view words) {
  return {k.name, setting_type::choice, value, choices, {}, 0, 0, who, words};
}
constexpr setting_schema path(key<std::string> k, setting_reader who, std::string_view words) {
  return {k.name, setting_type::path, {}, {}, {}, 0, 0, who, words};
}
constexpr setting_schema paths(key<std::vector<std::string>> k, setting_reader who, std::string_view words) {
  return {k.name, setting_type::paths, {}, {}, {}, 0, 0, who, words};
}
constexpr setting_schema family(pattern_key<resource_amount> k, setting_reader who, std::string_view words) {
  return {k.name, setting_type::count_or_size, {}, {}, {}, 0, largest_count, who, words};
}
constexpr setting_schema family(pattern_key<share> k, setting_reader who, std::string_view words) {
  return {k.name, setting_type::share_or_size, {}, {}, {}, 0, 0, who, words};
}
constexpr setting_schema family(pattern_key<std::int64_t> k, std::int64_t least, std::int64_t most, setting_reader who,
                                std::string_view words) {
  return {k.name, setting_type::count, {}, {}, {}, least, most, who, words};
}
constexpr setting_schema family(pattern_key<std::vector<std::string>> k, setting_reader who, std::string_view words) {
  return {k.name, setting_type::list, {}, {}, {}, 0, 0, who, words};
}
constexpr setting_schema family(pattern_key<std::string> k, setting_type type, setting_reader who,
                                std::string_view words) {
  return {k.name, type, {}, {}, {}, 0, 0, who, words};
}

// Ordered by name. Sentences end with a full stop; the reference page prints them as they are.
constexpr setting_schema all_keys[] = {
    text(keys::app_name, "troupe", driver,
         "Name of the session that a driver or a cluster file starts: other commands show it and find it by it."),
    count(keys::barrier_max_slot_check_failures, "40", 0, 1'000'000, driver,
          "Under troupe.scheduler.profile-matching = exact: how often a job with a barrier stage that needs more slots "
          "than there are is looked at again before it fails."),
    time(keys::barrier_slot_check_interval, "15s", ns_per_ms, driver, "The time between two such looks."),
    time_or_never(
        keys::barrier_sync_timeout, "365d", ns_per_ms, client,
        "How long tasks of a barrier stage wait for the last of them, from the first that waits on, unless the "
        "stage says for itself; then the wait fails for all."),
    text(
        keys::driver_bind_address, "127.0.0.1", driver,
        "Address that the driver listens on, and at which a client on another machine serves the values that its tasks "
        "share; any other than loopback needs troupe.security.insecure."),
    memory(keys::driver_max_result_size, "1g", 1024, driver,
           "Most bytes of one job's results that may travel with the outcomes of its tasks; more fail it.", 4096 * mib),
    count(keys::driver_port, "0", 0, 65535, driver,
          "Port that the driver listens on; 0 lets the system choose a free one."),
    time(keys::driver_request_timeout, "10s", ns_per_ms, all,
         "How long a request to another process may stay unanswered before it fails."),
    count(keys::driver_retained_jobs, "100", 0, 100'000, driver,
          "How many ended jobs the driver keeps for status queries, and what their commands have printed for `troupe "
          "logs`."),
    time_or_never(keys::dynamic_allocation_cached_executor_idle_timeout, "never", ns_per_ms, driver,
                  "How long an executor that has partitions of kept datasets may be idle before it is stopped; never: "
                  "it stays until somebody else needs its place, or the datasets are not kept any more."),
    flag(keys::dynamic_allocation_enabled, "true", driver,
         "Whether executors are started as tasks wait and stopped when idle; "
         "false: only for profiles that nothing running satisfies, and kept."),
    time(keys::dynamic_allocation_executor_idle_timeout, "60s", ns_per_ms, driver,
         "How long an executor may be idle before it is stopped."),
    time(keys::dynamic_allocation_launch_timeout, "30s", ns_per_ms, driver,
         "How long a started executor may take to register before it is given up."),
    count(keys::dynamic_allocation_max_executors, "10000", 1, 100'000, driver,
          "Most executors that are running or being started at one time, of all profiles together."),
    time(keys::dynamic_allocation_retry_pause, "1s", ns_per_ms, driver,
         "Pause after an executor could not be started; it doubles with each further failure."),
    path(keys::event_log_directory, driver,
         "Directory, which exists, of the files of troupe.event-log.enabled; each is called <session>.jsonl."),
    flag(keys::event_log_enabled, "false", driver,
         "Whether the driver writes every event of its session to a file, one JSON object a line."),
    count(keys::events_max_lag, "10000", 1, 10'000'000, driver,
          "How many events may come while a subscriber has no credit before it is cut off; the driver keeps twice as "
          "many for it to come back for."),
    flag(keys::exclude_on_failure_enabled, "false", driver,
         "Whether executors and hosts on which different tasks of a profile have failed get no tasks of that profile "
         "for "
         "a while."),
    count(keys::exclude_on_failure_max_failed_executors_per_node, "2", 1, 100'000, driver,
          "How many executors of a host are excluded, those included that are gone, when the host itself is."),
    count(keys::exclude_on_failure_max_failed_tasks_per_executor, "2", 1, 1000, driver,
          "How many different tasks of a profile have failed on an executor when it is excluded."),
    time(keys::exclude_on_failure_timeout, "1h", ns_per_ms, driver,
         "How long a failure counts against an executor, and how long it or its host is excluded; failures of stages "
         "that end without success do not count."),
    time_or_never(
        keys::exclude_on_failure_unschedulable_timeout, "120s", 0, driver,
        "How long a stage waits whose tasks no executor may run because of exclusions before it fails; never: "
        "for ever."),
    time(keys::executor_abandon_timeout, "60s", 10 * ns_per_ms, all,
         "An executor that has not heard of its driver for so long ends what it runs, and itself; its driver needs the "
         "same, or more, since it closes connections of which it has heard nothing for somewhat longer."),
    text(keys::executor_bind_address, "127.0.0.1", executor,
         "Address on which an executor serves its blocks; any other than loopback needs troupe.security.insecure."),
    count(keys::executor_cores, "1", 1, largest_count, all,
          "Cores of an executor of the default profile, or of an executor that is started by hand; not set: as many as "
          "one of its tasks takes, at least 1."),
    time(keys::executor_driver_timeout, "6s", 10 * ns_per_ms, executor,
         "An executor of which its driver has not heard for so long begins and publishes nothing until it has; where "
         "its connection is closed, it ends. At most three quarters of the driver's heartbeat-timeout count, after "
         "which others do its work."),
    time(keys::executor_heartbeat_interval, "1s", 10 * ns_per_ms, all,
         "How often driver and executor tell each other that they live."),
    time(keys::executor_heartbeat_timeout, "10s", 20 * ns_per_ms, all,
         "Silence after which the driver declares an executor lost, and time for which an executor of `troupe node` "
         "may be stopped before it is ended."),
    choice(
        keys::executor_limits_cpu, "none", "none|quota|affinity", driver,
        "How an executor that is a process of this machine is kept to its cores: by a share of the cpus' time (quota; "
        "affinity where no cgroup allows it), or by cpus of its own (affinity)."),
    choice(
        keys::executor_limits_memory, "auto", "auto|none", driver,
        "Whether an executor that is a process of this machine, with its commands, is killed where it takes more than "
        "its memory, overhead, off-heap and interpreters together, but at least 64m: by a cgroup, or where there is "
        "none by RLIMIT_DATA of each process."),
    memory(keys::executor_memory, "1g", mib, all, "Memory of an executor of the default profile."),
    memory(keys::executor_memory_overhead, "0", 0, all,
           "Memory beside troupe.executor.memory that executors are granted unless their profile says how much; where "
           "it is not set, the two keys for the factor and the minimum decide."),
    portion(
        keys::executor_memory_overhead_factor, "0", all,
        "Part of an executor's memory, in whole MiB, that it is granted beside it where no overhead is given; Spark's "
        "is 0.1.",
        0),
    memory(keys::executor_min_memory_overhead, "0", 0, all,
           "Least memory beside its own that an executor is granted where no overhead is given; Spark's is 384m."),
    memory(keys::executor_off_heap, "0", 0, all,
           "Memory outside the allocator that an executor of the default profile is granted."),
    memory(keys::executor_pyspark_memory, "0", 0, all,
           "Memory for interpreters beside an executor of the default profile, under the name that Spark gives it."),
    family(keys::executor_resource_addresses, executor,
           "Addresses of a custom resource of an executor, instead of discovering them."),
    family(keys::executor_resource_amount, all,
           "How much of a custom resource (such as gpu) an executor of the default profile has; a size such as 40g is "
           "counted, without addresses and discovery; 0: as if nothing were said about the resource."),
    family(keys::executor_resource_discovery_script, setting_type::path, executor,
           "Program that prints the addresses of a custom resource as {\"name\": …, \"addresses\": […]}."),
    family(keys::executor_resource_vendor, setting_type::text, driver,
           "Vendor of a custom resource, for cluster managers that name resources by it."),
    memory(keys::files_max_partition_bytes, "128m", 1, client,
           "How many bytes of a text file one task reads at most where the program does not say how many partitions it "
           "wants."),
    choice(keys::gpu_discovery, "probe", "probe|probe-or-fake|fake|none", all,
           "How GPUs are found when neither addresses nor a script are given: probe asks nvidia-smi; fake makes up "
           "addresses, for tests; probe-or-fake makes them up where nvidia-smi finds none."),
    count(keys::gpu_fake, "2", 1, 1024, driver, "How many GPU addresses are made up."),
    choice(keys::io_compression_codec, "none", "none|lz4|zstd", executor,
           "How map outputs and large results are compressed, page by page: not at all, fast, or small."),
    count(keys::io_compression_level, "1", 1, 19, executor, "How hard zstd tries: 1 is fast, 19 small."),
    paths(
        keys::local_dir, all,
        "Where commands run, with what they write until it is published, and where executors keep what exceeds their "
        "memory for blocks and buffers: in private directories that end with the session. A list, best of "
        "directories on disks of their own, which are used in turn; one that is full or fails is left out. Not set: "
        "in the run directory, or in /var/tmp where that lies in memory; where both do, it counts as memory, of which "
        "you are warned."),
    time_or_never(
        keys::locality_executor_wait, "3s", 0, driver,
        "How long a free slot waits for a task that would rather run on its executor before it takes one that "
        "would rather run on another executor of its host; 0: not at all; never: for ever."),
    time_or_never(
        keys::locality_host_wait, "3s", 0, driver,
        "How long a free slot waits, after that, for a task that would rather run on its host before it takes "
        "any; 0: not at all; never: for ever."),
    memory(keys::log_file_size, "16m", 64 << 10, all, "Size at which a log file is rotated."),
    count(keys::log_files, "3", 1, 1000, all, "How many log files of a process are kept."),
    choice(keys::log_level, "info", log_levels, all, "Least important messages that are logged."),
    {keys::log_level_of.name,
     setting_type::choice,
     {},
     log_levels,
     "allocator|client|dag-scheduler|driver|executor|launcher|resource-profile-manager",
     0,
     0,
     all,
     "The same for one actor or part."},
    time(keys::logs_keep, "14d", 0, all,
         "How long what a failed attempt of a command has printed is kept beside the outputs, in .troupe/logs; older "
         "files go when something else fails or runs there; 0: none is kept."),
    memory(keys::logs_max_size, "1g", 0, all,
           "Most bytes of it beside the stages of one folder; the oldest go first, and what is larger is not kept."),
    text(keys::master, "local[*]", client,
         "Where jobs run: local[N], local[*], local-cluster[N,cores,memory] or a driver's troupe://host:port."),
    portion(
        keys::memory_fraction, "0.6", executor,
        "Part of an executor's memory and off-heap memory that blocks and the buffers of tasks may take; the rest is "
        "for what tasks make themselves.",
        0, 1),
    portion(keys::memory_storage_fraction, "0.5", executor,
            "Part of that which keeps blocks; what comes beyond goes to files. What remains is shared evenly by the "
            "tasks that an executor of their profile runs at once, and what they write beyond it is spilled.",
            0, 1),
    memory(keys::pipeline_max_unconsumed, "1g", 1, driver,
           "A stage that is run together with the one that reads what it makes pauses while so much of that was not "
           "read."),
    choice(keys::progress, "auto", "auto|bar|plain|none", client,
           "How progress is shown on standard error: auto shows bars on a terminal that is not dumb, and plain lines "
           "elsewhere."),
    memory(keys::reducer_max_size_in_flight, "8m", 64 << 10, executor,
           "How many bytes of blocks the executors that one task reads from may send it ahead of what it has read."),
    time(keys::resources_discovery_timeout, "10s", ns_per_ms, executor,
         "How long a discovery script or probe may take."),
    path(keys::run_directory, all,
         "Parent of the session's private directory, or a directory for all such as /tmp; not set: $XDG_RUNTIME_DIR "
         "where it is this user's own, else /tmp, or $TMPDIR where that cannot be written."),
    time(keys::scheduler_alternative_wait, "3s", 0, driver,
         "How long a stage whose profile has alternatives goes without room before executors of the next one are asked "
         "for; what is free is taken at once."),
    time(keys::scheduler_infeasible_timeout, "30s", 0, driver,
         "How long a job waits for a cluster that may grow before a profile that nothing satisfies fails it."),
    count(keys::scheduler_max_batch, "256", 1, 65'536, driver, "Most tasks in one launch message."),
    count(keys::scheduler_max_stage_attempts, "4", 1, 1000, driver,
          "How often a stage may be run again for lost inputs before its job fails."),
    choice(keys::scheduler_mode, "fifo", "fifo|fair", driver,
           "Who gets the next slot: the earliest job that can use it (fifo), or the pool of jobs that has least of its "
           "part (fair)."),
    choice(keys::scheduler_placement, "spread", "spread|pack|balance", driver,
           "Which of several executors with room gets a task: the one with the fewest leases (spread), with the fewest "
           "free cores (pack), or whose cores are busy to the smallest part (balance)."),
    text(keys::scheduler_pool, "default", client,
         "Pool that jobs belong to; only troupe.scheduler.mode = fair tells pools apart."),
    family(keys::scheduler_pool_min_share, 0, 1'000'000, driver,
           "Slots that a pool gets before others get more than their own minimum; 0: none."),
    {keys::scheduler_pool_mode.name,
     setting_type::choice,
     {},
     "fifo|fair",
     {},
     0,
     0,
     driver,
     "Whose slots come first within a pool: those of its earliest job (fifo, unless set), or of the stage with the "
     "fewest (fair); stages of one pipeline count as one."},
    family(keys::scheduler_pool_weight, 1, 1'000'000, driver,
           "Part of the slots that a pool gets, in relation to the weights of others; 1 unless set."),
    choice(
        keys::scheduler_profile_change, "auto", "auto|cut|error|merge", client,
        "What happens where two profiles meet within one stage: it is cut into a pipeline, the job is refused, or the "
        "stage gets the larger amount of each resource; auto: cut, or error where profile-matching = exact."),
    choice(
        keys::scheduler_profile_matching, "compatible", "compatible|exact", driver,
        "Which executors may run a task: every one that satisfies its profile (compatible), or only those started for "
        "it (exact: Spark's rules in all that concerns profiles)."),
    time(keys::scheduler_queue_ahead, "1ms", 0, driver,
         "Worth of work that is queued ahead at a slot, behind tasks that run no longer than this; where nothing was "
         "heard "
         "for ten times this, it is taken back for a slot that is free."),
    time_or_never(keys::scheduler_scarce_resource_wait, "3s", 0, driver,
                  "How long tasks that ask for no GPU (or another resource with addresses) leave executors that have "
                  "one to unfinished stages that do ask for it; 0: not at all; never: for ever."),
    choice(keys::scheduler_support_matrix, "all", "all|spark", driver,
           "Which profiles a master carries: all of them, or those that Spark carries on it; the rest is refused."),
    count(keys::scheduler_window_batches, "4", 1, 64, driver,
          "Most batches in flight at one slot, reached by the shortest tasks only."),
    flag(keys::security_insecure, "false", all,
         "Whether addresses other than loopback may be used although the traffic is not encrypted."),
    path(keys::security_secret_file, all,
         "File of mode 0600 with the shared secret: a driver writes it where it is missing, its executors and clients "
         "read it; not set: one in the run directory."),
    time(keys::shutdown_grace, "1s", 0, all,
         "How long a process may take to end, beside what its commands are granted, before it is killed."),
    flag(keys::speculation_enabled, "false", driver,
         "Whether tasks that take long get a second attempt on another executor; the first to succeed is accepted, and "
         "the other is ended. Only for tasks that may run twice at a time."),
    time(keys::speculation_min_task_runtime, "100ms", 0, driver,
         "How long a task must have run at least before it gets a second attempt."),
    portion(keys::speculation_multiplier, "3", driver,
            "A task takes long when it has run for so many times the median of those of its stage that have ended."),
    portion(keys::speculation_quantile, "0.9", driver,
            "Part of a stage's tasks that must have ended before any of the rest can be said to take long.", 0, 1),
    time_or_never(keys::stage_timeout, "never", ns_per_ms, client,
                  "How long an attempt of a stage may take, waiting for executors included, unless the stage says for "
                  "itself; a longer one fails its job."),
    portion(keys::task_cpus, "1", all, "Cores that one task of the default profile takes, such as 2, 0.5 or 1/3."),
    time(keys::task_kill_grace, "10s", 0, all,
         "Time that an attempt has to end when it is cancelled: from SIGTERM to SIGKILL for a command; a task of a "
         "program that has not ended then has its executor replaced (local[N]: its slot is lost until it ends)."),
    count(keys::task_max_failures, "4", 1, 4'095, client, "How many failures of one task fail its job."),
    memory(keys::task_max_inline_result, "1m", 0, executor,
           "Results up to this size travel with the task's outcome; larger ones are fetched from their executor."),
    count(
        keys::task_max_processes, "0", 0, 4'194'304, all,
        "Most processes and threads that one command may have at a time, where a cgroup can limit that; 0: no limit."),
    memory(keys::task_memory, "0", 0, all,
           "Memory of its executor that one task of the default profile takes: so many run there at once as have room, "
           "and a command that takes more is ended; 0: nothing is counted."),
    memory(keys::task_memory_ceiling, "0", 0, all,
           "A task that ran out of memory is tried again with twice as much, up to this size, without a failure being "
           "counted: of its task's memory where it takes some, else of its executor's. For profiles that do not say it "
           "themselves; 0: with as much as before."),
    family(keys::task_resource_amount, all,
           "How much of a custom resource one task of the default profile takes, such as 1, 0.5, 1/3, or 10g of a "
           "counted size; 0: nothing."),
    flag(
        keys::task_thread_variables, "true", all,
        "Whether OMP_NUM_THREADS, OPENBLAS_NUM_THREADS, MKL_NUM_THREADS, BLIS_NUM_THREADS and NUMEXPR_NUM_THREADS tell "
        "a command the cpus of its task, rounded down and at least 1; where any of them is set by the user, none is "
        "changed."),
    time_or_never(keys::task_timeout, "never", ns_per_ms, client,
                  "How long an attempt of a task may run, unless its stage says for itself; a longer one is ended and "
                  "counts as failed."),
    time(keys::task_writer_grace, "2min", 0, all,
         "How long processes that a command has left behind may go on writing its outputs, or hold them open, without "
         "any output changing; then the task fails and names the process. Who has none open has 5s to open one; "
         "others are ended at once."),
    count(keys::transfer_attempts, "3", 1, 100, all, "How often a block is asked for before it counts as lost."),
    time(keys::transfer_connect_timeout, "5s", ns_per_ms, all, "How long connecting to a block server may take."),
    time(keys::transfer_read_timeout, "30s", ns_per_ms, all, "Longest silence of a block server during a transfer."),
    choice(
        keys::transfer_same_host, "auto", "auto|never", all,
        "How blocks go to readers on the same machine: auto lends them the files over a socket in the run directory, "
        "where that is within reach; never takes the network, as between machines, and lets executors whose output is "
        "still needed stay until it was read, since no shuffle service can take over their files."),
};

} // namespace

std::span<const setting_schema> schema() { return all_keys; }

} // namespace troupe
