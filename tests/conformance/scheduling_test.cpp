// How tasks are placed on executors and charged there (TS).

#include <troupe/tests/conformance/rule.hpp>
#include <troupe/tests/support/scheduler_harness.hpp>

namespace troupe::conformance {
namespace {

using namespace std::chrono_literals;
using testing::executor_builder;
using testing::job_builder;
using testing::make_profile;
using testing::scheduler_harness;

/// The scheduler under a policy.
dag_scheduler::options under(const profile_rules& rules) {
  dag_scheduler::options options;
  options.matching = rules.matching;
  return options;
}

std::string count(std::size_t n) { return std::to_string(n); }

std::string counts_on(scheduler_harness& h, std::initializer_list<executor_id> executors) {
  std::string text;
  for (const auto e : executors) text += (text.empty() ? "" : ", ") + count(h.attempts(e).size());
  return text;
}

std::string offers_of_an_executor(const profile_rules& rules) {
  scheduler_harness h{under(rules)};
  const auto halves = make_profile({{"cores", 4}, {"gpu", 2}}, {{"cpus", "1"}, {"gpu", "0.5"}});
  const auto e = h.add(executor_builder{}.started_for(halves).host("alpha"));
  h.submit(job_builder{}.profile(halves).stage("s", 3).with(1));
  const auto& record = h.scheduler.pool()[h.scheduler.pool().find(e)];
  return record.info.host + ": " + to_string(record.book.free_cpus()) + " cpus, gpu " +
         to_string(record.book.free_of("gpu", "0")) + " and " + to_string(record.book.free_of("gpu", "1")) + " free";
}

std::string a_leaving_executor(const profile_rules& rules) {
  scheduler_harness h{under(rules)};
  const auto leaves = h.add(executor_builder{}.cores(4));
  const auto stays = h.add(executor_builder{});
  if (!h.release(leaves).granted) return "it may not leave";
  h.submit(job_builder{}.stage("s", 3));
  return counts_on(h, {leaves, stays});
}

std::string shares_of_equal_executors(const profile_rules& rules) {
  scheduler_harness h{under(rules)};
  const auto a = h.add(executor_builder{}.cores(4));
  const auto b = h.add(executor_builder{}.cores(4));
  h.submit(job_builder{}.stage("s", 4));
  return counts_on(h, {a, b});
}

std::string two_jobs_on_one_core(const profile_rules& rules) {
  scheduler_harness h{under(rules)};
  const auto e = h.add(executor_builder{});
  const auto first = h.submit(job_builder{"first"}.stage("a", 2).stage("b", 1));
  h.submit(job_builder{"second"}.stage("c", 1));
  std::string order;
  while (!h.attempts(e).empty()) {
    const auto running = h.attempts(e).at(0);
    order += h.progress(first).state != job_state::running ? "c" : running.stage == h.stage_of(first, 0) ? "a" : "b";
    h.succeed(running, {}, 1s);
  }
  return order;
}

/// Two tasks on an idle executor and on one that holds three leases already.
std::string one_pass(const profile_rules& rules) {
  scheduler_harness h{under(rules)};
  const auto busy = h.add(executor_builder{}.cores(6));
  h.submit(job_builder{}.stage("before", 3));
  const auto idle = h.add(executor_builder{}.cores(6));
  h.submit(job_builder{}.stage("two", 2));
  return counts_on(h, {busy, idle});
}

/// Two tasks beside an executor with three, and half as large a one without any.
std::string two_more(dag_scheduler::options options) {
  scheduler_harness h{options};
  const auto busy = h.add(executor_builder{}.cores(6));
  h.submit(job_builder{}.stage("before", 3));
  const auto idle = h.add(executor_builder{}.cores(3));
  h.submit(job_builder{}.stage("two", 2));
  return counts_on(h, {busy, idle});
}

std::string packed(const profile_rules& rules) {
  auto options = under(rules);
  options.placement = placement_policy::pack;
  return two_more(options);
}

std::string balanced(const profile_rules& rules) {
  auto options = under(rules);
  options.placement = placement_policy::balance;
  return two_more(options);
}

/// Two jobs of different pools on four cores: how many run of each after all slots came back once.
std::string pools_of_two_jobs(const profile_rules& rules) {
  auto options = under(rules);
  options.sharing = {sharing_mode::fair, {{"big", {sharing_mode::fifo, 3, 0}}}};
  scheduler_harness h{options};
  const auto e = h.add(executor_builder{}.cores(4));
  const auto first = h.submit(job_builder{}.in_pool("small").stage("a", 20));
  const auto second = h.submit(job_builder{}.in_pool("big").stage("b", 20));
  h.succeed_all(e);
  return count(h.progress(first).stages[0].running) + ", " + count(h.progress(second).stages[0].running);
}

std::string limits_of_a_fit(const profile_rules& rules) {
  std::string text;
  const std::vector<std::pair<const char*, const char*>> tasks{{"1", "0.5"}, {"1", "1"}, {"3", "0.5"}, {"4", "1"}};
  for (const auto& [cpus, gpu] : tasks) {
    scheduler_harness h{under(rules)};
    const auto profile = make_profile({{"cores", 4}, {"gpu", 2}}, {{"cpus", cpus}, {"gpu", gpu}});
    const auto e = h.add(executor_builder{}.started_for(profile));
    h.submit(job_builder{}.profile(profile).stage("s", 9).with(1));
    text += (text.empty() ? "" : ", ") + count(h.attempts(e).size());
  }
  return text;
}

std::string charged_by_its_own_cpus(const profile_rules& rules) {
  scheduler_harness h{under(rules)};
  const auto wide = make_profile({{"cores", 6}}, {{"cpus", "3"}});
  const auto e = h.add(executor_builder{}.started_for(wide));
  h.submit(job_builder{}.profile(wide).stage("s", 4).with(1));
  const auto& record = h.scheduler.pool()[h.scheduler.pool().find(e)];
  auto text = count(h.attempts(e).size()) + " run, " + to_string(record.book.free_cpus()) + " cpus free";
  h.succeed(h.attempts(e).at(0));
  text += "; " + count(h.attempts(e).size()) + " run";
  h.drain();
  return text + "; " + to_string(record.book.free_cpus()) + " cpus free";
}

std::string an_argument_that_is_too_large(const profile_rules&) {
  const auto made = *job_builder{}.stage("s", 1).make();
  auto job = made;
  auto arguments = std::make_shared<packed_column>();
  arguments->push_back(std::string(max_argument_size + 1, 'x'));
  job.stages[0].arguments = arguments;
  const auto ok = validate(job);
  return ok ? "accepted" : refused(ok.error());
}

/// How often a task may end in this way before its job fails; "on" where it goes on for long.
std::string ends_of(task_status status, const profile_rules& rules) {
  scheduler_harness h{under(rules)};
  const auto e = h.add(executor_builder{});
  const auto job = h.submit(job_builder{}.stage("s", 1));
  for (int ended = 1; ended <= 20; ++ended) {
    h.end(h.attempts(e).at(0), status);
    if (h.end_of(job)) return count(static_cast<std::size_t>(ended));
  }
  return "on";
}

std::string failures_of_one_task(const profile_rules& rules) { return ends_of(task_status::failed, rules); }
std::string kills_of_one_task(const profile_rules& rules) { return ends_of(task_status::killed, rules); }

std::string losses_that_are_nobody_s_fault(const profile_rules& rules) {
  scheduler_harness h{under(rules)};
  const auto job = h.submit(job_builder{}.stage("s", 1));
  for (int i = 0; i < 10; ++i) {
    const auto e = h.add(executor_builder{});
    h.lose(e, "it left", false);
    if (h.end_of(job)) return "failed";
  }
  return "on";
}

/// How many tasks of 20 run at once on four executors with 3 cores.
std::string on_four_of_three_cores(const char* cpus, const profile_rules& rules) {
  scheduler_harness h{under(rules)};
  const auto profile = make_profile({{"cores", 3}}, {{"cpus", cpus}});
  for (int i = 0; i < 4; ++i) h.add(executor_builder{}.started_for(profile));
  h.submit(job_builder{}.profile(profile).stage("s", 20).with(1));
  return count(h.attempts().size());
}
std::string single_cpus_on_four(const profile_rules& rules) { return on_four_of_three_cores("1", rules); }
std::string pairs_of_cpus_on_four(const profile_rules& rules) { return on_four_of_three_cores("2", rules); }

/// Of two tasks that prefer one of two hosts with a core each: how many run there and elsewhere, at first and after the
/// wait for one level.
std::string near_and_far(const profile_rules& rules) {
  scheduler_harness h{under(rules)};
  const auto shape = h.shape_of({});
  const auto near = h.add(executor_builder{}.host("near").shape(shape));
  const auto far = h.add(executor_builder{}.host("far").shape(shape));
  h.submit(job_builder{}.stage("s", 2).prefers({"near"}));
  const auto now = [&] { return count(h.attempts(near).size()) + " " + count(h.attempts(far).size()); };
  auto text = now();
  h.tick(std::chrono::milliseconds{2900});
  text += ", " + now();
  h.tick(std::chrono::milliseconds{200});
  return text + ", " + now();
}

dag_scheduler::options excluding(const profile_rules& rules) {
  auto options = under(rules);
  options.exclusion.enabled = true;
  return options;
}

/// All tasks of two fail there.
void exclude(scheduler_harness& h, executor_id e) {
  while (!h.attempts(e).empty())
    for (const auto& attempt : h.attempts(e)) h.fail(attempt, "broken");
}

std::string an_excluded_executor(const profile_rules& rules) {
  scheduler_harness h{excluding(rules)};
  const auto bad = h.add(executor_builder{}.cores(2));
  h.submit(job_builder{}.stage("s", 4).max_failures(9));
  exclude(h, bad);
  const auto good = h.add(executor_builder{}.cores(2));
  return counts_on(h, {bad, good});
}

/// What becomes of a stage whose only executor is excluded.
std::string nobody_left(const executor_builder& only, bool beside_another, const profile_rules& rules) {
  scheduler_harness h{excluding(rules)};
  const auto gpu = make_profile({{"cores", 2}, {"gpu", 2}}, {{"gpu", "1"}});
  const auto e = h.add(executor_builder{only}.started_for(gpu));
  if (beside_another) h.add(executor_builder{}.cores(8));
  const auto job = h.submit(job_builder{}.profile(gpu).stage("s", 4).with(1).max_failures(9));
  exclude(h, e);
  for (const auto& executor : h.scheduler.executors())
    if (executor.draining) return "given back";
  h.tick(119s);
  if (h.end_of(job)) return "failed too early";
  h.tick(1s);
  return h.end_of(job) ? h.end_of(job)->failure.message : "waits on";
}

std::string asked_for_and_idle(const profile_rules& rules) {
  return nobody_left(executor_builder{}.request(1), false, rules);
}
std::string started_by_hand(const profile_rules& rules) { return nobody_left({}, false, rules); }
std::string beside_another_profile_s(const profile_rules& rules) { return nobody_left({}, true, rules); }

const table scheduling_rows{
    "scheduling",
    {
        {"TS-1", "4 cores and 2 gpus, 3 tasks of 1 cpu and half a gpu", offers_of_an_executor,
         same("alpha: 1 cpus, gpu 0 and 0.5 free")},
        {"TS-2", "a leaving executor with 4 cores, one with 1", a_leaving_executor, same("0, 1")},
        {"TS-2", "4 tasks on two equal executors", shares_of_equal_executors, same("2, 2")},
        {"TS-2", "an executor on which two tasks failed, and one that came later", an_excluded_executor, same("0, 2")},
        {"TS-3", "two jobs, the first with two stages, on one core", two_jobs_on_one_core, same("aabc")},
        {"TS-3", "two tasks beside an executor with three", one_pass, differs("4, 1", "3, 2")},
        {"TS-3", "two jobs of pools with weights 1 and 3 on 4 cores", pools_of_two_jobs, same("1, 3")},
        {"TS-4", "1 cpu and 0.5 gpu, 1 and 1, 3 and 0.5, 4 and 1 on 4 cores and 2 gpus", limits_of_a_fit,
         same("4, 2, 1, 1")},
        {"TS-6", "tasks of 3 cpus on 6 cores", charged_by_its_own_cpus, same("2 run, 0 cpus free; 2 run; 6 cpus free")},
        {"TS-7", "an argument beyond the limit", an_argument_that_is_too_large, same("refused: …argument…")},
        {"TS-9", "two tasks that prefer one of two hosts, at first, after 2.9s and 3.1s", near_and_far,
         same("1 0, 1 0, 1 1")},
        {"TS-16", "4 executors of 3 cores, 1 cpu per task", single_cpus_on_four, same("12")},
        {"TS-16", "4 executors of 3 cores, 2 cpus per task", pairs_of_cpus_on_four, same("4")},
        {"TS-18", "the only executor that fits is excluded and idle", asked_for_and_idle, same("given back")},
        {"TS-18", "the same, started by hand", started_by_hand, same("…is excluded after failures…waited 120000ms…")},
        {"TS-19", "the same beside an executor of another profile", beside_another_profile_s,
         same("…is excluded after failures…waited 120000ms…")},
        {"TS-20", "two tasks, 3 of 6 cores busy and none of 3, packed", packed, same("5, 0")},
        {"TS-20", "the same, balanced", balanced, same("3, 2")},
        {"TS-17", "a task that always fails", failures_of_one_task, same("4")},
        {"TS-17", "a task that is always killed", kills_of_one_task, same("on")},
        {"TS-17", "executors that leave on purpose", losses_that_are_nobody_s_fault, same("on")},
    }};

} // namespace
} // namespace troupe::conformance
