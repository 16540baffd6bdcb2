#include <troupe/actors/submission.hpp>

#include <optional>
#include <utility>

#include <caf/scoped_actor.hpp>

#include <troupe/actors/visiting_thread.hpp>
#include <troupe/messages/caf_compat.hpp>
#include <troupe/messages/gate.hpp>
#include <troupe/messages/type_ids.hpp>

namespace troupe {
namespace {

using submission_actor = extended<client_actor, void(local_message<cancel_job>)>;
using submission_pointer = stateful_pointer<submission_actor, struct submission_state>;

error driver_has_ended() {
  return make_error(ec::unreachable, "the driver has ended, with all its jobs: it was shut down, or it has failed");
}

struct submission_state {
  static constexpr const char* name = "troupe.submission";
  submission_state() = default; // no aggregate, which CAF 0.17 would try to make from the actor's own pointer
  submission_actor alive;       ///< itself, until all is told: nobody else may hold it when the driver goes
  driver_actor driver;
  job_handlers handlers;
  std::unique_ptr<gate> admitted;
  job_id job;                      ///< once accepted
  std::optional<std::string> wish; ///< why it is to be cancelled
  bool over = false;

  void accepted(submission_pointer self, job_id as) {
    if (over) return;
    job = as;
    if (handlers.on_accepted) handlers.on_accepted(as);
    if (wish) cancel(self);
  }

  void cancel(submission_pointer self) {
    // The job's end tells how that went.
    ask_untimed(self, driver, box(cancel_job{job, *wish}))
        .then([](const boxed<acknowledged>&) {}, [](const caf::error&) {});
  }

  void ended(submission_pointer self, const job_end& end) {
    if (over) return;
    over = true;
    const auto last = std::exchange(handlers, {});
    if (!end.failure) {
      if (last.on_success) last.on_success(end);
    } else if (end.failure.code == ec::cancelled) {
      if (last.on_cancelled) last.on_cancelled(end.failure);
    } else if (last.on_failure) {
      last.on_failure(end.failure);
    }
    if (last.on_end) last.on_end(end);
    if (!end.failure && !last.keep_results) tell(self, driver, box(release_results{end.job}));
    self->quit();
    alive = nullptr;
  }

  void failed(submission_pointer self, error why) {
    job_end end;
    end.job = job;
    end.failure = std::move(why);
    ended(self, end);
  }
};

submission_actor::behavior_type submission_behavior(submission_pointer self, driver_actor driver,
                                                    std::shared_ptr<const job_spec> job, job_handlers handlers) {
  auto& state = state_of(self);
  state.alive = submission_actor{self};
  state.driver = std::move(driver);
  state.handlers = std::move(handlers);
  state.admitted = std::make_unique<gate>(self->node());
  actor_hooks hooks;
  hooks.on_down = [self](const caf::actor_addr& who, const caf::error&) {
    auto& s = state_of(self);
    if (who == s.driver.address()) s.failed(self, driver_has_ended());
  };
  harden(self, hooks);
  watch(self, state.driver);
  // This actor submits one job: the news that it hears are of that one, also where they overtake the acceptance.
  ask_untimed(self, state.driver, box(job_submission{std::move(job), {}}), client_actor{submission_actor{self}})
      .then(
          [self](const boxed<job_accepted>& answer) {
            auto& s = state_of(self);
            if (s.admitted->passes(self, answer)) s.accepted(self, answer->job);
          },
          [self](const caf::error& why) {
            const bool gone = why == caf::sec::request_receiver_down;
            state_of(self).failed(self, gone ? driver_has_ended() : from_caf_error(self->system(), why));
          });
  return {
      [self](const boxed<job_progress>& progress) {
        auto& s = state_of(self);
        if (s.admitted->passes(self, progress) && !s.over && s.handlers.on_progress) s.handlers.on_progress(*progress);
      },
      [self](const boxed<job_end>& end) {
        auto& s = state_of(self);
        if (s.admitted->passes(self, end)) s.ended(self, *end);
      },
      [](const boxed<event_batch>&) {}, // it subscribes to none
      [](const boxed<subscription_cut_off>&) {},
      [self](const local_message<cancel_job>& wanted) {
        auto& s = state_of(self);
        if (s.over || s.wish) return;
        s.wish = wanted->reason;
        if (s.job) s.cancel(self);
      },
  };
}

} // namespace

void submitted_job::cancel(std::string reason) const {
  if (actor_) tell_as(actor_, actor_, local(cancel_job{{}, std::move(reason)}));
}

submitted_job submit(caf::actor_system& system, const driver_actor& driver, std::shared_ptr<const job_spec> job,
                     job_handlers handlers) {
  const visiting_thread thread;
  submitted_job out;
  out.actor_ = system.spawn(submission_behavior, driver, std::move(job), std::move(handlers));
  return out;
}

std::future<job_end> submit(caf::actor_system& system, const driver_actor& driver,
                            std::shared_ptr<const job_spec> job) {
  const auto promise = std::make_shared<std::promise<job_end>>();
  job_handlers handlers;
  handlers.on_end = [promise](const job_end& end) { promise->set_value(end); };
  submit(system, driver, std::move(job), std::move(handlers));
  return promise->get_future();
}

void release_results_of(caf::actor_system& system, const driver_actor& driver, job_id job) {
  const visiting_thread thread;
  const caf::scoped_actor self{system};
  tell(self, driver, box(release_results{job}));
}

} // namespace troupe
