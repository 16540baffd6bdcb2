#include <troupe/tests/support/cluster_simulator.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <stdexcept>

#include <troupe/runtime/allocation/allocation_policy.hpp>
#include <troupe/runtime/dag/dag_scheduler.hpp>
#include <troupe/runtime/resources/carving.hpp>
#include <troupe/runtime/resources/profile_registry.hpp>
#include <troupe/tests/support/builders.hpp>
#include <troupe/tests/support/fake_executor.hpp>

namespace troupe::testing {

namespace {

using namespace std::chrono_literals;

/// splitmix64: tiny, and the same everywhere.
class dice {
public:
  explicit dice(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    auto z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  std::uint64_t below(std::uint64_t n) { return next() % n; }
  std::uint64_t between(std::uint64_t low, std::uint64_t high) { return low + below(high - low + 1); }
  bool once_in(std::uint64_t n) { return below(n) == 0; }

private:
  std::uint64_t state_;
};

constexpr duration turmoil = 30s;      ///< so long things go wrong
constexpr duration patience = 20'000s; ///< then every job has so long to end

dag_scheduler::options random_options(dice& d, profile_matching matching) {
  dag_scheduler::options o;
  o.matching = matching;
  if (matching == profile_matching::exact) o.resubmit_delay = 200ms;
  if (d.once_in(3)) o.max_batch = 4;
  if (d.once_in(4)) o.retained_jobs = 2;
  o.placement = static_cast<placement_policy>(d.between(0, 2));
  o.scarce_resource_wait = d.once_in(3) ? duration::zero() : d.once_in(3) ? never : duration{3s};
  if (d.once_in(3))
    o.sharing = {sharing_mode::fair, {{"a", {sharing_mode::fair, 3, 0}}, {"b", {sharing_mode::fifo, 1, 2}}}};
  if (d.once_in(2))
    o.speculation = {true, share{share::units_per_whole / 4}, share::whole(1), std::chrono::milliseconds{1}};
  o.max_stage_attempts = 8;
  o.infeasible_timeout = 60s;
  o.exclusion.enabled = d.once_in(2);
  o.exclusion.max_failed_tasks_per_executor = static_cast<std::uint32_t>(d.between(1, 2));
  o.exclusion.max_failed_executors_per_node = static_cast<std::uint32_t>(d.between(1, 3));
  o.exclusion.timeout = d.once_in(2) ? 3s : 1h;
  o.unschedulable_timeout = 20s;
  return o;
}

class simulator {
public:
  simulator(std::uint64_t seed, const simulation_options& options)
    : dice_(seed), options_(options),
      matching_(dice_.once_in(5) ? profile_matching::exact : profile_matching::compatible),
      scheduler_(random_options(dice_, matching_)), registry_(default_test_profile()), hosts_(make_hosts(), "test"),
      policy_(make_policy()) {}

  simulation_report run();

private:
  struct member {
    fake_executor self;
    time_point orders_until{}; ///< orders arrive in their order
    std::set<lease_id> busy;   ///< leases whose front runs
    std::set<std::tuple<stage_id, partition_index, attempt_number>> blocks;
    bool alive = true;
    /// Tasks of gangs that wait for the others, and those that have met them.
    std::map<fake_attempt, lease_id> waiting;
    std::set<fake_attempt> met;
    std::set<fake_attempt> deserted; ///< of those the ones that wait in vain
  };
  struct launched {
    executor_id executor; ///< none before its hello
    bool stopping = false;
    bool gone = false;
  };

  void at(duration after, std::string what, std::function<void()> action) {
    queue_.push({now_ + after, ++number_, std::move(what), std::move(action)});
  }
  void say(const std::string& what) {
    history_.push_back(
        std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(now_.time_since_epoch()).count()) + "us " +
        what);
  }
  duration latency() {
    return duration{static_cast<std::int64_t>(dice_.between(20'000, dice_.once_in(20) ? 300'000'000 : 400'000))};
  }
  bool calm() const { return now_.time_since_epoch() > turmoil; }
  /// Something goes wrong, unless this one is left out. The dice are thrown either way.
  bool happens(bool hit) {
    if (!hit) return false;
    const auto number = report_.mishaps++;
    if (options_.only_mishaps && !options_.only_mishaps->contains(number)) return false;
    ++report_.mishaps_run;
    return true;
  }
  bool strikes(std::uint64_t n) { return happens(dice_.once_in(n) && !calm()); }

