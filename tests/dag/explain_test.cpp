// Why jobs wait, and that it is true.

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <random>
#include <sstream>

#include <troupe/tests/support/scheduler_harness.hpp>

namespace troupe::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

job_explanation explain(const scheduler_harness& h, job_id job) { return h.scheduler.explain(job, h.now).value(); }
explained_choice choice_of(const scheduler_harness& h, job_id job, std::uint32_t stage = 0) {
  return explain(h, job).stages.at(stage).task_sets.at(0).choices.at(0);
}
std::string text_of(const scheduler_harness& h, job_id job) { return to_text(explain(h, job)); }

resource_profile wants_gpu() { return make_profile({{"cores", 2}, {"gpu", 1}}, {{"gpu", "1"}}); }

TEST(explanations, count_for_each_clause_who_satisfies_it) {
  scheduler_harness h;
  h.answer = [](const executor_shape&) { return feasibility{false, false, "executors are started by hand", 0}; };
  h.add(executor_builder{}.cores(1));
  h.add(executor_builder{}.cores(4));
  h.add(executor_builder{}.cores(1).gpus(1).host("beta"));
  const auto job = h.submit(job_builder{}.profile(wants_gpu()).stage("train", 3).with(1));
  h.tick();
  const auto c = choice_of(h, job);
  EXPECT_EQ(c.executors, 3u);
  EXPECT_EQ(c.fit, 0u);
  std::map<std::string, std::uint32_t> clauses;
  for (const auto& clause : c.clauses) clauses[clause.clause] = clause.satisfied_by;
  EXPECT_EQ(clauses.at("cores 2"), 1u);
  EXPECT_EQ(clauses.at("gpu 1"), 1u);
  ASSERT_TRUE(c.nearest);
  EXPECT_THAT(c.nearest->lacks, SizeIs(1)) << "of the two that lack one thing each";
  EXPECT_THAT(c.hindrances, ElementsAre(explained_hindrance{hindrance::lacks, 3, ""}));
  EXPECT_THAT(c.edit, HasSubstr("1 executor fits then"));
  const auto text = text_of(h, job);
  EXPECT_THAT(text, AllOf(HasSubstr("3 tasks wait: stage 0 (train): no executor satisfies its profile"),
                          HasSubstr("3 executors, 0 fit, 0 of 0 slots free"), HasSubstr("3 are too small"),
                          HasSubstr("gpu 1: 1 executor has it"),
                          HasSubstr("allocator: none can be had now: executors are started by hand")));
  EXPECT_THAT(explain(h, job).stages[0].task_sets[0].waits,
              ElementsAre(explained_wait{"then its job fails, unless executors for it can be had",
                                         "troupe.scheduler.infeasible-timeout", duration{30s - 200ms}.count()}));
}

TEST(explanations, know_what_was_meant) {
  scheduler_harness h;
  h.answer = [](const executor_shape&) { return feasibility{false, false, "by hand", 0}; };
  h.add(executor_builder{}.cores(2).gpus(1));
  const auto job = h.submit(job_builder{}.profile(make_profile({{"gpus", 1}}, {{"gpus", "1"}})).stage("s", 1).with(1));
  EXPECT_EQ(choice_of(h, job).edit, "write gpu instead of gpus");
  EXPECT_THAT(h.progress(job).waiting_for, HasSubstr("nobody has gpus: did you mean gpu?"));
}

TEST(explanations, say_who_has_the_slots) {
  scheduler_harness h;
  h.add(executor_builder{}.cores(3));
  const auto a = h.submit(job_builder{}.stage("one", 2));
  const auto b = h.submit(job_builder{}.stage("first", 1).stage("second", 1).after(0));
  const auto job = h.submit(job_builder{}.stage("late", 1));
  const auto c = choice_of(h, job);
  EXPECT_THAT(c.holders, ElementsAre(explained_holder{a, 0, "one", 2}, explained_holder{b, 0, "first", 1}));
  EXPECT_THAT(c.hindrances, ElementsAre(explained_hindrance{hindrance::busy, 1, ""}));
  EXPECT_EQ(c.edit, "");
  EXPECT_THAT(text_of(h, job), HasSubstr("2 slots are taken by job 1 stage 0 (one)"));
  EXPECT_THAT(text_of(h, b),
              HasSubstr("stage 1 (second): waiting, 0 of 1 task done, 0 running, 1 pending; it waits for "
                        "stage 0 (first)"));
  h.cancel(a);
  EXPECT_THAT(choice_of(h, job).holders.front(), (explained_holder{{}, 0, "", 2})) << "until they have ended";
  h.drain();
  EXPECT_THAT(text_of(h, job), HasSubstr("job 3 (job): succeeded\nstage 0 ("));
  EXPECT_FALSE(h.scheduler.explain(job_id{99}, h.now));
}

