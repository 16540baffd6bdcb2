#pragma once

/// One native attempt from its first instruction to what is to be reported of it.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/runtime/execution/staged_outputs.hpp>
#include <troupe/runtime/scheduling/reports.hpp>
#include <troupe/runtime/scheduling/result_entry.hpp>
#include <troupe/runtime/storage/page.hpp>

namespace troupe {

class block_store;
class native_plan;
class fetch_failure;
class task_context;
struct block_content;

/// How an attempt ended. Made on its lease thread.
struct attempt_end {
  result_kind kind = result_kind::inline_value; ///< of a success
  std::string value;                            ///< of a success, where inline
  std::uint64_t bytes = 0;                      ///< of its output, wherever it is
  std::string buckets;                          ///< of a map output: encoded sizes (see bucket_sizes)
  task_status status = task_status::succeeded;
  std::unique_ptr<task_failure> failure; ///< set unless succeeded
  std::unique_ptr<staging_place> staged; ///< where the outputs of a command wait to be published; else null
  std::uint64_t cpu_nanoseconds = 0;     ///< of a command
  std::uint64_t peak_memory = 0;         ///< of a command, bytes
  std::vector<accumulated> counted;      ///< of a native task, each accumulator once
  std::string left;                      ///< by a command (see outcome_batch::left)

  /// True when the attempt left a block set in the executor's store.
  bool stored() const noexcept {
    return status == task_status::succeeded && kind != result_kind::inline_value && kind != result_kind::files;
  }
};

/// An end with a failure of these (bounded) words.
attempt_end failed_attempt(task_status status, std::string_view message, std::string stderr_text = {});

/// Where results go that do not travel inline.
struct result_policy {
  block_store* blocks = nullptr;
  std::uint64_t max_inline_result = 0;
  std::string stderr_file;      ///< whose tail goes with a failure; "" for none
  page_compression compression; ///< of what becomes a block
};

/// Keeps `content` in the executor's store under the attempt's own key.
attempt_end store_output(stage_id stage, partition_index partition, attempt_number attempt, result_kind kind,
                         block_content content, const result_policy& policy);

/// The end of an attempt that could not have what it was to read.
attempt_end missed_attempt(const fetch_failure& why);

/// Runs the task that `context` has begun on the calling thread. Never throws: whatever the task throws is its failure.
attempt_end run_native_task(const native_plan& plan, task_context& context, std::string_view argument,
                            const result_policy& policy) noexcept;

} // namespace troupe
