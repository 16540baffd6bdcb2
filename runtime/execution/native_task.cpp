#include <troupe/runtime/execution/native_task.hpp>

#include <utility>

#include <troupe/runtime/execution/failure_text.hpp>
#include <troupe/runtime/execution/native_plan.hpp>
#include <troupe/runtime/execution/task_context.hpp>
#include <troupe/runtime/scheduling/bucket_sizes.hpp>
#include <troupe/runtime/storage/block_store.hpp>

namespace troupe {

namespace {

constexpr auto no_blocks = "this executor keeps no blocks; it cannot hold the task's output";

attempt_end not_kept(const error& why) {
  return failed_attempt(task_status::failed, "the task's output could not be kept: " + why.message);
}

/// Stores what the task has made for later jobs, too, where there is room for it.
attempt_end keep_output(task_context& context, const result_policy& policy) {
  if (!policy.blocks) return failed_attempt(task_status::failed, no_blocks);
  auto content = context.take_map_output();
  attempt_end end;
  end.bytes = content.size();
  end.buckets = encode_bucket_sizes(content.sizes());
  const auto kept = policy.blocks->put_cached(cached_key(context.keeps, context.partition),
                                              output_key(context.stage, context.partition, context.attempt),
                                              std::move(content), context.level);
  if (!kept) return not_kept(kept.error());
  end.kind = *kept ? result_kind::kept_output : result_kind::map_output;
  return end;
}

attempt_end run(const native_plan& plan, task_context& context, std::string_view argument,
                const result_policy& policy) {
  auto value = plan.run(context, argument);
  if (context.buckets > 0) {
    if (!context.has_map_output())
      return failed_attempt(task_status::failed, "the task of a shuffle map stage ended without a map output");
    if (context.keeps) return keep_output(context, policy);
    return store_output(context.stage, context.partition, context.attempt, result_kind::map_output,
                        context.take_map_output(), policy);
  }
  if (const auto size = value.size(); size > policy.max_inline_result) {
    auto end = store_output(context.stage, context.partition, context.attempt, result_kind::block,
                            block_content::of(std::move(value), policy.compression), policy);
    end.bytes = size; // of the value, not of what it takes there
    return end;
  }
  attempt_end end;
  end.bytes = value.size();
  end.value = std::move(value);
  return end;
}

} // namespace

attempt_end failed_attempt(task_status status, std::string_view message, std::string stderr_text) {
  attempt_end end;
  end.status = status;
  end.failure = std::make_unique<task_failure>();
  end.failure->message = bounded_text(message, max_failure_message);
  end.failure->stderr_text = std::move(stderr_text);
  return end;
}

attempt_end store_output(stage_id stage, partition_index partition, attempt_number attempt, result_kind kind,
                         block_content content, const result_policy& policy) {
  if (!policy.blocks) return failed_attempt(task_status::failed, no_blocks);
  attempt_end end;
  end.kind = kind;
  end.bytes = content.size();
  if (kind == result_kind::map_output) end.buckets = encode_bucket_sizes(content.sizes());
  const auto key = output_key(stage, partition, attempt);
  if (const auto kept = policy.blocks->put(key, std::move(content)); !kept) return not_kept(kept.error());
  return end;
}

attempt_end missed_attempt(const fetch_failure& why) {
  auto end = failed_attempt(task_status::fetch_failed, why.what());
  end.failure->shuffle = why.shuffle;
  end.failure->map_partition = why.partition;
  end.failure->map_attempt = why.attempt;
  end.failure->map_executor = why.executor;
  return end;
}

attempt_end run_native_task(const native_plan& plan, task_context& context, std::string_view argument,
                            const result_policy& policy) noexcept {
  try {
    auto end = run(plan, context, argument, policy);
    if (!end.failure) end.counted = context.take_counted();
    return end;
  } catch (const fetch_failure& e) {
    return missed_attempt(e);
  } catch (...) {
    return failed_attempt(task_status::failed, text_of_exception(), tail_of_file(policy.stderr_file));
  }
}

} // namespace troupe