TEST(explanations, tell_what_has_failed_while_the_job_runs_and_when_it_has_ended) {
  scheduler_harness h;
  const auto a = h.add(executor_builder{}.cores(1).host("alpha"));
  const auto job = h.submit(job_builder{}.max_failures(3).stage("map", 1).stage("last", 2).after(0));
  h.succeed(h.attempts(a).at(0));
  const auto first = h.attempts(a).at(0);
  h.fail(first, "no such file", "one\ntwo\n");
  const explained_failure failed{
      1, false, first.partition, 0, a, "alpha", "no such file\nits standard error:\none\ntwo\n"};
  EXPECT_THAT(explain(h, job).failures, ElementsAre(failed));
  h.lose(a, "killed by signal 9");
  const auto b = h.add(executor_builder{}.cores(1).host("beta"));
  while (!h.end_of(job)) h.fail(h.attempts(b).at(0), "again");
  const auto all = explain(h, job);
  EXPECT_EQ(all.state, job_state::failed);
  EXPECT_EQ(all.reason, h.end_of(job)->failure.message);
  ASSERT_THAT(all.stages, SizeIs(2));
  EXPECT_EQ(all.stages[1].name, "last");
  EXPECT_EQ(all.failures.front(), failed);
  EXPECT_THAT(all.failures, Contains(explained_failure{0, true, 0, 0, a, "alpha", "killed by signal 9"}));
  EXPECT_EQ(all.failures.back().why, "again");
  EXPECT_THAT(text_of(h, job), AllOf(HasSubstr("failed: stage 1 (last), partition "),
                                     HasSubstr(", attempt 0 on executor " + std::to_string(a.value) +
                                               " (alpha): no such file\n    its standard error:\n    one\n    two\n"),
                                     HasSubstr("lost: executor " + std::to_string(a.value) + " (alpha): killed by")));
}

TEST(explanations, keep_the_first_and_the_last_failures) {
  failure_notes notes;
  for (std::uint32_t p = 0; p < 100; ++p) notes.add({0, false, p, 0, {}, "", std::string(p, 'x')});
  const auto all = notes.all();
  ASSERT_THAT(all, SizeIs(40));
  EXPECT_EQ(notes.left_out(), 60u);
  EXPECT_EQ(all[19].partition, 19u);
  EXPECT_EQ(all[20].partition, 80u);
  EXPECT_EQ(all[39].partition, 99u);
  const auto half = failure_notes::longest / 2;
  const std::string part(half - 1, 'x');
  notes.add({0, false, 0, 0, {}, "", part + "ääää" + part});
  EXPECT_EQ(notes.all().back().why, part + "\n[8 bytes are left out here]\n" + part) << "no half of a character";
  job_explanation told{job_id{1}, "job", job_state::failed, {}, {}, all, 60};
  EXPECT_THAT(to_text(told), HasSubstr(": " + std::string(99, 'x') + "\nand 60 failures of the job between"));
}

