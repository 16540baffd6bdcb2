#include "desk.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <troupe/actors/submission.hpp>
#include <troupe/runtime/api/job.hpp>

namespace primes {
namespace {

/// A task: how many primes are there in [range.first, range.second)? Runs on a thread of an executor. Nobody can end it
/// from outside, so it looks now and then whether it is to end: until it does, the application's actor system waits.
std::int64_t count_primes(std::pair<std::int64_t, std::int64_t> range) {
  const auto& context = troupe::task_context::current();
  std::int64_t found = 0;
  for (auto n = std::max<std::int64_t>(2, range.first); n < range.second; ++n) {
    if (n % 4096 == 0 && context.cancelled()) break; // nobody sees the result
    bool prime = n == 2 || n % 2 == 1;
    for (std::int64_t d = 3; prime && d * d <= n; d += 2) prime = n % d != 0;
    if (prime) ++found;
  }
  return found;
}
constexpr auto count_task = troupe::task<"count-primes", count_primes>;

/// A request that waits for its job.
struct count {
  std::int64_t limit = 0;
  caf::typed_response_promise<count_reply> promise;
};

struct desk_state {
  static constexpr const char* name = "primes.desk";
  desk_state() = default; // no aggregate, which CAF 0.17 would try to make from the actor's own pointer
  troupe::driver_actor driver;
  listener_actor listener;
  std::uint64_t next = 0;
  std::map<std::uint64_t, count> counts; ///< by the number of their request
};

using desk_pointer = troupe::stateful_pointer<desk_actor, desk_state>;

desk_actor::behavior_type behavior(desk_pointer self, troupe::driver_actor driver, listener_actor listener) {
  troupe::state_of(self).driver = std::move(driver);
  troupe::state_of(self).listener = std::move(listener);
  return {
      [self](const count_request& request) -> caf::result<count_reply> {
        auto& state = troupe::state_of(self);
        const auto number = state.next++;
        auto promise = self->make_response_promise<count_reply>();
        state.counts.emplace(number, count{request.limit, promise});
        const desk_actor desk{self};
        // These run in an actor of Troupe's, so they send messages and touch nothing of the desk.
        troupe::submit(
            self->system(), state.driver, make_job(request),
            {.on_progress =
                 [desk, to = state.listener](const troupe::job_progress& p) {
                   const auto& stage = p.stages.front();
                   if (to) troupe::tell_as(desk, to, count_progress{stage.done, stage.tasks});
                 },
             .on_end = [desk, number](
                           const troupe::job_end& end) { troupe::tell_as(desk, desk, number, troupe::box(end)); }});
        return promise;
      },
      [self](std::uint64_t number, const troupe::boxed<troupe::job_end>& end) {
        auto& counts = troupe::state_of(self).counts;
        const auto it = counts.find(number);
        if (it == counts.end()) return;
        auto one = std::move(it->second);
        counts.erase(it);
        if (end->failure) {
          one.promise.deliver(troupe::to_caf_error(end->failure));
          return;
        }
        const auto& stage = end->progress.stages.front();
        count_reply reply;
        reply.limit = one.limit;
        reply.primes = total(*end);
        reply.tasks = stage.tasks;
        reply.executors = stage.executors;
        one.promise.deliver(reply);
      },
  };
}

} // namespace

std::shared_ptr<const troupe::job_spec> make_job(const count_request& request, troupe::resource_profile profile) {
  const auto parts = std::max<std::int64_t>(1, request.parts);
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  for (std::int64_t i = 0; i < parts; ++i)
    ranges.emplace_back(request.limit * i / parts, request.limit * (i + 1) / parts);
  troupe::job job{"primes below " + std::to_string(request.limit)};
  const auto stage = job.stage("count").run(count_task).arguments(ranges);
  if (profile != troupe::resource_profile{}) stage.profile(std::move(profile));
  return std::make_shared<const troupe::job_spec>(job.build({}, 0)); // the results of stage 0 come back
}

std::int64_t total(const troupe::job_end& end) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < end.results->values.size(); ++i)
    sum += troupe::decode_value<std::int64_t>(end.results->values[i]);
  return sum;
}

desk_actor spawn_desk(caf::actor_system& system, troupe::driver_actor driver, listener_actor listener) {
  return system.spawn(behavior, std::move(driver), std::move(listener));
}

} // namespace primes
