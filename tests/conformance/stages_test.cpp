// Stages, and what becomes of them when inputs and executors are lost (DG); what events say of profiles (EV-3).

#include <troupe/tests/conformance/rule.hpp>
#include <troupe/tests/support/scheduler_harness.hpp>

namespace troupe::conformance {
namespace {

using namespace std::chrono_literals;
using testing::executor_builder;
using testing::job_builder;
using testing::make_profile;
using testing::scheduler_harness;

/// A job of map and reduce tasks on executors with one core each.
struct map_reduce {
  map_reduce(std::uint32_t maps, std::uint32_t reducers, const profile_rules& rules, int executors = 1,
             std::int64_t cores = 1)
    : map_reduce(maps, reducers, options_of(rules), executors, cores) {}
  map_reduce(std::uint32_t maps, std::uint32_t reducers, const dag_scheduler::options& options, int executors,
             std::int64_t cores)
    : h{options} {
    for (int i = 0; i < executors; ++i) all.push_back(h.add(executor_builder{}.cores(cores)));
    job = h.submit(job_builder{}.stage("map", maps).buckets(reducers).stage("reduce", reducers).reads(0));
  }

  static dag_scheduler::options options_of(const profile_rules& rules) {
    dag_scheduler::options options;
    options.matching = rules.matching;
    return options;
  }
  /// Ends all map attempts that wait or run, until none is left.
  void map() {
    while (!maps().empty()) h.succeed(maps().front());
  }
  std::vector<testing::fake_attempt> maps() { return h.attempts_of(job, 0); }
  std::vector<testing::fake_attempt> reducers() { return h.attempts_of(job, 1); }
  void miss(const testing::fake_attempt& reducer, partition_index partition, attempt_number attempt = 0) {
    h.fetch_fail(reducer, h.stage_of(job, 0), partition, attempt);
  }
  std::string state() const {
    const auto* end = h.end_of(job);
    if (!end) return "runs";
    return end->progress.state == job_state::succeeded ? "succeeded" : refused(end->failure);
  }