TEST(explanations, tell_what_is_kept_and_for_how_long) {
  scheduler_harness h;
  h.add(executor_builder{}.cores(2).gpus(1));
  const auto gpu_job = h.submit(job_builder{}.profile(wants_gpu()).stage("train", 5).with(1));
  const auto job = h.submit(job_builder{}.stage("plain", 1));
  h.tick(1s);
  const auto set = explain(h, job).stages[0].task_sets[0];
  EXPECT_THAT(set.choices[0].hindrances, ElementsAre(explained_hindrance{hindrance::kept, 1, "gpu"}));
  EXPECT_THAT(set.choices[0].edit, HasSubstr("troupe.scheduler.scarce-resource-wait"));
  EXPECT_THAT(set.waits, ElementsAre(explained_wait{"then it takes executors that are kept for others",
                                                    "troupe.scheduler.scarce-resource-wait", duration{2s}.count()}));
  EXPECT_THAT(text_of(h, job), HasSubstr("in 2000ms: then it takes executors that are kept for others"));
  h.cancel(gpu_job);
  h.drain();
}

TEST(explanations, tell_of_waits_for_locality) {
  scheduler_harness h;
  const auto near = h.add(executor_builder{}.cores(1).host("alpha"));
  h.add(executor_builder{}.cores(1).host("beta"));
  const auto job = h.submit(job_builder{}.stage("near", 3).prefers({"alpha"}));
  EXPECT_THAT(h.attempts(near), SizeIs(1));
  h.tick(1s);
  const auto set = explain(h, job).stages[0].task_sets[0];
  EXPECT_THAT(set.waits, ElementsAre(explained_wait{"then its tasks run anywhere", "troupe.locality.host-wait",
                                                    duration{2s}.count()}));
  EXPECT_THAT(set.choices[0].edit, HasSubstr("troupe.locality.host-wait"));
  EXPECT_EQ(set.choices[0].free_slots, 1);
  h.drain();
}

TEST(explanations, tell_of_refusals_and_exclusions) {
  dag_scheduler::options o;
  o.exclusion.enabled = true;
  o.exclusion.max_failed_tasks_per_executor = 1;
  scheduler_harness h{o};
  const auto e = h.add(executor_builder{}.cores(1));
  h.executor(e).refuse_batches("no space left");
  const auto job = h.submit(job_builder{}.stage("s", 2));
  h.deliver_refusals(e);
  h.executor(e).refuse_batches({});
  EXPECT_THAT(choice_of(h, job).hindrances,
              ElementsAre(explained_hindrance{hindrance::refused, 1, "for 1000ms: no space left"}));
  h.tick(1s);
  h.fail(h.attempts(e).front(), "broken");
  const auto set = explain(h, job).stages[0].task_sets[0];
  ASSERT_THAT(set.choices[0].hindrances, SizeIs(1));
  EXPECT_EQ(set.choices[0].hindrances[0].what, hindrance::excluded);
  EXPECT_THAT(set.choices[0].hindrances[0].detail, HasSubstr("broken"));
  EXPECT_THAT(set.waits,
              ElementsAre(explained_wait{"then its job fails: nobody is left for it",
                                         "troupe.exclude-on-failure.unschedulable-timeout", duration{120s}.count()}));
}

TEST(explanations, tell_what_the_allocator_does) {
  scheduler_harness h;
  auto gpu = wants_gpu();
  gpu.alternatives.push_back(make_profile({{"cores", 4}}, {{"cpus", "4"}}));
  const auto job = h.submit(job_builder{}.profile(gpu).stage("train", 3).with(1));
  h.tick();
  const auto shape = h.loads.back().loads.front().shape;
  EXPECT_EQ(choice_of(h, job).allocation, "");
  h.scheduler.on_allocation({{shape, 1, 2, allocation_obstacle::room}});
  EXPECT_THAT(choice_of(h, job).allocation, HasSubstr("1 executor is being started; 2 more are wanted, but there is no "
                                                      "room for them"));
  h.scheduler.on_launch_failed(shape, "exit code 3");
  EXPECT_THAT(choice_of(h, job).allocation, HasSubstr("did not come: exit code 3"));
  h.scheduler.on_allocation({{shape, 0, 1, allocation_obstacle::limit}});
  EXPECT_THAT(choice_of(h, job).allocation,
              AllOf(HasSubstr("1 more is wanted, but there are as many executors"), Not(HasSubstr("being started"))));
  const auto choices = explain(h, job).stages[0].task_sets[0].choices;
  ASSERT_THAT(choices, SizeIs(2));
  EXPECT_TRUE(choices[0].asked_for);
  EXPECT_FALSE(choices[1].asked_for);
  EXPECT_THAT(text_of(h, job),
              AllOf(HasSubstr("as alternative, profile"), HasSubstr("for which no executor is asked yet"),
                    HasSubstr("then executors are asked for the next alternative")));
}

