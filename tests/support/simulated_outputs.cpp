// Output files of simulated commands: staged by executors, and put in place by who has accepted them.
//
// Some hosts have the driver's file system and some have their own. Executors that were declared lost go on for a
// while: they use rights that they were given before.

#include <stdexcept>

#include <troupe/tests/support/simulator.hpp>

namespace troupe::testing {
namespace {

/// So long an executor goes on that nobody hears any more.
constexpr duration afterlife = 20s;

std::string name_of(stage_id stage, partition_index partition, attempt_number attempt) {
  return "attempt " + std::to_string(attempt) + " of partition " + std::to_string(partition) + " of stage " +
         std::to_string(stage.value);
}

} // namespace

bool simulator::driver_sees(executor_id e) {
  const auto& host = members_.at(e)->self.info().host;
  const auto known = seen_hosts_.find(host);
  return known != seen_hosts_.end() ? known->second : seen_hosts_.emplace(host, dice_.below(3) > 0).first->second;
}

void simulator::stage_output(const fake_executor& by, const fake_attempt& a) {
  const auto* stage = by.installed(a.stage);
  const auto* command = stage && stage->program ? std::get_if<command_program>(stage->program.get()) : nullptr;
  if (command && command->output_directory == "/out") staged_.insert({a.stage, a.partition, a.attempt});
}

/// The driver's publisher.
void simulator::publish(const effects::staged_attempt& what) {
  const auto name = name_of(what.stage, what.partition, what.attempt);
  if (!reported_.contains({what.stage, what.partition, what.attempt}))
    throw std::logic_error(name + " is to be published and has not succeeded, as far as the driver knows");
  if (!accepted_outputs_.insert({what.stage, what.partition, what.attempt}).second)
    throw std::logic_error(name + " is to be published twice");
  const bool fails = strikes(2000); // its job, too
  at(latency(), "the driver publishes " + name_of(what.stage, what.partition, what.attempt), [=, this] {
    if (over_.contains(what.job)) return; // closed
    publication answer{what.stage, what.partition, what.attempt, publication_outcome::published, {}};
    if (!driver_sees(what.executor) || !staged_.contains({what.stage, what.partition, what.attempt})) {
      answer.outcome = publication_outcome::not_seen;
    } else if (fails) {
      answer.outcome = publication_outcome::failed;
      answer.reason = "no space left";
    } else {
      put_in_place(what.stage, what.partition, what.attempt, false);
    }
    at(latency(), "it is told", [=, this] {
      effects::list out;
      scheduler_.on_publications({answer}, now_, out);
      dispatch(out);
    });
  });
}

/// An executor has the right to publish an attempt, and takes its time.
void simulator::use_right(executor_id e, const publication_right& right) {
  const auto is_new =
      open_rights_.emplace(output_task{right.stage, right.partition}, std::pair{right.attempt, e}).second;
  if (!is_new) throw std::logic_error("a second right for " + name_of(right.stage, right.partition, right.attempt));
  const duration wait{static_cast<std::int64_t>(dice_.below(dice_.once_in(4) ? 15'000'000'000 : 100'000'000))};
  at(wait, "executor " + std::to_string(e.value) + " publishes " + name_of(right.stage, right.partition, right.attempt),
     [=, since = now_, this] {
       auto& m = *members_.at(e);
       if (!m.alive && (!m.haunts || now_ - since > afterlife)) return;
       if (!m.alive) ++report_.late;
       const bool gone = m.alive && strikes(60); // as where the user has removed the folder
       if (!gone) put_in_place(right.stage, right.partition, right.attempt, true);
       if (!m.alive) return; // nobody hears of it
       open_rights_.erase({right.stage, right.partition});
       auto report = m.self.report({});
       const auto outcome = gone ? publication_outcome::not_seen : publication_outcome::published;
       report.publications.push_back({right.stage, right.partition, right.attempt, outcome, gone ? "gone" : ""});
       deliver(e, report, "publication by executor " + std::to_string(e.value));
     });
}

/// Nothing of an attempt that was not accepted is ever seen, nor anything beside a right that may still be used.
void simulator::put_in_place(stage_id stage, partition_index partition, attempt_number attempt, bool by_right) {
  const auto name = name_of(stage, partition, attempt);
  if (!accepted_outputs_.contains({stage, partition, attempt}))
    throw std::logic_error(name + " is published and was not accepted");
  const auto right = open_rights_.find({stage, partition});
  if (right != open_rights_.end() && right->second.first != attempt)
    throw std::logic_error(name + " is published while another attempt has the right to be");
  if (!by_right && over_.contains(job_of_.at(stage)))
    throw std::logic_error(name + " is published after its job's end");
  in_place_[{stage, partition}] = attempt;
  staged_.erase({stage, partition, attempt});
  ++report_.published;
  if (by_right) ++report_.rights;
}

/// A job has succeeded: what is in place is what was accepted.
void simulator::check_outputs(job_id job) {
  const auto placements = scheduler_.placements(job);
  if (!placements) return; // no longer retained
  for (const auto& run : *placements)
    for (auto p = run.partition; p < run.partition + run.count; ++p) {
      const auto found = in_place_.find({run.stage, p});
      if (found != in_place_.end() && found->second != run.attempt)
        throw std::logic_error(name_of(run.stage, p, found->second) + " is in place, and another one was accepted");
      if (found == in_place_.end() && accepted_outputs_.contains({run.stage, p, run.attempt}))
        throw std::logic_error(name_of(run.stage, p, run.attempt) + " was accepted and is not in place");
    }
}

} // namespace troupe::testing