  std::vector<carving_host> make_hosts();
  allocation_policy::options make_policy();
  job_builder make_job();
  void submit();
  void dispatch(effects::list& out);
  void dispatch(effects::allocation_list& out);
  void converge(const std::vector<executor_order>& wanted);
  void admit(executor_info info);
  void lose(executor_id e, bool lost);
  void stop(request_id r);
  void send(const effects::send_orders& what);
  void work(executor_id e);
  void finish(executor_id e, lease_id lease, std::uint32_t count);
  bool meets(executor_id e, lease_id lease);
  void let_go(executor_id e, const executor_orders& orders);
  fake_end outcome_of(member& m, const fake_attempt& a);
  std::optional<task_failure> missing_input(const fake_executor& reader, const fake_attempt& a);
  void tick();
  void check_end(const job_end& end);
  void check_rest();

  dice dice_;
  const simulation_options& options_;
  profile_matching matching_;
  dag_scheduler scheduler_;
  profile_registry registry_;
  carving hosts_;
  allocation_policy policy_;
  time_point now_{};
  std::uint64_t number_ = 0;
  std::uint64_t next_executor_ = 1;

  struct event {
    time_point when;
    std::uint64_t number;
    std::string what;
    std::function<void()> action;
    bool operator<(const event& other) const { return std::tie(other.when, other.number) < std::tie(when, number); }
  };
  std::priority_queue<event> queue_;
  std::map<executor_id, std::unique_ptr<member>> members_;
  std::map<request_id, launched> launches_;
  std::map<stage_id, duration> pace_; ///< run time of a stage's tasks
  std::map<stage_id, std::int64_t> accepted_;
  std::set<stage_id> meeting_; ///< gangs whose tasks wait for each other
  std::set<job_id> running_;
  std::uint32_t to_submit_ = 0;
  std::vector<std::string> history_;
  simulation_report report_;
};

std::vector<carving_host> simulator::make_hosts() {
  std::vector<carving_host> hosts;
  for (std::uint64_t i = 0, n = dice_.between(1, 3); i < n; ++i) {
    carving_host h;
    h.name = "host" + std::to_string(i);
    h.cores = static_cast<std::int64_t>(dice_.between(2, 4));
    h.memory = std::int64_t{64} << 30;
    if (i == 0) h.custom["gpu"] = {1, {"0"}};
    hosts.push_back(std::move(h));
  }
  return hosts;
}

allocation_policy::options simulator::make_policy() {
  allocation_policy::options o;
  o.idle_timeout = 5s;
  o.dynamic = !dice_.once_in(4);
  if (dice_.once_in(2)) o.fixed.push_back({{{1}, default_test_profile()}, 1});
  return o;
}

job_builder simulator::make_job() {
  job_builder job{"random"};
  auto half_gpu = make_profile({{"gpu", 1}}, {{"gpu", "0.5"}});
  if (dice_.once_in(4)) half_gpu.max_tasks_per_executor = 1;
  auto wide = make_profile({{"cores", 2}}, {{"cpus", "2"}});
  wide.exclusive = dice_.once_in(4);
  auto light = make_profile({}, {{"cpus", "0.5"}});
  if (dice_.once_in(4)) light.max_tasks_per_executor = dice_.between(1, 2);
  light.exclusive = dice_.once_in(6);
  if (dice_.once_in(3)) wide.memory_ceiling = std::int64_t{4} << 30;
  constexpr const char* pools[] = {"", "a", "b"};
  job.in_pool(pools[dice_.between(0, 2)]);
  job.profile(half_gpu).profile(wide).profile(light);
  const auto profiles = matching_ == profile_matching::exact ? 2u : 3u; // of equal executor halves one is asked for
  job.max_failures(static_cast<std::uint32_t>(dice_.between(2, 5)));
  const auto stages = static_cast<std::uint32_t>(dice_.between(1, 4));
  std::vector<std::uint32_t> tasks;
  std::vector<std::uint32_t> buckets;
  for (std::uint32_t s = 0; s < stages; ++s) {
    tasks.push_back(static_cast<std::uint32_t>(dice_.once_in(12) ? dice_.between(100, 600) : dice_.between(1, 12)));
    buckets.push_back(0);
  }
  // A shuffle makes as many buckets as its reader has tasks.
  std::vector<std::vector<stage_dependency>> edges(stages);
  for (std::uint32_t s = 1; s < stages; ++s)
    for (std::uint32_t parent = 0; parent < s; ++parent) {
      if (dice_.once_in(2)) continue;
      const bool shuffle = dice_.below(3) > 0 && (buckets[parent] == 0 || buckets[parent] == tasks[s]);
      if (shuffle) buckets[parent] = tasks[s];
      edges[s].push_back({parent, shuffle ? dependency_kind::shuffle : dependency_kind::all});
    }
  for (std::uint32_t s = 0; s < stages; ++s) {
    job.stage("s" + std::to_string(s), tasks[s]).buckets(buckets[s]);
    job.with(static_cast<std::uint32_t>(dice_.once_in(2) ? 0 : dice_.between(0, profiles)));
    if (tasks[s] <= 4 && dice_.once_in(2)) job.barrier(dice_.once_in(4) ? duration{3s} : never);
    if (dice_.once_in(4)) job.prefers({dice_.once_in(2) ? "host0" : "host1/" + std::to_string(dice_.between(1, 9))});
    for (const auto& edge : edges[s]) job.after(edge.stage, edge.kind);
  }
  return job;
}

void simulator::submit() {
  const auto job = make_job().make();
  const auto number = report_.jobs++;
  if (options_.only_jobs && !options_.only_jobs->contains(number)) {
    --to_submit_;
    return;
  }
  std::vector<resolved_profile> profiles;
  for (const auto& p : job->profiles) {
    profiles.push_back(resolved(registry_.register_profile(p).value()));
  }
  effects::list out;
  const auto id = scheduler_.on_job_submitted(job, profiles, now_, out);
  --to_submit_;
  ++report_.jobs_run;
  running_.insert(id);
  const auto progress = scheduler_.progress(id, now_);
  for (const auto& s : progress->stages)
    pace_[s.stage] = std::vector<duration>{1us, 300us, 5ms, 80ms, 700ms}[dice_.below(5)];
  for (std::size_t s = 0; s < job->stages.size(); ++s)
    if (job->stages[s].barrier && dice_.below(3) > 0) meeting_.insert(progress->stages[s].stage);
  say("job " + std::to_string(id.value) + " of " + std::to_string(job->stages.size()) + " stages");
  if (happens(dice_.once_in(12)))
    at(duration{static_cast<std::int64_t>(dice_.below(3'000'000'000))}, "cancel job " + std::to_string(id.value),
       [=, this] {
         effects::list more;
         scheduler_.on_job_cancelled(id, "by request", now_, more);
         dispatch(more);
       });
  dispatch(out);
}

void simulator::dispatch(effects::list& out) {
  for (const auto& effect : out) {
    if (const auto* orders = std::get_if<effects::send_orders>(&effect)) {
      send(*orders);
    } else if (const auto* complete = std::get_if<effects::complete_job>(&effect)) {
      check_end(complete->end);
    } else if (const auto* question = std::get_if<effects::ask_feasibility>(&effect)) {
      if (strikes(10)) continue; // lost
      for (const auto& shape : question->shapes)
        at(latency(), "feasibility of shape " + std::to_string(shape.shape.value), [=, this] {
          effects::list more;
          scheduler_.on_feasibility(shape.shape, hosts_.check(shape.profile), now_, more);
          dispatch(more);
        });
    } else if (const auto* load = std::get_if<effects::report_load>(&effect)) {
      // Never the one that announces a shape: that is sent over an ordered channel.
      if (load->report.new_shapes.empty() && strikes(10)) continue;
      at(load->report.new_shapes.empty() ? latency() : 0ns, "load", [report = load->report, this] {
        effects::allocation_list more;
        // As the allocator does: what was decided so far is carried out before it asks on.
        policy_.on_load(
            report, now_,
            [&](const executor_shape& s) {
              dispatch(more);
              return hosts_.room_for(s.profile);
            },
            [&](const way_question& q) {
              dispatch(more);
              return hosts_.who_makes_way(q.shape.profile, q.count, q.leaving, q.may_go);
            },
            more);
        dispatch(more);
      });
    } else if (const auto* publish = std::get_if<effects::publish>(&effect)) {
      if (const auto* good = std::get_if<events::tasks_succeeded>(&publish->event))
        accepted_[good->stage] += good->count;
      else if (const auto* lost = std::get_if<events::map_output_lost>(&publish->event))
        --accepted_[lost->stage];
      else if (const auto* again = std::get_if<events::stage_restarted>(&publish->event)) {
        accepted_[again->stage] = 0;
        ++report_.restarted;
      } else if (std::holds_alternative<events::executor_excluded>(publish->event) ||
                 std::holds_alternative<events::node_excluded>(publish->event))
        ++report_.excluded;
    }
  }
  out.clear();
  if (auto fault = scheduler_.fault()) throw std::logic_error(*fault);
  if (options_.promise)
    if (auto broken = options_.promise(scheduler_)) throw std::logic_error(*broken);
}

void simulator::dispatch(effects::allocation_list& out) {
  for (const auto& effect : out) {
    if (const auto* c = std::get_if<effects::converge>(&effect)) {
      converge(c->wanted);
    } else if (const auto* ask = std::get_if<effects::ask_release>(&effect)) {
      const auto e = ask->executor;
      at(latency(), "release of executor " + std::to_string(e.value) + " is asked for", [=, this] {
        effects::list more;
        const auto answer = scheduler_.on_release_requested(e, now_, more);
        dispatch(more);
        if (strikes(5)) return; // the answer is lost
        at(latency(), "release answered", [=, this] {
          effects::allocation_list next;
          policy_.on_release_answer(e, answer.granted, answer.serving, next);
          dispatch(next);
        });
      });
    } else if (const auto* failure = std::get_if<effects::report_launch_failure>(&effect)) {
      scheduler_.on_launch_failed(failure->status.shape, failure->status.detail);
    }
  }
  out.clear();
}

void simulator::converge(const std::vector<executor_order>& wanted) {
  std::set<request_id> names;
  for (const auto& order : wanted) {
    names.insert(order.request);
    if (launches_.contains(order.request)) {
      if (order.parked) hosts_.park(order.request);
      continue;
    }
    auto& launch = launches_[order.request];
    const auto place = hosts_.place(order.request, order.shape.profile);
    if (!place || strikes(10)) {
      launch.gone = true;
      if (place) hosts_.free(order.request);
      continue;
    }
    executor_info info = executor_builder{}.started_for(order.shape.profile).request(order.request.value).make({}, 0);
    info.shape = order.identity();
    info.capacity = place->capacity;
    info.host = hosts_.hosts()[place->host].name;
    at(latency() + 50ms, "hello of request " + std::to_string(order.request.value), [=, this] {
      const auto& now = launches_.at(info.request);
      if (!now.gone && !now.stopping) admit(info);
    });
  }
  for (auto& [request, launch] : launches_)
    if (!launch.gone && !launch.stopping && !names.contains(request)) stop(request);
}

void simulator::stop(request_id r) {
  launches_.at(r).stopping = true;
  // Its room is free when it has ended.
  at(latency(), "request " + std::to_string(r.value) + " ends", [=, this] {
    auto& launch = launches_.at(r);
    launch.gone = true;
    hosts_.free(r);
    if (launch.executor) lose(launch.executor, false);
  });
}

void simulator::admit(executor_info info) {
  info.executor = {next_executor_++};
  info.epoch = dice_.next();
  info.blocks = {info.executor, info.epoch, info.host, 4000};
  if (info.request) launches_.at(info.request).executor = info.executor;
  say("executor " + std::to_string(info.executor.value) + " is admitted");
  members_.emplace(info.executor, std::make_unique<member>(member{fake_executor{info}, {}, {}, {}, true, {}, {}, {}}));
  ++report_.executors;
  effects::list out;
  scheduler_.on_executor_added(info, now_, out);
  dispatch(out);
}

void simulator::lose(executor_id e, bool lost) {
  auto& m = *members_.at(e);
  if (!m.alive) return;
  m.alive = false;
  const auto& info = m.self.info();
  if (info.request && !launches_.at(info.request).gone) {
    launches_.at(info.request).gone = true;
    hosts_.free(info.request);
  }
  executor_exit exit;
  if (lost && dice_.once_in(2)) exit.cause = dice_.once_in(2) ? exit_cause::memory_limit : exit_cause::exit_code;
  // It is dead at once; the driver hears of it later.
  at(lost ? latency() + duration{static_cast<std::int64_t>(dice_.below(2'000'000'000))} : latency(),
     "executor " + std::to_string(e.value) + (lost ? " is declared lost" : " has left"), [=, this] {
       effects::list out;
       scheduler_.on_executor_gone(e, members_.at(e)->self.info().epoch, "it died", lost, now_, out, exit);
       dispatch(out);
     });
}

void simulator::send(const effects::send_orders& what) {
  auto& m = *members_.at(what.executor);
  m.orders_until = std::max(m.orders_until, now_ + latency());
  at(m.orders_until - now_, "orders for executor " + std::to_string(what.executor.value), [=, this] {
    auto& to = *members_.at(what.executor);
    if (!to.alive) return;
    const bool refuse = strikes(60);
    const bool batches = dice_.once_in(2);
    if (refuse && batches) to.self.refuse_batches("no space left", strikes(10));
    if (refuse && !batches) to.self.refuse_grants("no such address");
    const auto fault = to.self.apply(what.orders);
    to.self.refuse_batches({});
    to.self.refuse_grants({});
    if (fault) throw std::logic_error(*fault);
    for (const auto stage : what.orders.removed_stages)
      std::erase_if(to.blocks, [&](const auto& block) { return std::get<0>(block) == stage; });
    report_.recalls += what.orders.recalled.size();
    if (to.self.has_unsent())
      at(latency(), "answer of executor " + std::to_string(what.executor.value), [report = to.self.report({}), this] {
        effects::list out;
        scheduler_.on_report(report, now_, out);
        dispatch(out);
      });
    let_go(what.executor, what.orders);
    work(what.executor);
  });
}

/// A task of a gang waits for the others before it ends. @returns whether it does now
bool simulator::meets(executor_id e, lease_id lease) {
  auto& m = *members_.at(e);
  for (const auto& a : m.self.running()) {
    if (a.lease != lease || a.doomed || !meeting_.contains(a.stage) || m.met.contains(a)) continue;
    m.waiting[a] = lease;
    auto report = m.self.report({});
    report.arrivals.push_back(
        {a.stage, a.stage_attempt, a.partition, a.attempt, 0, sync_kind::all_gather, std::to_string(a.partition)});
    at(latency(), "a task of stage " + std::to_string(a.stage.value) + " waits for its gang", [=, this] {
      effects::list out;
      scheduler_.on_report(report, now_, out);
      dispatch(out);
    });
    return true;
  }
  return false;
}

/// Those that wait no longer: they have met, or are to end.
void simulator::let_go(executor_id e, const executor_orders& orders) {
  auto& m = *members_.at(e);
  const auto present = m.self.attempts();
  for (auto it = m.waiting.begin(); it != m.waiting.end();) {
    const auto [a, lease] = *it;
    bool goes = std::find(present.begin(), present.end(), a) == present.end(); // it is doomed now
    for (const auto& b : orders.barriers) {
      if (b.stage != a.stage || b.stage_attempt != a.stage_attempt ||
          std::find(b.partitions.begin(), b.partitions.end(), a.partition) == b.partitions.end())
        continue;
      goes = true;
      m.met.insert(a);
      if (!b.failure.empty()) {
        m.deserted.insert(a);
      } else if (!b.texts || (*b.texts)[a.partition] != std::to_string(a.partition)) {
        throw std::logic_error("a task got other texts than were handed over");
      }
    }
    if (!goes) {
      ++it;
      continue;
    }
    it = m.waiting.erase(it);
    at(1ms, "a task of stage " + std::to_string(a.stage.value) + " goes on", [=, l = lease, this] { finish(e, l, 1); });
  }
}

/// Starts what is at the front of idle leases.
void simulator::work(executor_id e) {
  auto& m = *members_.at(e);
  for (const auto& a : m.self.running()) {
    if (!m.busy.insert(a.lease).second) continue;
    const auto pace = pace_.at(a.stage);
    // Of the shortest tasks several end at once, and some turn out to be long.
    const bool straggles = pace < 1ms && dice_.once_in(20);
    const auto count = pace < 1ms && !straggles ? static_cast<std::uint32_t>(dice_.between(1, 64)) : 1u;
    const duration usual{static_cast<std::int64_t>(
        dice_.between(static_cast<std::uint64_t>(pace.count()) / 2, static_cast<std::uint64_t>(pace.count()) * 2))};
    const auto run = straggles ? duration{2s} : usual;
    at(a.doomed ? 1ms : run * count, "tasks end on executor " + std::to_string(e.value),
       [=, lease = a.lease, this] { finish(e, lease, count); });
  }
}

void simulator::finish(executor_id e, lease_id lease, std::uint32_t count) {
  auto& m = *members_.at(e);
  if (!m.alive || meets(e, lease)) return;
  m.busy.erase(lease);
  std::vector<fake_end> ends;
  duration pace{};
  for (const auto& a : m.self.attempts()) {
    if (a.lease != lease || ends.size() == count) continue;
    pace = pace_.at(a.stage);
    ends.push_back(outcome_of(m, a));
  }
  auto report = m.self.report(ends, pace);
  if (!report.outcomes.empty())
    for (int copies = strikes(15) ? 2 : 1; copies > 0; --copies)
      at(latency(), "report of executor " + std::to_string(e.value), [=, this] {
        effects::list out;
        scheduler_.on_report(report, now_, out);
        dispatch(out);
      });
  work(e);
}

/// A map output that the attempt was told of and that is not there.
std::optional<task_failure> simulator::missing_input(const fake_executor& reader, const fake_attempt& a) {
  const auto* stage = reader.installed(a.stage);
  for (const auto& input : stage->inputs)
    for (partition_index p = 0; p < input.attempt_of_map.size(); ++p) {
      const auto& where = input.endpoints.at(input.endpoint_of_map.at(p));
      auto& source = *members_.at(where.executor);
      const auto block = std::tuple{input.shuffle, p, input.attempt_of_map[p]};
      const bool rotten = strikes(300);
      if (rotten) source.blocks.erase(block);
      if (source.alive && source.blocks.contains(block)) continue;
      task_failure why;
      why.message = "no block";
      why.shuffle = input.shuffle;
      why.map_partition = p;
      why.map_attempt = input.attempt_of_map[p];
      why.map_executor = where.executor;
      return why;
    }
  return std::nullopt;
}

fake_end simulator::outcome_of(member& m, const fake_attempt& a) {
  if (a.doomed) return {a, task_status::killed, {}, {}};
  // A task of an older stage attempt that was queued has the inputs of the installed one, as on a real executor.
  if (auto why = missing_input(m.self, a)) {
    const auto* stage = m.self.installed(a.stage);
    auto at_work = a;
    at_work.stage_attempt = stage->stage_attempt;
    return {at_work, task_status::fetch_failed, {}, *why};
  }
  task_failure why;
  why.message = "bad luck";
  if (m.deserted.contains(a)) return {a, task_status::failed, {}, why};
  if (dice_.once_in(2)) why.cause = failure_cause::memory_limit;
  if (strikes(40)) return {a, task_status::failed, {}, why};
  if (strikes(200)) return {a, task_status::lost, {}, why};
  if (strikes(200)) return {a, task_status::succeeded, "\5garbage", {}};
  auto end = m.self.success(a, std::to_string(a.partition));
  if (m.self.installed(a.stage)->buckets > 0)
    m.blocks.insert({a.stage, a.partition, a.attempt});
  else if (dice_.once_in(20))
    end.result = stored_result(1000);
  return end;
}

void simulator::tick() {
  effects::list out;
  scheduler_.on_tick(now_, out);
  dispatch(out);
  std::vector<launch_status> snapshot;
  for (const auto& [request, launch] : launches_)
    snapshot.push_back({request, {}, launch.gone ? launch_state::gone : launch_state::running, "exit code 1"});
  effects::allocation_list more;
  policy_.on_snapshot(snapshot, now_, more);
  dispatch(more);
  std::vector<executor_id> alive;
  for (const auto& [id, m] : members_)
    if (m->alive) alive.push_back(id);
  if (!alive.empty() && strikes(25)) {
    const auto victim = alive[dice_.below(alive.size())];
    say("executor " + std::to_string(victim.value) + " dies");
    lose(victim, true);
  }
  if (strikes(40)) admit(executor_builder{}.cores(1).host("by hand").make({}, 0));
  const bool over = to_submit_ == 0 && running_.empty();
  if (now_.time_since_epoch() > turmoil + patience && !over) {
    std::string hanging;
    for (const auto id : running_) {
      const auto p = scheduler_.progress(id, now_);
      hanging += " job " + std::to_string(id.value) + " (" + p->waiting_for + ")";
    }
    throw std::logic_error("jobs do not end:" + hanging);
  }
  if (!over) at(calm() ? 1s : 200ms, {}, [this] { tick(); });
}

void simulator::check_end(const job_end& end) {
  const auto id = end.job;
  const auto name = "job " + std::to_string(id.value);
  if (running_.erase(id) == 0) throw std::logic_error(name + " ended twice, or before it was submitted");
  say(name + (end.failure ? " fails: " + end.failure.message : " succeeds"));
  if (end.failure) {
    ++(end.failure.code == ec::cancelled ? report_.cancelled : report_.failed);
    return;
  }
  ++report_.succeeded;
  for (const auto& s : end.progress.stages)
    if (accepted_[s.stage] != s.done)
      throw std::logic_error(name + ": " + std::to_string(accepted_[s.stage]) + " results were accepted for " +
                             std::to_string(s.done) + " tasks");
  const auto& last = end.progress.stages.back();
  if (!end.results) return; // a shuffle
  std::set<partition_index> elsewhere;
  for (const auto& location : end.results->elsewhere) elsewhere.insert(location.partition);
  if (end.results->values.size() != last.tasks) throw std::logic_error(name + " lacks results");
  for (partition_index p = 0; p < last.tasks; ++p)
    if (end.results->values[p] != (elsewhere.contains(p) ? std::string{} : std::to_string(p)))
      throw std::logic_error(name + " has a wrong result for partition " + std::to_string(p));
  at(latency(), "results of " + name + " are released", [=, this] {
    effects::list out;
    scheduler_.on_results_released(id, now_, out);
    dispatch(out);
  });
}

void simulator::check_rest() {
  if (!scheduler_.is_idle()) throw std::logic_error("something is left in the scheduler");
  for (const auto& [id, m] : members_) {
    if (!m->alive) continue;
    const auto name = "executor " + std::to_string(id.value);
    if (m->self.lease_count() > 0 || m->self.installed_count() > 0 || !m->self.book().is_idle())
      throw std::logic_error(name + " is not idle");
    if (!scheduler_.pool()[scheduler_.pool().find(id)].book.is_idle())
      throw std::logic_error("the book of " + name + " differs from its ledger");
  }
}

simulation_report simulator::run() {
  to_submit_ = static_cast<std::uint32_t>(dice_.between(1, 5));
  for (std::uint32_t i = 0; i < to_submit_; ++i)
    at(duration{static_cast<std::int64_t>(dice_.below(10'000'000'000))}, {}, [this] { submit(); });
  at(0ns, {}, [this] {
    effects::allocation_list out;
    policy_.on_start(
        now_, [&](const executor_shape& s) { return hosts_.room_for(s.profile); }, out);
    dispatch(out);
  });
  at(1ms, {}, [this] { tick(); });
  try {
    while (!queue_.empty()) {
      const auto next = queue_.top();
      queue_.pop();
      now_ = next.when;
      if (!next.what.empty()) say(next.what);
      ++report_.events;
      next.action();
    }
    check_rest();
  } catch (const std::exception& e) {
    report_.fault = e.what();
  }
  report_.history = std::move(history_);
  report_.stale = scheduler_.stale_messages();
  return std::move(report_);
}

} // namespace

simulation_report& simulation_report::operator+=(const simulation_report& other) {
  events += other.events;
  mishaps += other.mishaps;
  jobs += other.jobs;
  mishaps_run += other.mishaps_run;
  jobs_run += other.jobs_run;
  succeeded += other.succeeded;
  failed += other.failed;
  cancelled += other.cancelled;
  executors += other.executors;
  excluded += other.excluded;
  restarted += other.restarted;
  stale += other.stale;
  recalls += other.recalls;
  return *this;
}

std::string simulation_report::text(std::uint64_t seed) const {
  std::string all = "seed " + std::to_string(seed) + ": " + fault.value_or("no fault") + "\n";
  for (const auto& line : history) all += "  " + line + "\n";
  return all;
}

simulation_report simulate(std::uint64_t seed, const simulation_options& options) {
  return simulator{seed, options}.run();
}

std::set<std::uint32_t> needed_to_fail(std::uint32_t count, std::uint32_t budget,
                                       const std::function<bool(const std::set<std::uint32_t>&)>& fails) {
  std::set<std::uint32_t> needed;
  for (std::uint32_t i = 0; i < count; ++i) needed.insert(needed.end(), i);
  const auto without = [&](std::size_t from, std::size_t n) {
    auto fewer = needed;
    fewer.erase(std::next(fewer.begin(), static_cast<std::ptrdiff_t>(from)),
                std::next(fewer.begin(), static_cast<std::ptrdiff_t>(std::min(from + n, needed.size()))));
    return fewer;
  };
  // Large pieces first; then smaller ones, and again, since one may have needed another.
  for (auto piece = needed.size(); piece > 0;) {
    bool any = false;
    for (std::size_t from = 0; from < needed.size() && budget > 0; --budget) {
      auto fewer = without(from, piece);
      if (fails(fewer)) {
        needed = std::move(fewer);
        any = true;
      } else {
        from += piece;
      }
    }
    if (!any || piece > 1) piece /= 2;
    if (budget == 0) break;
  }
  return needed;
}

simulation_report shrink(std::uint64_t seed, simulation_options options) {
  constexpr std::uint32_t budget = 300;
  auto shortest = simulate(seed, options);
  const auto shorten = [&](std::optional<std::set<std::uint32_t>> simulation_options::*only, std::uint32_t count) {
    options.*only = needed_to_fail(count, budget, [&](const auto& kept) {
      auto fewer = options;
      fewer.*only = kept;
      auto run = simulate(seed, fewer);
      if (!run.fault) return false;
      shortest = std::move(run);
      return true;
    });
  };
  shorten(&simulation_options::only_jobs, shortest.jobs);
  shorten(&simulation_options::only_mishaps, shortest.mishaps);
  return shortest;
}

} // namespace troupe::testing
