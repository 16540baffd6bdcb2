// Barrier stages (BA), the slots that they count (TS-10 to TS-14), and what a lost input does to them (DG-2, DG-8).

#include <atomic>

#include <troupe/runtime/execution/gang_gate.hpp>
#include <troupe/runtime/resources/exact_rules.hpp>
#include <troupe/tests/conformance/rule.hpp>
#include <troupe/tests/support/scheduler_harness.hpp>

namespace troupe::conformance {
namespace {

using namespace std::chrono_literals;
using testing::executor_builder;
using testing::fake_attempt;
using testing::job_builder;
using testing::make_profile;
using testing::scheduler_harness;

dag_scheduler::options options_of(const profile_rules& rules) {
  dag_scheduler::options options;
  options.matching = rules.matching;
  if (rules.is_exact()) options.resubmit_delay = 200ms;
  return options;
}

std::string number(std::size_t n) { return std::to_string(n); }

/// A gang of so many tasks on executors of so many cores each.
struct gang {
  gang(std::uint32_t tasks, std::initializer_list<std::int64_t> cores, const profile_rules& rules)
    : gang(job_builder{}.stage("gang", tasks).barrier(60s), cores, rules) {}
  gang(const job_builder& builder, std::initializer_list<std::int64_t> cores, const profile_rules& rules)
    : h{options_of(rules)} {
    for (const auto n : cores) all.push_back(h.add(executor_builder{}.cores(n)));
    job = h.submit(builder);
  }
  std::vector<fake_attempt> tasks(std::uint32_t stage = 0) { return h.attempts_of(job, stage); }
  std::size_t running(std::uint32_t stage = 0) {
    std::size_t n = 0;
    for (const auto& a : tasks(stage)) n += a.doomed ? 0 : 1;
    return n;
  }
  void end_killed() {
    for (const auto& a : h.attempts())
      if (a.doomed) h.end(a, task_status::killed);
  }
  std::string end() const {
    const auto* ended = h.end_of(job);
    if (!ended) return "runs";
    return ended->progress.state == job_state::succeeded ? "succeeded" : ended->failure.message;
  }
  scheduler_harness h;
  std::vector<executor_id> all;
  job_id job;
};

std::string together(const profile_rules& rules) {
  gang g{3, {1, 1}, rules};
  auto text = number(g.running());
  g.h.add(executor_builder{}.cores(1));
  if (rules.is_exact()) g.h.tick(15s);
  return text + ", " + number(g.running());
}

std::string where_executors_come_and_go(const profile_rules& rules) {
  std::string out;
  for (const auto support : {support_matrix::all, support_matrix::spark})
    for (const bool dynamic : {false, true}) {
      auto here = rules;
      here.support = support;
      here.dynamic_allocation = dynamic;
      here.master = master_kind::local_cluster;
      const auto ok = exact::check_barrier_supported(here);
      out += ok ? "yes " : ok.error().message.substr(0, 13) + " ";
    }
  return out;
}

std::string too_few_slots(const profile_rules& rules) {
  gang g{job_builder{}.stage("plain", 1), {3}, rules};
  g.h.drain();
  g.h.answer = [](const executor_shape&) { return feasibility{false, false, "no more", 0}; };
  g.job = g.h.submit(job_builder{}.stage("gang", 4).barrier());
  int looks = 1;
  for (; looks < 100 && !g.h.end_of(g.job); ++looks) g.h.tick(15s);
  return number(static_cast<std::size_t>(looks)) + " looks: " + g.end();
}

std::string slots_that_come_in_time(const profile_rules& rules) {
  gang g{4, {3}, rules};
  g.h.tick(15s);
  g.h.add(executor_builder{}.cores(1));
  g.h.tick(15s);
  return number(g.running());
}

std::string half_of_it_placed(const profile_rules& rules) {
  gang g{2, {1, 1, 1}, rules};
  g.h.drain();
  const auto busy = g.h.submit(job_builder{}.stage("busy", 2));
  const auto next = g.h.submit(job_builder{}.stage("gang", 2).barrier());
  const auto other = g.h.submit(job_builder{}.profile(make_profile({}, {{"cpus", "1"}})).stage("other", 1).with(1));
  // The slot that the gang alone could not use.
  return number(g.h.attempts_of(busy, 0).size()) + " " + number(g.h.attempts_of(next, 0).size()) + " " +
         number(g.h.attempts_of(other, 0).size());
}

std::string plain_before_it(const profile_rules& rules) {
  gang g{job_builder{}.stage("plain", 3), {1, 1}, rules};
  const auto next = g.h.submit(job_builder{}.stage("gang", 2).barrier());
  g.h.succeed_all(g.all[0]);
  auto text = number(g.h.attempts_of(next, 0).size());
  g.h.drain();
  return text + ", then " + (g.h.end_of(next) ? "succeeded" : "nothing");
}

std::string addresses_of_all(const profile_rules& rules) {
  gang g{2, {1, 1}, rules};
  const auto* install = g.h.executor(g.all[1]).installed(g.h.stage_of(g.job, 0));
  return number(install->gang->size()) + (install->gang->is_well_formed() ? " addresses" : "");
}

std::string one_of_a_map_stage_fails(const profile_rules& rules) {
  gang g{job_builder{}.stage("gang", 2).barrier().buckets(1).stage("reduce", 1).reads(0), {1, 1}, rules};
  g.h.succeed(g.tasks()[0]);
  g.h.fail(g.tasks()[0], "once");
  auto text = number(g.running()) + " at once, ";
  g.h.tick(200ms);
  return text + number(g.running()) + " after 200ms";
}

std::string one_of_a_result_stage_fails(const profile_rules& rules) {
  gang g{2, {2}, rules};
  g.h.fail(g.tasks()[0], "once");
  g.end_killed();
  g.h.drain();
  return g.end();
}

std::string old_and_many_failures(const profile_rules& rules) {
  gang g{job_builder{}.stage("gang", 3).barrier().buckets(1).stage("reduce", 1).reads(0), {3}, rules};
  task_failure why;
  why.message = "bad";
  std::vector<testing::fake_end> ends;
  for (const auto& a : g.tasks()) ends.push_back({a, task_status::failed, {}, why});
  const auto report = g.h.executor(g.all[0]).report(ends);
  g.h.deliver(report);
  g.h.tick(200ms);
  g.h.deliver(report); // of the attempt before
  return "attempt " + number(g.h.progress(g.job).stages[0].attempt) + ", " + number(g.running()) + " run";
}

std::string meetings(const profile_rules& rules) {
  gang g{2, {2}, rules};
  const auto tasks = g.tasks();
  std::string out;
  for (std::uint32_t round = 0; round < 2; ++round) {
    for (auto i = tasks.size(); i-- > 0;)
      g.h.arrive(tasks[i], round, sync_kind::all_gather, "text " + number(i) + " of round " + number(round));
    const auto& texts = *g.h.last_orders[g.all[0]].barriers.at(0).texts;
    out += std::string{texts[0]} + ", " + std::string{texts[1]} + "; ";
  }
  g.h.arrive(tasks[0], 0);
  return out + g.h.last_orders[g.all[0]].barriers.at(0).failure;
}

std::string different_meetings(const profile_rules& rules) {
  gang g{2, {2}, rules};
  g.h.arrive(g.tasks()[0]);
  g.h.arrive(g.tasks()[1], 0, sync_kind::all_gather, "x");
  const auto& told = g.h.last_orders[g.all[0]].barriers.at(0);
  return number(told.partitions.size()) + ": " + told.failure;
}

std::string late_meeting(const profile_rules& rules) {
  gang g{2, {2}, rules};
  g.h.arrive(g.tasks()[0]);
  g.h.tick(60s);
  const auto& told = g.h.last_orders[g.all[0]].barriers.at(0);
  return number(told.partitions.size()) + ": " + told.failure;
}

/// A task that is killed when it waits.
std::string woken(const profile_rules&) {
  std::atomic<bool> killed = false;
  gang_gate* gate = nullptr;
  gang_gate here{[&](const barrier_arrival&) {
    killed = true;
    gate->wake(killed);
  }};
  gate = &here;
  try {
    gate->wait({}, &killed);
    return "goes on";
  } catch (const barrier_failure&) {
    return "is woken";
  }
}

std::string a_lost_output_of_a_gang(const profile_rules& rules) {
  gang g{job_builder{}.stage("gang", 2).barrier().buckets(1).stage("reduce", 1).reads(0), {2}, rules};
  while (g.running() > 0) g.h.succeed(g.tasks()[0]);
  g.h.fetch_fail(g.tasks(1)[0], g.h.stage_of(g.job, 0), 1);
  g.h.tick(200ms);
  return number(g.running()) + " run again";
}

/// Slots of all, and of those free ones, by the one function that placement counts with.
std::string slots(const resource_profile& profile, const profile_rules& rules) {
  executor_pool pool{rules.matching};
  const auto content = std::make_shared<resource_profile>(profile);
  const auto e = pool.add(executor_builder{}.started_for(profile).cores(20).gpus(4).make({1}, 1), {});
  const auto d = pool.intern({{1}, {}, content, "", rules.is_exact()});
  auto text = number(static_cast<std::size_t>(pool.slots_of(d)));
  (void) pool.grant_on(e, d);
  return text + "/" + number(static_cast<std::size_t>(pool.free_slots(d)));
}

std::string slots_of_gpus(const profile_rules& rules) {
  std::string out;
  for (const auto* amount : {"0.2", "0.3", "0.4", "0.5", "1", "2", "3", "4"})
    out += slots(make_profile({{"cores", 20}, {"gpu", 4}}, {{"cpus", "1"}, {"gpu", amount}}), rules) + " ";
  return out;
}

const table barrier_rows{
    "barrier",
    {
        {"BA-1", "3 tasks on two slots, and on three", together, same("0, 3")},
        {"BA-2", "every matrix without and with, Spark's without and with dynamic allocation",
         where_executors_come_and_go, same("yes yes yes [SPARK-24942] ")},
        {"BA-3", "4 tasks, 3 slots", too_few_slots, differs("41 looks: …[SPARK-24819]…", "3 looks: …start together…")},
        {"BA-3", "4 tasks, 3 slots, a fourth 15s later", slots_that_come_in_time, same("4")},
        {"BA-5", "a gang of two beside two busy slots of three, and a plain task", half_of_it_placed,
         differs("2 0 1", "2 0 0")},
        {"BA-6", "the same", half_of_it_placed, differs("2 0 1", "2 0 0")},
        {"BA-7", "three plain tasks before a gang of two, on two slots", plain_before_it, same("0, then succeeded")},
        {"BA-8", "two tasks", addresses_of_all, same("2 addresses")},
        {"BA-9", "one of two map tasks fails", one_of_a_map_stage_fails,
         differs("0 at once, 2 after 200ms", "2 at once, 2 after 200ms")},
        {"BA-9", "one of two result tasks fails", one_of_a_result_stage_fails,
         differs("…Could not recover from a failed barrier ResultStage.…", "succeeded")},
        {"BA-9", "all three fail in one attempt, and are reported again in the next", old_and_many_failures,
         same("attempt 1, 3 run")},
        {"BA-10", "two rounds, the last comes first, then one is late", meetings,
         same("text 0 of round 0, text 1 of round 0; text 0 of round 1, text 1 of round 1; round 0 has already "
              "finished")},
        {"BA-10", "one waits, the other gathers", different_meetings, same("2: Different barrier sync types found…")},
        {"BA-11", "one of two waits for 60s", late_meeting,
         same("1: The coordinator didn't get all barrier sync requests…within 60000ms…")},
        {"BA-13", "one that is killed while it waits", woken, same("is woken")},
        {"DG-8", "one of two outputs of a gang is missing", a_lost_output_of_a_gang, same("2 run again")},
        {"DG-2", "every matrix without and with, Spark's without and with dynamic allocation",
         where_executors_come_and_go, same("yes yes yes [SPARK-24942] ")},
        {"TS-10", "gpu 0.2, 0.3, 0.4, 0.5, 1, 2, 3, 4 of 20 cores and 4 gpus: all/free when one runs", slots_of_gpus,
         same("20/19 12/11 8/7 8/7 4/3 2/1 1/0 1/0 ")},
        {"TS-14", "the same", slots_of_gpus, same("20/19 12/11 8/7 8/7 4/3 2/1 1/0 1/0 ")},
    }};

} // namespace
} // namespace troupe::conformance