  scheduler_harness h;
  std::vector<executor_id> all;
  job_id job;
};

std::string number(std::size_t n) { return std::to_string(n); }

std::string profile_of_all_attempts(const profile_rules& rules) {
  scheduler_harness h{map_reduce::options_of(rules)};
  const auto wide = make_profile({{"cores", 2}}, {{"cpus", "2"}});
  const auto e = h.add(executor_builder{}.started_for(wide));
  const auto job =
      h.submit(job_builder{}.profile(wide).stage("map", 1).with(1).buckets(1).stage("reduce", 1).with(1).reads(0));
  h.succeed_all(e);
  h.fetch_fail(h.attempts_of(job, 1).at(0), h.stage_of(job, 0), 0);
  h.drain();
  std::string text;
  for (const auto& event : h.events<events::stage_submitted>())
    text +=
        (text.empty() ? "" : ", ") + event.name + " " + number(event.attempt) + " under " + number(event.profile.value);
  return text;
}

std::string children_wait(const profile_rules& rules) {
  map_reduce t{2, 2, rules, 1, 2};
  auto text = number(t.reducers().size());
  t.h.succeed(t.maps().at(0));
  text += ", " + number(t.reducers().size());
  t.h.succeed(t.maps().at(0));
  return text + ", " + number(t.reducers().size());
}

std::string complete_parents_are_left_alone(const profile_rules& rules) {
  map_reduce t{1, 2, rules, 2, 1};
  t.map();
  t.h.fail(t.reducers().at(0), "once");
  t.h.drain();
  return t.state() + ", map attempts " + number(t.h.progress(t.job).stages[0].attempt + 1);
}

std::string old_news_of_a_missing_input(const profile_rules& rules) {
  map_reduce t{2, 2, rules, 1, 2};
  t.map();
  const auto old = t.reducers();
  t.miss(old.at(0), 0);
  t.map();
  t.miss(old.at(1), 1); // of the reduce stage's attempt 0, when attempt 1 runs
  return number(t.maps().size()) + " map task again";
}

std::string many_missing_in_one_attempt(const profile_rules& rules) {
  map_reduce t{6, 6, rules, 6};
  t.map();
  const auto old = t.reducers();
  for (partition_index p = 0; p < 6; ++p) t.miss(old.at(p), p);
  t.h.drain();
  return t.state();
}

/// Every attempt of the reduce stage misses its input, but the one before `healed`.
std::string attempts_until_failure(int healed, const profile_rules& rules) {
  map_reduce t{1, 1, rules};
  int misses = 0;
  for (; misses < 20 && !t.h.end_of(t.job); ++misses) {
    t.map();
    if (misses == healed) {
      t.h.drain();
      break;
    }
    t.miss(t.reducers().at(0), 0, static_cast<attempt_number>(misses));
  }
  return t.state() + " after " + std::to_string(misses);
}

std::string attempts_in_a_row(const profile_rules& rules) { return attempts_until_failure(20, rules); }
std::string one_attempt_less(const profile_rules& rules) { return attempts_until_failure(3, rules); }

std::string only_what_is_missing_runs_again(const profile_rules& rules) {
  map_reduce t{4, 4, rules, 4};
  t.map();
  const auto reducers = t.reducers();
  t.h.succeed(reducers.at(0));
  t.miss(reducers.at(1), 3);
  const auto running = t.h.attempts_of(t.job, 1).size(); // two of the failed attempt go on
  const auto maps = t.maps().size();
  t.h.succeed(reducers.at(2)); // and count
  t.map();
  return number(maps) + " map task at once, " + number(running) + " reducers run on, then " +
         number(t.reducers().size()) + " left";
}

std::string what_is_missing_waits(const profile_rules& rules) {
  auto options = map_reduce::options_of(rules);
  options.resubmit_delay = 200ms;
  map_reduce t{4, 4, options, 4, 1};
  t.map();
  const auto reducers = t.reducers();
  t.h.succeed(reducers.at(0));
  t.miss(reducers.at(1), 3);
  auto text = number(t.maps().size()) + " map tasks at once";
  t.h.tick(199ms);
  text += ", " + number(t.maps().size()) + " after 199 ms";
  t.h.tick(1ms);
  text += ", " + number(t.maps().size()) + " after 200 ms";
  const auto running = t.h.attempts_of(t.job, 1).size(); // two of the failed attempt go on
  t.h.succeed(reducers.at(2));                           // and count
  t.map();
  return text + ", " + number(running) + " reducers run on, then " + number(t.reducers().size()) + " left";
}

std::string outputs_given_up(const profile_rules& rules) {
  map_reduce t{8, 1, rules, 1, 8};
  t.map();
  t.miss(t.reducers().at(0), 0);
  auto text = number(t.maps().size());
  t.map();
  t.miss(t.reducers().at(0), 1, rules.is_exact() ? 1 : 0); // which has been made again with the others, or has not
  return text + ", then " + number(t.maps().size());
}

std::string the_missing_output_is_forgotten(const profile_rules& rules) {
  map_reduce t{2, 1, rules, 2};
  t.map();
  t.miss(t.reducers().at(0), 1);
  std::string text;
  for (const auto& lost : t.h.events<events::map_output_lost>()) text += "output " + number(lost.partition) + " lost";
  t.h.drain();
  return text + ", " + t.state();
}

std::string late_news_after_resubmission(const profile_rules& rules) {
  map_reduce t{1, 2, rules, 1, 2};
  t.map();
  const auto old = t.reducers();
  t.miss(old.at(0), 0);
  t.map();
  t.miss(old.at(1), 0); // the output that it speaks of has been replaced
  const auto maps = t.maps().size();
  t.h.drain();
  return number(maps) + " map tasks again, " + t.state() + ", reduce attempts " +
         number(t.h.progress(t.job).stages[1].attempt + 1);
}

std::string outputs_lost_with_an_executor(const profile_rules& rules) {
  map_reduce t{4, 1, rules, 2};
  t.h.succeed_all(t.all[0], 20ms); // one map task each, then the next
  t.h.succeed_all(t.all[1], 20ms);
  t.h.lose(t.all[0]);
  t.h.drain(20ms);
  return number(t.h.events<events::map_output_lost>().size()) + " output lost, " + t.state();
}

std::string outputs_lost_at_the_end_of_the_map_stage(const profile_rules& rules) {
  map_reduce t{2, 1, rules, 2};
  const auto maps = t.maps();
  const auto first = t.h.executor_of(maps.at(0));
  t.h.succeed(maps.at(0));
  t.h.lose(first, "it left", false);
  t.h.succeed(t.maps().at(0));
  const auto again = t.maps().size();
  t.h.drain();
  return number(again) + " map task again, " + t.state() + ", failures " +
         number(t.h.progress(t.job).stages[0].failures);
}

std::string tasks_of_a_lost_executor(const profile_rules& rules) {
  scheduler_harness h{map_reduce::options_of(rules)};
  const auto lost = h.add(executor_builder{});
  const auto job = h.submit(job_builder{}.stage("s", 1));
  h.lose(lost);
  const auto next = h.add(executor_builder{});
  const auto again = h.attempts(next);
  return number(again.size()) + " task, attempt " + number(again.at(0).attempt) + ", " +
         (h.end_of(job) ? "ended" : "runs");
}

std::string profiles_in_events(const profile_rules& rules) {
  scheduler_harness h{map_reduce::options_of(rules)};
  const auto wide = make_profile({{"cores", 2}}, {{"cpus", "2"}});
  h.add(executor_builder{}.started_for(wide));
  h.submit(job_builder{}.profile(wide).stage("s", 1).with(1));
  const auto stage = h.events<events::stage_submitted>().at(0);
  const auto executor = h.events<events::executor_added>().at(0);
  return "stage under " + number(stage.profile.value) + ", executor with " + to_string(executor.info.profile);
}

const table stages_rows{
    "stages",
    {
        {"DG-1", "a stage that runs twice", profile_of_all_attempts,
         same("map 0 under 1, reduce 0 under 1, map 1 under 1, reduce 1 under 1")},
        {"DG-3", "reducers before, between and after two map tasks", children_wait, same("0, 0, 2")},
        {"DG-3", "a reducer that fails once", complete_parents_are_left_alone, same("succeeded, map attempts 1")},
        {"DG-5", "a missing input of attempt 0 while attempt 1 runs", old_news_of_a_missing_input,
         differs("0 map task again", "1 map task again")},
        {"DG-6", "six inputs missing in one attempt", many_missing_in_one_attempt, same("succeeded")},
        {"DG-6", "attempts that all miss their input", attempts_in_a_row, same("refused: …4… after 4")},
        {"DG-6", "three such attempts, then a good one", one_attempt_less, same("succeeded after 3")},
        {"DG-7", "one of four inputs missing for one of four reducers", only_what_is_missing_runs_again,
         in_compatible("1 map task at once, 2 reducers run on, then 2 left")},
        {"DG-7", "the same with the pause of a session under exact", what_is_missing_waits,
         in_exact("0 map tasks at once, 0 after 199 ms, 1 after 200 ms, 2 reducers run on, then 2 left")},
        {"DG-8", "output 1 of two cannot be had", the_missing_output_is_forgotten, same("output 1 lost, succeeded")},
        {"DG-9", "eight outputs on one executor, which does not serve one, and then another", outputs_given_up,
         differs("8, then 8", "1, then 8")},
        {"DG-10", "news of an output that was made again", late_news_after_resubmission,
         same("0 map tasks again, succeeded, reduce attempts 2")},
        {"DG-11", "an executor dies that keeps one of four outputs", outputs_lost_with_an_executor,
         same("1 output lost, succeeded")},
        {"DG-13", "an output is lost before the map stage ends", outputs_lost_at_the_end_of_the_map_stage,
         same("1 map task again, succeeded, failures 0")},
        {"DG-14", "an executor dies under a task", tasks_of_a_lost_executor, same("1 task, attempt 1, runs")},
        {"EV-3", "a stage and an executor of a profile", profiles_in_events,
         same("stage under 1, executor with executor: cores 2, memory 1g; task: cpus 2")},
    }};

} // namespace
} // namespace troupe::conformance
