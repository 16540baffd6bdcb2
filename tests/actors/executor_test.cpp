// The executor actor with a driver that only listens. It has threads of its own, so time is real here.

#include <atomic>
#include <condition_variable>
#include <fstream>
#include <functional>
#include <future>
#include <iterator>
#include <mutex>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/actors/executor.hpp>
#include <troupe/launcher/node_system.hpp>
#include <troupe/messages/network.hpp>
#include <troupe/runtime/execution/function_table.hpp>
#include <troupe/tests/actors/embedded_application.hpp>
#include <troupe/tests/actors/fakes.hpp>
#include <troupe/tests/support/process_probe.hpp>
#include <troupe/tests/support/test_cluster.hpp>

namespace troupe::actor_tests {
namespace {

using ::testing::HasSubstr;

/// What the driver and the scheduler of the test hear; any thread.
struct heard_by_both {
  std::mutex mutex;
  std::vector<boxed<executor_report>> reports;
  std::vector<boxed<goodbye>> goodbyes;
  std::vector<boxed<executor_heartbeat>> beats;
  std::vector<std::string> order; ///< `report`, `goodbye`, as they came
  executor_info info;
  std::function<void()> before_goodbye_is_answered = [] {};

  template <class T>
  std::size_t count(std::vector<T> heard_by_both::*list) {
    std::lock_guard lock{mutex};
    return (this->*list).size();
  }
};

caf::error no() { return to_caf_error(make_error(ec::refused, "not here")); }

dag_scheduler_actor spawn_scheduler(caf::actor_system& system, std::shared_ptr<heard_by_both> heard) {
  return system.spawn(
      [heard](stateful_pointer<dag_scheduler_actor, no_state> self) -> dag_scheduler_actor::behavior_type {
        harden(self, {});
        return {
            [heard](const boxed<executor_report>& report) {
              std::lock_guard lock{heard->mutex};
              heard->reports.push_back(report);
              heard->order.emplace_back("report");
            },
            [](const boxed<release_request>&) -> caf::result<boxed<release_answer>> { return no(); },
            [](const boxed<launch_report>&) {},
            [](const boxed<allocation_report>&) {},
            [](const boxed<event_batch>&) {},
        };
      });
}

driver_actor spawn_door(caf::actor_system& system, std::shared_ptr<heard_by_both> heard, dag_scheduler_actor scheduler,
                        const session_secret& secret) {
  auto desk = std::make_shared<hello_desk>(cluster_name, "session-of-tests", secret);
  return system.spawn([=](stateful_pointer<driver_actor, no_state> self) -> driver_actor::behavior_type {
    harden(self, {});
    return {
        [=](const boxed<hello>& from) -> caf::result<boxed<hello_challenge>> {
          auto challenge = desk->challenge(*from, now_of(self));
          if (!challenge) return to_caf_error(challenge.error());
          return box(std::move(*challenge));
        },
        [=](const boxed<executor_registration>& registration,
            const executor_actor&) -> caf::result<boxed<welcome>, dag_scheduler_actor> {
          auto promise = self->make_response_promise<boxed<welcome>, dag_scheduler_actor>();
          if (auto good = desk->check(registration->proof, peer_role::executor, now_of(self)); !good) {
            promise.deliver(to_caf_error(good.error()));
            return promise;
          }
          {
            std::lock_guard lock{heard->mutex};
            heard->info = registration->info;
          }
          promise.deliver(box(welcome{"session-of-tests", executor_id{7}, 50'000'000, 7'200'000'000'000}), scheduler);
          return promise;
        },
        [](const boxed<peer_registration>&, const client_actor&) -> caf::result<boxed<welcome>> { return no(); },
        [=](const boxed<peer_registration>&) -> caf::result<boxed<welcome>, dag_scheduler_actor> {
          auto promise = self->make_response_promise<boxed<welcome>, dag_scheduler_actor>();
          promise.deliver(no());
          return promise;
        },
        [](const allocator_actor&, const resource_profile_manager_actor&) -> caf::result<boxed<acknowledged>> {
          return no();
        },
        [](const boxed<job_submission>&, const client_actor&) -> caf::result<boxed<job_accepted>> { return no(); },
        [](const boxed<cancel_job>&) -> caf::result<boxed<acknowledged>> { return no(); },
        [](const boxed<cancel_stage>&) -> caf::result<boxed<acknowledged>> { return no(); },
        [](const boxed<cancel_group>&) -> caf::result<boxed<cancelled_jobs>> { return no(); },
        [](const boxed<release_results>&) {},
        [](const boxed<withdraw_broadcast>&) {},
        [](const boxed<status_query>&) -> caf::result<boxed<cluster_status>> { return no(); },
        [](const boxed<explain_query>&) -> caf::result<boxed<job_explanation>> { return no(); },
        [](const boxed<placement_query>&) -> caf::result<boxed<placement_answer>> { return no(); },
        [heard](const boxed<goodbye>& leaving) {
          {
            std::lock_guard lock{heard->mutex};
            heard->goodbyes.push_back(leaving);
            heard->order.emplace_back("goodbye");
          }
          heard->before_goodbye_is_answered();
          return box(acknowledged{});
        },
        [](const boxed<subscribe_events>&, const client_actor&) {},
        [heard](const boxed<executor_heartbeat>& beat) {
          std::lock_guard lock{heard->mutex};
          heard->beats.push_back(beat);
        },
        [](const boxed<stop_session>&) { return box(acknowledged{}); },
    };
  });
}

std::string answer_42(task_context&, std::string_view, std::string_view) { return "42"; }
constexpr auto answer_task = task<"actors-answer", answer_42>;

std::string gathers(task_context& context, std::string_view, std::string_view) {
  return context.all_gather("mine").front();
}
constexpr auto gather_task = task<"actors-gather", gathers>;

closed_door door_of_tasks;
std::string waits(task_context&, std::string_view, std::string_view) {
  door_of_tasks.pass();
  return {};
}
constexpr auto waiting_task = task<"actors-wait", waits>;

class executor : public ::testing::Test {
protected:
  static constexpr incarnation epoch = 99;

