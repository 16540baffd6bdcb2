// What a pipeline gains: the same job, whose two stages have different profiles, with a barrier between and without.
//
//   pipeline_overlap [--master WHERE] [apart|together] [TASKS] [MILLISECONDS]
//
// Tasks of the first stage ("etl") and of the second, which has a GPU, sleep so long. Apart, each stage has an executor
// with one slot; together, one executor with two cores and one GPU serves both. The barrier is a shuffle, which is
// needed where a profile may change at shuffles only; as a pipeline the second stage follows task by task. Prints one
// line of JSON per round, the bound being what the second stage, whose tasks run one after the other, takes at best.
// For a master of one host with two cores.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <string>
#include <thread>

#include <troupe/troupe.hpp>

namespace {

using steady = std::chrono::steady_clock;

struct profiles {
  troupe::resource_profile etl;
  troupe::resource_profile gpu;
};

profiles make_profiles(bool together) {
  return {troupe::resource_profile_builder{}
              .require(troupe::executor_resource_requests{}.cores(1).memory(together ? "128m" : "600m"))
              .require(troupe::task_resource_requests{}.cpus(1))
              .build(),
          troupe::resource_profile_builder{}
              .require(troupe::executor_resource_requests{}.cores(together ? 2 : 1).memory("128m").resource("gpu", 1))
              .require(troupe::task_resource_requests{}.cpus(1).resource("gpu", 1))
              .build()};
}

std::int64_t sleep_and_pass(const std::int64_t& milliseconds, std::int64_t n) {
  std::this_thread::sleep_for(std::chrono::milliseconds{milliseconds});
  return n;
}

using pair = std::pair<std::int64_t, std::int64_t>;

/// The second stage reads what a shuffle has brought, and so waits for all of the first.
double barrier(troupe::session& session, const profiles& use, std::uint32_t tasks, std::int64_t milliseconds) {
  const auto start = steady::now();
  const auto count = session.range(0, tasks, tasks)
                         .map(troupe::with(milliseconds), troupe::fn<sleep_and_pass>)
                         .map([](std::int64_t n) {
                           return pair{n, n};
                         })
                         .with_resources(use.etl)
                         .reduce_by_key(std::plus<>{}, tasks)
                         .map([](const pair& p) { return p.second; })
                         .map(troupe::with(milliseconds), troupe::fn<sleep_and_pass>)
                         .with_resources(use.gpu)
                         .count();
  if (count != tasks) throw std::runtime_error("a record is missing");
  return std::chrono::duration<double>(steady::now() - start).count();
}

double pipeline(troupe::session& session, const profiles& use, std::uint32_t tasks, std::int64_t milliseconds) {
  const auto start = steady::now();
  const auto count = session.range(0, tasks, tasks)
                         .map(troupe::with(milliseconds), troupe::fn<sleep_and_pass>)
                         .with_resources(use.etl)
                         .map(troupe::with(milliseconds), troupe::fn<sleep_and_pass>)
                         .with_resources(use.gpu)
                         .count();
  if (count != tasks) throw std::runtime_error("a record is missing");
  return std::chrono::duration<double>(steady::now() - start).count();
}

} // namespace

int main(int argc, char** argv) {
  const auto body = [](troupe::session& session) {
    const auto& arguments = session.arguments();
    const auto where = arguments.size() > 0 ? arguments[0] : std::string{"apart"};
    if (where != "apart" && where != "together")
      throw std::runtime_error("usage: pipeline_overlap [--master WHERE] [apart|together] [TASKS] [MILLISECONDS]");
    const auto tasks = static_cast<std::uint32_t>(arguments.size() > 1 ? std::stoul(arguments[1]) : 40);
    const auto milliseconds = arguments.size() > 2 ? std::stol(arguments[2]) : 20;
    const auto use = make_profiles(where == "together");
    if (where == "together") session.range(0, 1, 1).with_resources(use.gpu).count(); // its executor takes all there is
    const auto bound = static_cast<double>((tasks + 1) * milliseconds) / 1000;
    pipeline(session, use, 1, 1); // so that the executors are there
    barrier(session, use, 1, 1);
    for (int round = 0; round < 5; ++round) {
      const auto with_barrier = barrier(session, use, tasks, milliseconds);
      const auto flowing = pipeline(session, use, tasks, milliseconds);
      std::cout << "{\"what\": \"two stages, " << where << ", of " << tasks << " tasks of " << milliseconds
                << " ms\", \"barrier_seconds\": " << with_barrier << ", \"pipeline_seconds\": " << flowing
                << ", \"bound_seconds\": " << bound << ", \"ratio\": " << with_barrier / flowing << "}" << std::endl;
    }
  };
  // No task touches the GPU: an address that is made up will do.
  return troupe::run(argc, argv, body, {.defaults = {"troupe.gpu.discovery=fake", "troupe.gpu.fake=1"}});
}
