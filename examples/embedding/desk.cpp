#include "desk.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <troupe/runtime/api/job.hpp>

namespace primes {
namespace {

/// A task: how many primes are there in [range.first, range.second)? Runs on a thread of an executor.
std::int64_t count_primes(std::pair<std::int64_t, std::int64_t> range) {
  std::int64_t found = 0;
  for (auto n = std::max<std::int64_t>(2, range.first); n < range.second; ++n) {
    bool prime = n == 2 || n % 2 == 1;
    for (std::int64_t d = 3; prime && d * d <= n; d += 2) prime = n % d != 0;
    if (prime) ++found;
  }
  return found;
}
constexpr auto count_task = troupe::task<"count-primes", count_primes>;

/// A count under way. The end of a short job may overtake the news that it was accepted.
struct count {
  std::int64_t limit = 0;
  std::optional<caf::typed_response_promise<count_reply>> promise;
  std::optional<troupe::boxed<troupe::job_end>> end;
};

struct desk_state {
  static constexpr const char* name = "primes.desk";
  desk_state() = default; // no aggregate, which CAF 0.17 would try to make from the actor's own pointer
  troupe::driver_actor driver;
  listener_actor listener;
  std::map<troupe::job_id, count> counts;

  void settle(troupe::job_id job) {
    const auto it = counts.find(job);
    if (!it->second.promise || !it->second.end) return;
    auto [limit, promise, end] = std::move(it->second);
    counts.erase(it);
    const auto& outcome = **end;
    if (outcome.failure) {
      promise->deliver(troupe::to_caf_error(outcome.failure));
      return;
    }
    count_reply reply;
    reply.limit = limit;
    reply.tasks = outcome.progress.stages.front().tasks;
    reply.executors = outcome.progress.stages.front().executors;
    reply.primes = total(outcome);
    promise->deliver(reply);
  }
};

using desk_pointer = troupe::stateful_pointer<desk_actor, desk_state>;

desk_actor::behavior_type behavior(desk_pointer self, troupe::driver_actor driver, listener_actor listener) {
  troupe::state_of(self).driver = std::move(driver);
  troupe::state_of(self).listener = std::move(listener);
  return {
      [self](const count_request& request) -> caf::result<count_reply> {
        auto promise = self->make_response_promise<count_reply>();
        troupe::ask(self, troupe::state_of(self).driver, std::chrono::seconds{10},
                    troupe::box(troupe::job_submission{make_job(request), {}}), troupe::client_actor{self})
            .then(
                [self, promise, limit = request.limit](const troupe::boxed<troupe::job_accepted>& accepted) {
                  auto& one = troupe::state_of(self).counts[accepted->job];
                  one.limit = limit;
                  one.promise = promise;
                  troupe::state_of(self).settle(accepted->job);
                },
                [promise](const caf::error& why) mutable { promise.deliver(why); });
        return promise;
      },
      [self](const troupe::boxed<troupe::job_progress>& progress) {
        const auto& stage = progress->stages.front();
        if (const auto& to = troupe::state_of(self).listener)
          troupe::tell(self, to, count_progress{stage.done, stage.tasks});
      },
      [self](const troupe::boxed<troupe::job_end>& end) {
        troupe::state_of(self).counts[end->job].end = end;
        troupe::state_of(self).settle(end->job);
      },
      [](const troupe::boxed<troupe::event_batch>&) {}, // it subscribes to none
      [](const troupe::boxed<troupe::subscription_cut_off>&) {},
  };
}

} // namespace

std::shared_ptr<const troupe::job_spec> make_job(const count_request& request) {
  const auto parts = std::max<std::int64_t>(1, request.parts);
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  for (std::int64_t i = 0; i < parts; ++i)
    ranges.emplace_back(request.limit * i / parts, request.limit * (i + 1) / parts);
  troupe::job job{"primes below " + std::to_string(request.limit)};
  job.stage("count").run(count_task).arguments(ranges);
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