  void SetUp() override { join(secret); }
  void TearDown() override {
    door_of_tasks.open();
    leave();
    shut_down(door);
    shut_down(scheduler);
  }

  /// Ends the executor.
  void leave() {
    beating = false;
    if (pulse.joinable()) pulse.join();
    if (tested && !ended()) shut_down(tested);
    EXPECT_TRUE(testing::wait_until([&] { return ended(); })) << "the executor never ends";
    tested = nullptr;
  }

  /// Starts the executor with this secret, and the driver's signs of life.
  void join(const session_secret& own) {
    executor_config config;
    config.driver = door;
    config.info = testing::executor_builder{}.cores(2).make({}, epoch);
    config.info.native = true;
    config.info.in_process = in_process;
    config.info.build_id = "build";
    config.loggers = [sink = lines](std::string_view part) {
      return std::make_shared<spdlog::logger>(std::string{part}, sink);
    };
    config.cluster_id = cluster_name;
    config.secret = std::make_shared<const session_secret>(own);
    config.blocks = blocks;
    config.runner.attempts_directories = {files.path()};
    config.runner.broadcasts = &broadcasts;
    config.runner.shuffles = &shuffles;
    config.driver_timeout = driver_timeout;
    config.abandon_timeout = abandon_timeout;
    config.shutdown_grace = 500ms;
    config.tick_interval = 10ms;
    config.on_admitted = [this](executor_id id) { admitted_as = id.value; };
    config.clear_up = [this] { cleared = true; };
    config.on_end = [this](const error& why, bool clean) {
      std::lock_guard lock{mutex};
      end = {why, clean};
    };
    tested = spawn_executor(system, std::move(config));
    pulse = std::thread{[this] {
      caf::scoped_actor self{system};
      for (std::uint64_t n = 1; beating; ++n) {
        const auto number = last_heard();
        tell(self, tested, box(driver_heartbeat{n, number}));
        said = number;
        testing::detail::pause_before_look(12);
      }
    }};
  }
  /// Number of the executor's last heartbeat.
  std::uint64_t last_heard() {
    std::lock_guard lock{heard->mutex};
    return heard->beats.empty() ? 0 : heard->beats.back()->number;
  }
  bool await_admission() {
    return testing::wait_until([&] { return admitted_as != 0; });
  }
  bool ended() {
    std::lock_guard lock{mutex};
    return end.has_value();
  }
  std::pair<error, bool> how_it_ended() {
    EXPECT_TRUE(testing::wait_until([&] { return ended(); }));
    std::lock_guard lock{mutex};
    return end.value_or(std::pair{make_error(ec::internal, "it did not end"), false});
  }

