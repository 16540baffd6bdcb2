// Plain -> bytes -> plain of launches and outcomes: what the wire form costs a task.

#include <cstdlib>
#include <iostream>

#include <benchmark/benchmark.h>

#include <troupe/messages/codec.hpp>

namespace {

using namespace troupe;

// A value that does not encode would make every figure below meaningless.
template <class T>
T through_bytes(const T& value) {
  auto bytes = encode(value);
  if (!bytes) {
    std::cerr << bytes.error().message << '\n';
    std::abort();
  }
  auto back = decode<T>(*bytes);
  if (!back) {
    std::cerr << back.error().message << '\n';
    std::abort();
  }
  return *std::move(back);
}

std::shared_ptr<const packed_column> column_of(std::uint32_t entries) {
  auto column = std::make_shared<packed_column>();
  for (std::uint32_t i = 0; i < entries; ++i) column->push_back("0123456789abcdef");
  return column;
}

void count_tasks(benchmark::State& state, std::int64_t tasks) {
  state.SetItemsProcessed(state.iterations() * tasks);
  state.counters["per_task"] = benchmark::Counter(
      static_cast<double>(tasks), benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

executor_orders launch_of(std::uint32_t tasks, bool scattered) {
  task_batch batch;
  batch.stage = stage_id{7};
  batch.lease = lease_id{12345};
  batch.count = tasks;
  batch.first = 500;
  batch.arguments = column_of(4096);
  batch.by_partition = true;
  if (scattered)
    for (std::uint32_t i = 0; i < tasks; ++i) {
      batch.partitions.push_back((i * 37 + 500) % 4096);
      batch.attempts.push_back(i % 3);
    }
  executor_orders orders;
  orders.epoch = 0x123456789abcdef0;
  orders.sequence = 99;
  orders.batches.push_back(std::move(batch));
  return orders;
}

/// A launch of separate tasks with 16-byte arguments.
void launch(benchmark::State& state) {
  const auto tasks = static_cast<std::uint32_t>(state.range(0));
  const auto orders = launch_of(tasks, false);
  for (auto _ : state) benchmark::DoNotOptimize(through_bytes(orders));
  count_tasks(state, tasks);
}
BENCHMARK(launch)->Arg(1)->Arg(64)->Arg(256)->Arg(1024);

/// The same with partitions out of order and attempts of their own.
void launch_scattered(benchmark::State& state) {
  const auto tasks = static_cast<std::uint32_t>(state.range(0));
  const auto orders = launch_of(tasks, true);
  for (auto _ : state) benchmark::DoNotOptimize(through_bytes(orders));
  count_tasks(state, tasks);
}
BENCHMARK(launch_scattered)->Arg(64)->Arg(256)->Arg(1024);

/// Outcomes with 16-byte results, as an executor reports them.
void outcome(benchmark::State& state) {
  const auto tasks = static_cast<std::uint32_t>(state.range(0));
  outcome_batch batch;
  batch.stage = stage_id{7};
  batch.lease = lease_id{12345};
  batch.count = tasks;
  batch.first = 500;
  batch.results = *column_of(tasks);
  batch.run_nanoseconds = 1'000'000;
  executor_report report;
  report.executor = executor_id{3};
  report.epoch = 0x123456789abcdef0;
  report.orders_seen = 99;
  report.outcomes.push_back(std::make_shared<const outcome_batch>(std::move(batch)));
  for (auto _ : state) benchmark::DoNotOptimize(through_bytes(report));
  count_tasks(state, tasks);
}
BENCHMARK(outcome)->Arg(1)->Arg(64)->Arg(256)->Arg(1024);

/// There and back: launch and outcome of the same tasks.
void round_trip(benchmark::State& state) {
  const auto tasks = static_cast<std::uint32_t>(state.range(0));
  const auto orders = launch_of(tasks, true);
  outcome_batch batch;
  batch.stage = stage_id{7};
  batch.lease = lease_id{12345};
  batch.count = tasks;
  batch.partitions = orders.batches[0].partitions;
  batch.attempts = orders.batches[0].attempts;
  batch.statuses.assign(tasks, task_status::succeeded);
  batch.results = *column_of(tasks);
  executor_report report;
  report.outcomes.push_back(std::make_shared<const outcome_batch>(std::move(batch)));
  for (auto _ : state) {
    benchmark::DoNotOptimize(through_bytes(orders));
    benchmark::DoNotOptimize(through_bytes(report));
  }
  count_tasks(state, tasks);
}
BENCHMARK(round_trip)->Arg(64)->Arg(256)->Arg(1024);

} // namespace

BENCHMARK_MAIN();