TEST(explanations, tell_of_gangs) {
  scheduler_harness h;
  h.answer = [](const executor_shape&) { return feasibility{false, false, "started by hand", 0}; };
  h.add(executor_builder{}.cores(2));
  const auto busy = h.submit(job_builder{}.stage("busy", 2));
  const auto gang = h.submit(job_builder{}.stage("gang", 2).barrier());
  const auto plain = h.submit(job_builder{}.stage("plain", 1));
  EXPECT_THAT(
      choice_of(h, plain).hindrances,
      ElementsAre(explained_hindrance{hindrance::reserved, 1, "a barrier stage gathers executors: stage 0 of job 2"}));
  const auto large = h.submit(job_builder{}.stage("large", 5).barrier());
  EXPECT_EQ(choice_of(h, large).edit, "make at most 2 partitions: so many tasks run at once on what is there");
  h.cancel(large);
  h.drain();
  for (const auto job : {busy, gang, plain}) EXPECT_EQ(h.progress(job).state, job_state::succeeded);
}

TEST(explanations, name_the_conditions_of_task_sets_of_their_own) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.cores(2).memory(std::int64_t{1} << 30));
  auto growing = make_profile({}, {{"memory", "536870912"}});
  growing.memory_ceiling = std::int64_t{4} << 30;
  const auto job = h.submit(job_builder{}.profile(growing).stage("s", 1).with(1));
  for (int i = 0; i < 2; ++i) {
    task_failure why;
    why.cause = failure_cause::memory_limit;
    h.end(h.attempts(e).front(), task_status::failed, why);
    if (h.attempts(e).empty()) break;
  }
  const auto set = explain(h, job).stages[0].task_sets.at(0);
  EXPECT_THAT(set.conditions, HasSubstr("with more memory, step"));
}

demand_index demand_of(const executor_pool& pool, profile_id profile) {
  for (demand_index d = 0;; ++d)
    if (pool.demand_of(d).profile == profile) return d;
}
const resource_profile& content_of(const executor_pool& pool, profile_id profile) {
  return *pool.demand_of(demand_of(pool, profile)).content;
}

/// Executors that are large enough when the advice is followed: `leave gpu out: …`, `ask for cores 1: …`.
int fitting_after(const executor_pool& pool, resource_profile profile, const std::string& advice) {
  std::istringstream words{advice};
  std::string verb;
  std::string name;
  words >> verb;
  const bool leave = verb == "leave";
  if (!leave) words >> name; // for
  words >> name;
  if (leave) {
    profile.executor.erase(name);
    profile.task.erase(name);
  } else {
    std::int64_t amount = 0;
    words >> amount;
    profile.executor[name].amount = amount;
    const auto task = name == "cores" ? "cpus" : name;
    if (profile.task.contains(task)) profile.task[task] = std::min(profile.task[task], share::whole(amount));
  }
  int fit = 0;
  for (const auto& [id, e] : pool.all()) fit += satisfies(pool[e].info.capacity, profile) ? 1 : 0;
  return fit;
}