  /// One lease of one core, the stage, and `count` tasks of it.
  /// @param function of the tasks, in the table of functions
  executor_orders work(std::uint64_t sequence, std::uint32_t count,
                       std::uint32_t function = decltype(answer_task)::index()) {
    executor_orders orders;
    orders.epoch = epoch;
    orders.sequence = sequence;
    lease_grant grant;
    grant.lease = lease_id{sequence};
    grant.profile = std::make_shared<const resource_profile>(testing::default_test_profile());
    grant.holding.cpus = grant.profile->task_amount("cpus");
    orders.grants.push_back(grant);
    stage_install stage;
    stage.stage = stage_id{sequence};
    stage.job = job_id{1};
    stage.tasks = count;
    native_program program;
    program.build_id = "build";
    program.operations.push_back({function, {}});
    stage.program = std::make_shared<const std::variant<native_program, command_program>>(std::move(program));
    orders.installs.push_back(stage);
    task_batch batch;
    batch.stage = stage.stage;
    batch.lease = grant.lease;
    batch.count = count;
    orders.batches.push_back(batch);
    return orders;
  }
  void order(const executor_orders& orders) {
    caf::scoped_actor self{system};
    tell(self, tested, box(orders));
  }
  std::size_t outcomes() {
    std::lock_guard lock{heard->mutex};
    std::size_t n = 0;
    for (const auto& report : heard->reports)
      for (const auto& batch : report->outcomes) n += batch->count;
    return n;
  }
  std::vector<barrier_arrival> arrivals() {
    std::lock_guard lock{heard->mutex};
    std::vector<barrier_arrival> all;
    for (const auto& report : heard->reports) all.insert(all.end(), report->arrivals.begin(), report->arrivals.end());
    return all;
  }
  std::vector<refusal> refusals() {
    std::lock_guard lock{heard->mutex};
    std::vector<refusal> all;
    for (const auto& report : heard->reports) all.insert(all.end(), report->refusals.begin(), report->refusals.end());
    return all;
  }

