// How fast the scheduling core alone decides: placements per second, without actors, messages and executors.
// Only the time inside the scheduler counts; what stands for executors is prepared outside of it.

#include <chrono>
#include <deque>
#include <memory>
#include <random>
#include <stdexcept>
#include <vector>

#include <benchmark/benchmark.h>

#include <troupe/runtime/dag/dag_scheduler.hpp>

namespace troupe {
namespace {

using seconds = std::chrono::duration<double>;

resource_profile profile_with_cpus(std::int64_t cores) {
  resource_profile p;
  p.executor["cores"] = {cores, {}, {}};
  p.executor["memory"] = {std::int64_t{1} << 30, {}, {}};
  p.task["cpus"] = share::whole(1);
  return p;
}

executor_info executor_of(std::uint64_t number, std::int64_t cores) {
  executor_info info;
  info.executor = {number};
  info.epoch = 1;
  info.host = "host";
  info.native = true;
  info.build_id = "build";
  info.profile = profile_with_cpus(cores);
  info.capacity = capacity_of(info.profile);
  return info;
}

std::shared_ptr<const job_spec> job_of(std::uint32_t tasks, std::uint32_t argument_size) {
  job_spec job;
  job.profiles.emplace_back();
  stage_spec stage;
  stage.name = "no-op";
  stage.tasks = tasks;
  stage.program = native_program{"build", {operation{0, {}}}};
  auto arguments = std::make_shared<packed_column>();
  const std::string argument(argument_size, 'x');
  for (std::uint32_t i = 0; i < tasks; ++i) arguments->push_back(argument);
  stage.arguments = std::move(arguments);
  job.stages.push_back(std::move(stage));
  return std::make_shared<const job_spec>(std::move(job));
}

/// Executors that finish each batch as one report, in the order in which batches came.
class cluster {
public:
  cluster(std::uint64_t executors, duration run_time) : run_time_(run_time), scheduler_({}) {
    for (std::uint64_t i = 1; i <= executors; ++i) scheduler_.on_executor_added(executor_of(i, 1), now_, out_);
    take_orders();
  }

  /// @returns seconds inside the scheduler
  double run(std::shared_ptr<const job_spec> job) {
    const std::vector<resolved_profile> profiles{{default_profile_id, {1}, profile_with_cpus(1)}};
    double spent = timed([&] { job_ = scheduler_.on_job_submitted(std::move(job), profiles, now_, out_); });
    take_orders();
    while (!done_) {
      if (work_.empty()) throw std::logic_error("the job does not end");
      const auto [executor, batch] = std::move(work_.front());
      work_.pop_front();
      const auto report = report_of(executor, batch);
      now_ += run_time_;
      spent += timed([&] { scheduler_.on_report(report, now_, out_); });
      take_orders();
    }
    done_ = false;
    return spent;
  }
  std::uint64_t reports() const noexcept { return reports_; }

private:
  template <class F>
  double timed(F&& f) {
    const auto begin = std::chrono::steady_clock::now();
    f();
    return seconds{std::chrono::steady_clock::now() - begin}.count();
  }

  executor_report report_of(executor_id executor, const task_batch& batch) {
    auto outcome = std::make_shared<outcome_batch>();
    outcome->stage = batch.stage;
    outcome->stage_attempt = batch.stage_attempt;
    outcome->lease = batch.lease;
    outcome->count = batch.count;
    outcome->first = batch.first;
    outcome->results.ends.reserve(batch.count);
    for (std::uint32_t i = 0; i < batch.count; ++i) outcome->results.push_back(std::string_view{"\0", 1});
    outcome->run_nanoseconds = static_cast<std::uint64_t>(run_time_.count()) * batch.count;
    executor_report report;
    report.executor = executor;
    report.epoch = 1;
    report.outcomes.push_back(std::move(outcome));
    ++reports_;
    return report;
  }

  void take_orders() {
    for (auto& effect : out_) {
      if (auto* send = std::get_if<effects::send_orders>(&effect))
        for (auto& batch : send->orders.batches) work_.emplace_back(send->executor, std::move(batch));
      else if (std::holds_alternative<effects::complete_job>(effect))
        done_ = true;
    }
    out_.clear();
  }