/// What is said and what placement does never disagree, whatever executors, profiles and jobs there are.
TEST(explanations, agree_with_placement_for_random_clusters) {
  int edits = 0;
  for (unsigned seed = 1; seed <= 300; ++seed) {
    std::mt19937 random{seed};
    const auto below = [&](unsigned n) { return static_cast<std::int64_t>(random() % n); };
    dag_scheduler::options o;
    o.matching = below(3) == 0 ? profile_matching::exact : profile_matching::compatible;
    o.scarce_resource_wait = below(2) == 0 ? duration::zero() : duration{3s};
    o.exclusion.enabled = below(2) == 0;
    o.exclusion.max_failed_tasks_per_executor = 1;
    scheduler_harness h{o};
    h.answer = [](const executor_shape&) { return feasibility{false, false, "by hand", 0}; };
    std::vector<resource_profile> profiles{make_profile({}, {}), make_profile({{"cores", 2}}, {{"cpus", "2"}}),
                                           make_profile({{"gpu", 1}}, {{"gpu", "0.5"}}),
                                           make_profile({{"gpu", 2}, {"cores", 3}}, {{"gpu", "2"}})};
    std::vector<executor_id> all;
    for (std::int64_t i = below(6); i >= 0; --i) {
      executor_builder what;
      if (o.matching == profile_matching::exact)
        what.started_for(profiles[static_cast<std::size_t>(below(4))]);
      else
        what.cores(1 + below(4)).gpus(below(3));
      if (below(6) == 0) what.commands_only();
      all.push_back(h.add(what.host(below(2) == 0 ? "alpha" : "beta")));
    }
    std::vector<job_id> jobs;
    for (int i = 0; i < 4; ++i) {
      job_builder job;
      for (std::size_t p = 1; p < profiles.size(); ++p) job.profile(profiles[p]);
      job.max_failures(50)
          .stage("s", static_cast<std::uint32_t>(1 + below(5)))
          .with(static_cast<std::uint32_t>(below(4)));
      if (below(3) == 0) job.barrier();
      if (below(4) == 0) job.prefers({"alpha"});
      jobs.push_back(h.submit(job));
      for (std::int64_t k = below(4); k > 0 && !h.attempts().empty(); --k) {
        const auto attempts = h.attempts();
        const auto& a = attempts[static_cast<std::size_t>(below(static_cast<unsigned>(attempts.size())))];
        if (a.doomed)
          h.end(a, task_status::killed);
        else if (below(3) == 0)
          h.fail(a, "bad luck");
        else
          h.succeed(a);
      }
      h.tick(std::chrono::milliseconds{below(4000)});
    }
    const auto& pool = h.scheduler.pool();
    for (const auto job : jobs) {
      const auto why = h.scheduler.explain(job, h.now);
      ASSERT_TRUE(why);
      for (const auto& stage : why->stages)
        for (const auto& set : stage.task_sets)
          for (const auto& c : set.choices) {
            const auto context = "seed " + std::to_string(seed) + "\n" + to_text(*why);
            std::uint32_t counted = 0;
            for (const auto& entry : c.hindrances) counted += entry.executors;
            ASSERT_EQ(counted, pool.all().size()) << context;
            const bool room = std::any_of(c.hindrances.begin(), c.hindrances.end(),
                                          [](const auto& entry) { return entry.what == hindrance::none; });
            ASSERT_EQ(room, c.free_slots > 0) << context;
            if (room && stage.state == stage_state::running) {
              const bool waits_for_more = c.free_slots < static_cast<std::int64_t>(stage.tasks); // a gang
              ASSERT_TRUE(waits_for_more || !set.waits.empty()) << "there is room, and nobody takes it\n" << context;
            }
            const auto& content = content_of(pool, c.profile);
            std::uint32_t fit = 0;
            for (const auto& [id, e] : pool.all())
              fit += is_unfit(pool.hindrance_of(e, demand_of(pool, c.profile))) ? 0u : 1u;
            ASSERT_EQ(fit, c.fit) << context;
            for (const auto& clause : c.clauses) {
              ASSERT_LE(clause.satisfied_by, c.executors) << context;
              ASSERT_GE(clause.satisfied_by, c.fit) << context;
            }
            if (c.fit == 0 && !c.edit.empty()) {
              ASSERT_GT(fitting_after(pool, content, c.edit), 0) << "what would help does not\n" << context;
              ++edits;
            }
            ASSERT_EQ(c.nearest.has_value(), c.fit == 0 && std::any_of(pool.all().begin(), pool.all().end(),
                                                                       [&](const auto& x) {
                                                                         return pool[x.second].status ==
                                                                                executor_record::state::active;
                                                                       }))
                << context;
          }
    }
    for (const auto job : jobs) h.cancel(job);
    for (const auto& a : h.attempts()) h.end(a, task_status::killed);
    h.check_idle();
  }
  EXPECT_GT(edits, 20);
}

} // namespace
} // namespace troupe::testing