  const session_secret secret = session_secret::generate();
  testing::temporary_directory files;
  node_config caf_config{true};
  caf::actor_system system{caf_config};
  std::shared_ptr<heard_by_both> heard = std::make_shared<heard_by_both>();
  dag_scheduler_actor scheduler = spawn_scheduler(system, heard);
  driver_actor door = spawn_door(system, heard, scheduler, secret);
  local_executor_actor tested;
  std::atomic<std::uint64_t> admitted_as = 0;
  /// Has no inputs, and counts what it is told to forget.
  struct no_shuffles : shuffle_source {
    void read(const shuffle_input&, std::uint32_t, const std::function<void(std::string_view)>&) override {}
    void read_partition(const partition_place&, std::uint32_t, const std::function<void(std::string_view)>&) override {}
    void forget(executor_id executor) override { forgotten = executor.value; }
    std::atomic<std::uint64_t> forgotten = 0;
  };
  no_shuffles shuffles;
  /// Has none, and keeps what it is told to drop.
  struct no_broadcasts : broadcast_source {
    std::shared_ptr<const void> get(const broadcast_reference&, std::type_index, const decoder&) override {
      return nullptr;
    }
    void drop(broadcast_id id) override { dropped = id.number; }
    std::atomic<std::uint64_t> dropped = 0;
  };
  no_broadcasts broadcasts;
  std::shared_ptr<block_store> blocks = std::make_shared<block_store>(block_store::options{{files.path()}, 1 << 20});
  std::shared_ptr<kept_lines> lines = std::make_shared<kept_lines>();
  duration driver_timeout = std::chrono::hours{1};
  duration abandon_timeout = std::chrono::hours{1};
  bool in_process = false;
  std::atomic<bool> cleared = false;
  std::atomic<bool> beating = true;
  std::atomic<std::uint64_t> said = 0; ///< the last heartbeat of the executor that the driver has said to have heard
  std::thread pulse;
  std::mutex mutex;
  std::optional<std::pair<error, bool>> end;
};

TEST_F(executor, joins_beats_and_runs_what_it_is_told) {
  ASSERT_TRUE(await_admission());
  EXPECT_EQ(admitted_as, 7u);
  EXPECT_TRUE(testing::wait_until([&] { return heard->count(&heard_by_both::beats) >= 3; }));
  order(work(1, 5));
  ASSERT_TRUE(testing::wait_until([&] { return outcomes() == 5; }));
  std::lock_guard lock{heard->mutex};
  EXPECT_EQ(heard->reports.front()->executor, executor_id{7});
  EXPECT_EQ(heard->reports.front()->epoch, epoch);
  EXPECT_EQ(heard->reports.front()->orders_seen, 1u);
  for (std::size_t i = 1; i < heard->beats.size(); ++i) EXPECT_LT(heard->beats[i - 1]->number, heard->beats[i]->number);
}

TEST_F(executor, waits_no_longer_for_the_blocks_of_who_is_gone) {
  ASSERT_TRUE(await_admission());
  auto orders = work(1, 1);
  orders.gone = {executor_id{12}};
  order(orders);
  EXPECT_TRUE(testing::wait_until([&] { return shuffles.forgotten == 12; }));
}

TEST_F(executor, drops_broadcasts_that_are_needed_no_longer) {
  ASSERT_TRUE(await_admission());
  auto orders = work(1, 1);
  orders.withdrawn = {{7, 3}};
  order(orders);
  EXPECT_TRUE(testing::wait_until([&] { return broadcasts.dropped == 3; }));
}

TEST_F(executor, drops_what_was_read) {
  for (const attempt_number attempt : {0u, 1u})
    ASSERT_TRUE(blocks->put(output_key({1}, 0, attempt), block_content::of("a text", {})));
  ASSERT_TRUE(await_admission());
  auto orders = work(1, 1);
  orders.consumed = {{stage_id{1}, 0, 1, 0}};
  order(orders);
  EXPECT_TRUE(testing::wait_until([&] { return !blocks->get(output_key({1}, 0, 1), 0); }));
  EXPECT_TRUE(blocks->get(output_key({1}, 0, 0), 0)) << "of another attempt";
}

TEST_F(executor, drops_kept_partitions_that_others_have) {
  for (const partition_index partition : {0u, 1u})
    ASSERT_TRUE(blocks->put(cached_key({1}, partition), block_content::of("a text", {})));
  ASSERT_TRUE(await_admission());
  auto orders = work(1, 1);
  orders.surplus = {{cache_id{1}, 1}};
  order(orders);
  EXPECT_TRUE(testing::wait_until([&] { return !blocks->get(cached_key({1}, 1), 0); }));
  EXPECT_TRUE(blocks->get(cached_key({1}, 0), 0));
}

TEST_F(executor, ignores_repeated_orders_and_those_of_another_incarnation) {
  ASSERT_TRUE(await_admission());
  order(work(1, 3));
  order(work(1, 3));
  auto foreign = work(2, 3);
  foreign.epoch = epoch - 1;
  order(foreign);
  order(work(2, 4));
  ASSERT_TRUE(testing::wait_until([&] { return outcomes() >= 7; }));
  EXPECT_EQ(outcomes(), 7u);
}

TEST_F(executor, refuses_what_its_ledger_does_not_give) {
  ASSERT_TRUE(await_admission());
  order(work(1, 1));
  order(work(2, 1));
  order(work(3, 1)); // a third core
  ASSERT_TRUE(testing::wait_until([&] { return refusals().size() >= 2; }));
  const auto all = refusals();
  EXPECT_EQ(all[0].lease, lease_id{3});
  EXPECT_EQ(all[0].stage, stage_id{}) << "the grant itself";
  EXPECT_EQ(all[1].stage, stage_id{3}) << "and the task that was to run under it";
  EXPECT_EQ(all[1].partitions, std::vector<partition_index>{0});
}

TEST_F(executor, refuses_a_stage_of_another_build) {
  ASSERT_TRUE(await_admission());
  auto orders = work(1, 2);
  native_program program;
  program.build_id = "another";
  program.operations.push_back({0, {}});
  orders.installs[0].program = std::make_shared<const std::variant<native_program, command_program>>(program);
  order(orders);
  ASSERT_TRUE(testing::wait_until([&] { return !refusals().empty(); }));
  EXPECT_TRUE(refusals()[0].build_mismatch);
  EXPECT_THAT(refusals()[0].reason, HasSubstr("another"));
}

TEST_F(executor, reports_who_waits_for_its_gang_and_lets_it_go_on) {
  ASSERT_TRUE(await_admission());
  auto orders = work(1, 1);
  native_program program{"build", {{decltype(gather_task)::index(), {}}}};
  orders.installs[0].program = std::make_shared<const std::variant<native_program, command_program>>(program);
  packed_column texts;
  texts.push_back("everybody's");
  orders.installs[0].gang = std::make_shared<const packed_column>(texts);
  order(orders);
  ASSERT_TRUE(testing::wait_until([&] { return !arrivals().empty(); }));
  EXPECT_EQ(arrivals().front(), (barrier_arrival{stage_id{1}, 0, 0, 0, 0, sync_kind::all_gather, "mine"}));
  executor_orders release;
  release.epoch = epoch;
  release.sequence = 2;
  release.barriers = {{stage_id{1}, 0, 0, {0}, std::make_shared<const packed_column>(texts), ""}};
  order(release);
  ASSERT_TRUE(testing::wait_until([&] { return outcomes() == 1; }));
  std::lock_guard lock{heard->mutex};
  const auto& last = *heard->reports.back()->outcomes.at(0);
  EXPECT_EQ(last.status(0), task_status::succeeded);
  EXPECT_THAT(std::string{last.results[0]}, HasSubstr("everybody's"));
}

TEST_F(executor, takes_no_orders_of_another_process) {
  ASSERT_TRUE(await_admission());
  node_config elsewhere{true};
  caf::actor_system away{elsewhere};
  const auto port = publish(system, executor_actor{tested}, 0, "127.0.0.1");
  ASSERT_TRUE(port);
  const auto seen = connect<executor_actor>(away, "127.0.0.1", *port);
  ASSERT_TRUE(seen);
  caf::scoped_actor stranger{away};
  tell(stranger, *seen, box(work(1, 5)));
  caf::error answer;
  ask(stranger, caf::actor_cast<caf::actor>(*seen), testing::patience(), box(goodbye{}),
      box(goodbye{})) // understood by nobody
      .receive([] {}, [&](const caf::error& why) { answer = why; });
  ASSERT_EQ(answer, caf::sec::unexpected_message) << "what was sent before has come";
  EXPECT_THAT(arrivals(), ::testing::IsEmpty());
  EXPECT_EQ(outcomes(), 0u);
  order(work(1, 5)); // in order: those of the stranger were none
  ASSERT_TRUE(testing::wait_until([&] { return outcomes() == 5; }));
}

TEST_F(executor, says_goodbye_last_when_it_is_asked_to_end) {
  ASSERT_TRUE(await_admission());
  order(work(1, 3));
  ASSERT_TRUE(testing::wait_until([&] { return outcomes() == 3; }));
  shut_down(tested);
  const auto [why, clean] = how_it_ended();
  EXPECT_FALSE(why) << why.message;
  EXPECT_TRUE(clean);
  order(work(2, 3)); // nobody is there any more
  ASSERT_TRUE(testing::wait_until([&] { return heard->count(&heard_by_both::goodbyes) == 1; }));
  std::lock_guard lock{heard->mutex};
  ASSERT_EQ(heard->goodbyes.size(), 1u);
  EXPECT_EQ(heard->goodbyes[0]->executor, executor_id{7});
  EXPECT_EQ(heard->goodbyes[0]->epoch, epoch);
  EXPECT_EQ(heard->order.back(), "goodbye");
}

TEST_F(executor, hears_while_it_leaves_that_a_stage_has_run_into_its_time_out) {
  ASSERT_TRUE(await_admission());
  auto orders = work(1, 1);
  orders.installs.front().program =
      std::make_shared<const std::variant<native_program, command_program>>(command_program{
          {"sh", "-c", "echo the cause >&2; exec sleep 1000"}, {}, files.path(), files.path() + "/outputs"});
  order(orders);
  const auto content = [](const std::string& path) {
    std::ifstream in{path};
    return std::string{std::istreambuf_iterator<char>{in}, {}};
  };
  ASSERT_TRUE(testing::wait_until([&] { return content(files.path() + "/1/1.0.0/stderr") == "the cause\n"; }));
  heard->before_goodbye_is_answered = [&] {
    shut_down(tested); // once more, as where a whole service is told to end
    executor_orders late;
    late.epoch = epoch;
    late.sequence = 2;
    late.removed_stages = late.late_stages = {stage_id{1}};
    order(late);
  };
  shut_down(tested);
  EXPECT_TRUE(how_it_ended().second);
  EXPECT_EQ(content(files.path() + "/.troupe/logs/session-of-tests-1/1.0.0.err"), "the cause\n");
}

TEST_F(executor, tells_while_it_leaves_how_its_tasks_have_ended) {
  ASSERT_TRUE(await_admission());
  door_of_tasks.close();
  order(work(1, 1, decltype(waiting_task)::index()));
  ASSERT_TRUE(door_of_tasks.await(1));
  heard->before_goodbye_is_answered = [&] {
    door_of_tasks.open();
    EXPECT_TRUE(testing::wait_until([&] { return outcomes() == 1; }));
  };
  shut_down(tested);
  EXPECT_TRUE(how_it_ended().second);
}

TEST_F(executor, ends_when_the_driver_stops_the_session) {
  ASSERT_TRUE(await_admission());
  {
    caf::scoped_actor self{system};
    ask(self, tested, testing::patience(), box(stop_session{"the end"}))
        .receive([](const boxed<acknowledged>&) {}, [](const caf::error&) { FAIL(); });
  }
  EXPECT_FALSE(how_it_ended().first);
  EXPECT_EQ(heard->count(&heard_by_both::goodbyes), 0u) << "the driver knows";
}

TEST_F(executor, warns_of_no_driver_that_goes_after_it_has_said_so) {
  ASSERT_TRUE(await_admission());
  door_of_tasks.close();
  order(work(1, 1, decltype(waiting_task)::index()));
  ASSERT_TRUE(door_of_tasks.await(1));
  {
    caf::scoped_actor self{system};
    ask(self, tested, testing::patience(), box(stop_session{"the end"}))
        .receive([](const boxed<acknowledged>&) {}, [](const caf::error&) { FAIL(); });
  }
  shut_down(door); // while the task still runs
  EXPECT_TRUE(testing::wait_until([&] { return lines->have("driver-gone"); }));
  EXPECT_FALSE(lines->have("driver-out-of-reach"));
}

class executor_with_a_silent_driver : public executor {
protected:
  void SetUp() override {}
  /// Joins, and is sent `tasks` tasks on one lease. The driver is silent from then on.
  void begin(std::uint32_t tasks) {
    door_of_tasks.close();
    join(secret);
    // Where the test stands still for so long, it is silent before it means to be.
    ASSERT_TRUE(testing::wait_until([&] { return admitted_as != 0 || ended(); }));
    order(work(1, tasks, decltype(waiting_task)::index()));
    ASSERT_TRUE(door_of_tasks.await(1) || ended());
    ASSERT_TRUE(testing::wait_until([&] { return said > 0 || ended(); }));
    beating = false;
    pulse.join();
    // What was said has been read when it has beaten twice more.
    const auto before = last_heard();
    ASSERT_TRUE(testing::wait_until([&] { return last_heard() >= before + 2 || ended(); }));
  }
  bool holds() { return lines->count("holds: for ") > lines->count("goes-on"); }
  /// @param heard of its heartbeats
  void speak(std::uint64_t heard) {
    caf::scoped_actor self{system};
    tell(self, tested, box(driver_heartbeat{1'000'000, heard}));
  }
};

TEST_F(executor_with_a_silent_driver, begins_nothing_until_the_driver_has_heard_of_it) {
  driver_timeout = 1s;
  begin(3);
  ASSERT_TRUE(testing::wait_until([&] { return holds(); }));
  door_of_tasks.open();
  ASSERT_TRUE(testing::wait_until([&] {
    speak(said); // as what has lain on the way: it says nothing new
    const std::lock_guard lock{heard->mutex};
    return heard->beats.back()->running == 0 && heard->beats.back()->queued == 2;
  })) << "what ran has ended, and the others wait";
  EXPECT_TRUE(holds());
  // It may hold again before all have run.
  ASSERT_TRUE(testing::wait_until([&] {
    speak(last_heard());
    return outcomes() == 3;
  }));
}

TEST_F(executor_with_a_silent_driver, ends_in_the_end) {
  driver_timeout = 100ms;
  abandon_timeout = 400ms;
  begin(1);
  ASSERT_TRUE(testing::wait_until([&] { return lines->have("troupe.executor.abandon-timeout"); }));
  door_of_tasks.open();
  const auto [why, clean] = how_it_ended();
  EXPECT_EQ(why.code, ec::unreachable);
  EXPECT_THAT(why.message, HasSubstr("troupe.executor.abandon-timeout"));
  EXPECT_TRUE(lines->have("holds: for ")) << "first of all";
}

TEST_F(executor_with_a_silent_driver, ends_soon_where_the_connection_is_closed) {
  driver_timeout = 400ms;
  begin(1);
  shut_down(door);
  door_of_tasks.open();
  const auto [why, clean] = how_it_ended();
  EXPECT_EQ(why.code, ec::unreachable);
  EXPECT_THAT(why.message, HasSubstr("troupe.executor.driver-timeout"));
}

TEST_F(executor_with_a_silent_driver, ends_when_it_was_given_up) {
  begin(1);
  door_of_tasks.open();
  {
    caf::scoped_actor self{system};
    tell(self, tested, box(stop_session{"silent for long", true}));
  }
  const auto [why, clean] = how_it_ended();
  EXPECT_EQ(why.code, ec::unreachable);
  EXPECT_THAT(why.message, HasSubstr("has given it up: silent for long"));
}

class executor_with_another_secret : public executor {
protected:
  void SetUp() override { join(session_secret::generate()); }
};

TEST_F(executor_with_another_secret, ends_without_having_worked) {
  const auto [why, clean] = how_it_ended();
  EXPECT_EQ(why.code, ec::unauthenticated);
  EXPECT_THAT(why.message, HasSubstr("troupe.security.secret-file"));
  EXPECT_EQ(admitted_as, 0u);
  EXPECT_EQ(heard->count(&heard_by_both::beats), 0u);
}

class executor_of_an_application : public executor {
protected:
  void SetUp() override {
    in_process = true;
    executor::SetUp();
  }
};

TEST_F(executor_of_an_application, is_cleared_up_after_when_its_last_task_has_ended) {
  ASSERT_TRUE(await_admission());
  door_of_tasks.close();
  order(work(1, 1, decltype(waiting_task)::index()));
  ASSERT_TRUE(door_of_tasks.await(1));
  shut_down(tested);
  EXPECT_TRUE(testing::wait_until([&] { return lines->have("waits tasks=\"1/0\""); }));
  EXPECT_FALSE(how_it_ended().second) << "its driver hears of it";
  EXPECT_FALSE(cleared) << "the task uses its folders";
  door_of_tasks.open();
  EXPECT_TRUE(testing::wait_until([&] { return cleared.load(); }));
}

TEST_F(executor, is_cleared_up_after_before_it_tells_of_its_end) {
  ASSERT_TRUE(await_admission());
  shut_down(tested);
  EXPECT_TRUE(how_it_ended().second);
  EXPECT_TRUE(cleared);
}

TEST_F(executor, says_that_it_ended_when_a_defect_ends_it) {
  ASSERT_TRUE(await_admission());
  order(work(1, 1));
  ASSERT_TRUE(testing::wait_until([&] { return outcomes() == 1; }));
  outcome_batch twice; // more ends than there were attempts
  twice.lease = lease_id{1};
  twice.count = 1;
  tell_as(tested, tested, local(std::move(twice)));
  EXPECT_EQ(how_it_ended().first.code, ec::internal);
}

} // namespace
} // namespace troupe::actor_tests
