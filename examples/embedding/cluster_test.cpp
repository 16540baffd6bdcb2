// The application's job on a cluster of real processes, tested with what Troupe tests itself with. Any test framework
// will do; this program has none.
#include <cstdint>
#include <exception>
#include <future>
#include <iostream>
#include <mutex>
#include <stdexcept>
#include <string>

#include <troupe/tests/support/test_cluster.hpp>

#include "desk.hpp"

namespace {

/// An executor is killed while the job runs: its parts are counted again, and each part counts once.
void count_in_spite_of_a_kill() {
  std::promise<void> first_part_done;
  std::once_flag told;
  troupe::test_cluster cluster{{
      .master = "local-cluster[2,1,1g]",
      .on_progress =
          [&](const troupe::job_progress& p) {
            if (p.stages.front().done > 0) std::call_once(told, [&] { first_part_done.set_value(); });
          },
  }};
  auto job = std::async(std::launch::async,
                        [&] { return cluster.jobs().run(primes::make_job({.limit = 20'000'000, .parts = 2'000})); });
  if (first_part_done.get_future().wait_for(std::chrono::seconds{60}) != std::future_status::ready)
    throw std::runtime_error{"no part was counted in a minute"};
  cluster.kill(cluster.executors().front());
  if (job.wait_for(std::chrono::seconds{0}) == std::future_status::ready)
    throw std::runtime_error{"the job was over before the kill: nothing is shown"};
  const auto end = job.get();
  if (end.failure) throw std::runtime_error{end.failure.message};
  if (const auto primes = primes::total(end); primes != 1'270'607)
    throw std::runtime_error{"counted " + std::to_string(primes) + " primes below 20000000 instead of 1270607"};
  cluster.jobs().release(end.job);
  cluster.await_idle();
  cluster.check_clean(); // throws when a process, port, descriptor or file is left
}

} // namespace

int main(int argc, char** argv) {
  if (const auto code = troupe::testing::main_hook(argc, argv)) return *code; // this process is an executor
  try {
    count_in_spite_of_a_kill();
    return 0;
  } catch (const std::exception& e) {
    std::cerr << "cluster_test: " << e.what() << '\n';
    return 1;
  }
}