  duration run_time_;
  dag_scheduler scheduler_;
  time_point now_{};
  effects::list out_;
  std::deque<std::pair<executor_id, task_batch>> work_;
  job_id job_;
  bool done_ = false;
  std::uint64_t reports_ = 0;
};

void place(benchmark::State& state, std::uint32_t tasks, duration run_time) {
  const auto job = job_of(tasks, 16);
  std::uint64_t placed = 0;
  std::uint64_t reports = 0;
  for (auto _ : state) {
    cluster c{static_cast<std::uint64_t>(state.range(0)), run_time};
    state.SetIterationTime(c.run(job));
    placed += tasks;
    reports += c.reports();
  }
  state.counters["placements"] = benchmark::Counter(static_cast<double>(placed), benchmark::Counter::kIsRate);
  state.counters["reports"] = benchmark::Counter(static_cast<double>(reports), benchmark::Counter::kIsRate);
}

/// A million no-ops in batches of 256, on so many executors of one core.
void no_ops(benchmark::State& state) { place(state, 1'000'000, std::chrono::nanoseconds{100}); }
BENCHMARK(no_ops)->Arg(1)->Arg(100)->Arg(1'000)->Arg(10'000)->UseManualTime()->Unit(benchmark::kMillisecond);

/// Long tasks: every one is placed, and its end reported, on its own.
void long_tasks(benchmark::State& state) { place(state, 100'000, std::chrono::milliseconds{20}); }
BENCHMARK(long_tasks)->Arg(100)->Arg(1'000)->Arg(10'000)->UseManualTime()->Unit(benchmark::kMillisecond);

/// Twenty profiles, each with executors and a stage of its own: half of them ask for a custom resource with addresses.
resource_profile mixed_profile(std::uint32_t which) {
  auto p = profile_with_cpus(4);
  p.executor["memory"] = {std::int64_t{1 + which} << 28, {}, {}};
  if (which % 2 == 0) {
    const auto name = "device" + std::to_string(which / 2);
    p.executor[name] = {4, {}, {}};
    p.task[name] = share::whole(1);
  }
  return p;
}
constexpr std::uint32_t profiles_in_use = 20;

std::shared_ptr<const job_spec> mixed_job(std::uint32_t tasks) {
  job_spec job;
  for (std::uint32_t i = 0; i < profiles_in_use; ++i) {
    job.profiles.push_back(mixed_profile(i));
    stage_spec stage;
    stage.name = "mixed";
    stage.profile = i;
    stage.tasks = tasks / profiles_in_use;
    stage.program = native_program{"build", {operation{0, {}}}};
    stage.keep_results = false;
    job.stages.push_back(std::move(stage));
  }
  return std::make_shared<const job_spec>(std::move(job));
}

/// A million tasks wait, long enough for each to be placed alone; attempts end in random order. Counted are the
/// placements after all slots are full, the time inside the scheduler, and the candidates that it looks at. Under
/// `compatible` the stages without devices share all executors, one stage after the other; under `exact` each stage has
/// its own.
void mixed(benchmark::State& state, profile_matching matching) {
  const auto executors = static_cast<std::uint64_t>(state.range(0));
  constexpr std::uint32_t tasks = 1'000'000;
  constexpr std::uint32_t measured = 200'000;
  const auto job = mixed_job(tasks);
  std::vector<resolved_profile> profiles;
  for (std::uint32_t i = 0; i < profiles_in_use; ++i) {
    resolved_profile p;
    p.profile = {i};
    p.shape = {i + 1};
    p.content = job->profiles[i];
    profiles.push_back(std::move(p));
  }
  std::uint64_t placed = 0;
  std::uint64_t examined = 0;
  for (auto _ : state) {
    dag_scheduler::options options;
    options.matching = matching;
    options.scarce_resource_wait = duration::zero();
    dag_scheduler scheduler{options};
    effects::list out;
    time_point now{};
    std::vector<std::pair<executor_id, task_batch>> running;
    const auto take = [&] {
      for (auto& effect : out)
        if (auto* send = std::get_if<effects::send_orders>(&effect))
          for (auto& batch : send->orders.batches) running.emplace_back(send->executor, std::move(batch));
      out.clear();
    };
    for (std::uint64_t i = 1; i <= executors; ++i) {
      auto info = executor_of(i, 4);
      const auto which = static_cast<std::uint32_t>(i % profiles_in_use);
      info.profile = mixed_profile(which);
      info.shape = {which + 1};
      info.capacity = capacity_of(info.profile);
      for (auto& [name, pool] : info.capacity.custom)
        for (std::int64_t a = 0; a < pool.amount; ++a) pool.addresses.push_back(std::to_string(a));
      scheduler.on_executor_added(info, now, out);
      out.clear();
    }
    scheduler.on_job_submitted(job, profiles, now, out);
    take();
    std::mt19937 random{1};
    const auto before = scheduler.pool().examined();
    double spent = 0;
    for (std::uint32_t n = 0; n < measured; ++n) {
      const auto at = random() % running.size();
      std::swap(running[at], running.back());
      const auto [executor, batch] = std::move(running.back());
      running.pop_back();
      auto outcome = std::make_shared<outcome_batch>();
      outcome->stage = batch.stage;
      outcome->lease = batch.lease;
      outcome->count = batch.count;
      outcome->first = batch.first;
      outcome->partitions = batch.partitions;
      for (std::uint32_t i = 0; i < batch.count; ++i) outcome->results.push_back(std::string_view{"\0", 1});
      outcome->run_nanoseconds = 20'000'000;
      executor_report report;
      report.executor = executor;
      report.epoch = 1;
      report.outcomes.push_back(std::move(outcome));
      now += std::chrono::microseconds{20};
      const auto begin = std::chrono::steady_clock::now();
      scheduler.on_report(report, now, out);
      spent += seconds{std::chrono::steady_clock::now() - begin}.count();
      take();
    }
    state.SetIterationTime(spent);
    placed += measured;
    examined += scheduler.pool().examined() - before;
  }
  state.counters["placements"] = benchmark::Counter(static_cast<double>(placed), benchmark::Counter::kIsRate);
  state.counters["examined"] = static_cast<double>(examined) / static_cast<double>(placed);
}
BENCHMARK_CAPTURE(mixed, compatible, profile_matching::compatible)
    ->Arg(100)
    ->Arg(1'000)
    ->Arg(10'000)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(mixed, exact, profile_matching::exact)
    ->Arg(100)
    ->Arg(1'000)
    ->Arg(10'000)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

} // namespace
} // namespace troupe

BENCHMARK_MAIN();
