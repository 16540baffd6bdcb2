// What a pipeline gains: the same job, whose two stages need different executors, with a barrier between and without.
//
//   pipeline_overlap [--master WHERE] [TASKS] [MILLISECONDS]
//
// Tasks of the first stage ("etl") and of the second, which has a GPU, sleep so long. Both stages have one slot. The
// barrier is a shuffle, which is needed where a profile may change at shuffles only; as a pipeline the second stage
// follows task by task. Prints one line of JSON per round, the bound being what two stages of so many tasks take at
// best.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <string>
#include <thread>

#include <troupe/troupe.hpp>

namespace {

using steady = std::chrono::steady_clock;

troupe::resource_profile etl() {
  return troupe::resource_profile_builder{}
      .require(troupe::executor_resource_requests{}.cores(1).memory("600m"))
      .require(troupe::task_resource_requests{}.cpus(1))
      .build();
}

troupe::resource_profile gpu() {
  return troupe::resource_profile_builder{}
      .require(troupe::executor_resource_requests{}.cores(1).memory("128m").resource("gpu", 1))
      .require(troupe::task_resource_requests{}.cpus(1).resource("gpu", 1))
      .build();
}

std::int64_t sleep_and_pass(const std::int64_t& milliseconds, std::int64_t n) {
  std::this_thread::sleep_for(std::chrono::milliseconds{milliseconds});
  return n;
}

using pair = std::pair<std::int64_t, std::int64_t>;

/// The second stage reads what a shuffle has brought, and so waits for all of the first.
double barrier(troupe::session& session, std::uint32_t tasks, std::int64_t milliseconds) {
  const auto start = steady::now();
  const auto count = session.range(0, tasks, tasks)
                         .map(troupe::with(milliseconds), troupe::fn<sleep_and_pass>)
                         .map([](std::int64_t n) {
                           return pair{n, n};
                         })
                         .with_resources(etl())
                         .reduce_by_key(std::plus<>{}, tasks)
                         .map([](const pair& p) { return p.second; })
                         .map(troupe::with(milliseconds), troupe::fn<sleep_and_pass>)
                         .with_resources(gpu())
                         .count();
  if (count != tasks) throw std::runtime_error("a record is missing");
  return std::chrono::duration<double>(steady::now() - start).count();
}

double pipeline(troupe::session& session, std::uint32_t tasks, std::int64_t milliseconds) {
  const auto start = steady::now();
  const auto count = session.range(0, tasks, tasks)
                         .map(troupe::with(milliseconds), troupe::fn<sleep_and_pass>)
                         .with_resources(etl())
                         .map(troupe::with(milliseconds), troupe::fn<sleep_and_pass>)
                         .with_resources(gpu())
                         .count();
  if (count != tasks) throw std::runtime_error("a record is missing");
  return std::chrono::duration<double>(steady::now() - start).count();
}

} // namespace

int main(int argc, char** argv) {
  const auto body = [](troupe::session& session) {
    const auto& arguments = session.arguments();
    const auto tasks = static_cast<std::uint32_t>(arguments.size() > 0 ? std::stoul(arguments[0]) : 40);
    const auto milliseconds = arguments.size() > 1 ? std::stol(arguments[1]) : 20;
    const auto bound = static_cast<double>((tasks + 1) * milliseconds) / 1000;
    pipeline(session, 1, 1); // so that the executors are there
    barrier(session, 1, 1);
    for (int round = 0; round < 5; ++round) {
      const auto with_barrier = barrier(session, tasks, milliseconds);
      const auto flowing = pipeline(session, tasks, milliseconds);
      std::cout << "{\"what\": \"two stages of " << tasks << " tasks of " << milliseconds
                << " ms\", \"barrier_seconds\": " << with_barrier << ", \"pipeline_seconds\": " << flowing
                << ", \"bound_seconds\": " << bound << ", \"ratio\": " << with_barrier / flowing << "}" << std::endl;
    }
  };
  // No task touches the GPU: an address that is made up will do.
  return troupe::run(argc, argv, body, {.defaults = {"troupe.gpu.discovery=fake", "troupe.gpu.fake=1"}});
}
