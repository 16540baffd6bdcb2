#include <troupe/runtime/execution/task_runner.hpp>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <utility>

#include <troupe/runtime/execution/attempts_directories.hpp>
#include <troupe/runtime/execution/command_environment.hpp>
#include <troupe/runtime/execution/failure_logs.hpp>
#include <troupe/runtime/execution/function_table.hpp>
#include <troupe/runtime/execution/installed_stage.hpp>
#include <troupe/runtime/execution/lease_thread.hpp>
#include <troupe/runtime/execution/output_publisher.hpp>
#include <troupe/runtime/execution/staging_roots.hpp>

namespace troupe {

namespace {

constexpr auto destructor_grace = std::chrono::seconds{1};

/// A new stage's first version, or the next one of a known stage: new inputs, the same program.
std::shared_ptr<const stage_version> make_version(const stage_install& install, const stage_version* known) {
  auto version = std::make_shared<stage_version>();
  version->install = install;
  if (known) {
    version->install.program = known->install.program;
    version->plan = known->plan;
    version->command = known->command;
    version->fault = known->fault;
    return version;
  }
  if (!install.program) {
    version->fault = make_error(ec::malformed, "stage '" + install.name + "' was installed without a program");
  } else if (const auto* native = std::get_if<native_program>(install.program.get())) {
    auto plan = native_plan::make(*native, function_table::instance());
    if (plan)
      version->plan = std::make_shared<const native_plan>(std::move(*plan));
    else
      version->fault = plan.error();
  } else {
    version->command = &std::get<command_program>(*version->install.program);
  }
  return version;
}

} // namespace

struct task_runner::impl {
  explicit impl(options given)
    : opts(std::move(given)), gang(opts.on_arrival), staging({opts.session, opts.executor, opts.staging_journal}),
      logs(opts.session, opts.terms.logs), publisher(publishing()) {
    common.executor = opts.executor;
    common.shuffles = opts.shuffles;
    common.broadcasts = opts.broadcasts;
    common.results = {opts.blocks, opts.max_inline_result, opts.stderr_file, opts.compression};
    common.commands = {opts.attempts_directories,
                       inherited_environment(),
                       opts.ordinals.contains("gpu"),
                       opts.kill_grace,
                       opts.terms,
                       opts.limits,
                       opts.hand_over,
                       opts.session,
                       &staging,
                       &logs};
    common.gang = &gang;
    common.flush_tasks = std::max(1u, opts.flush_tasks);
    common.on_outcomes = opts.on_outcomes;
    common.may_begin_until = &begins_until;
    common.on_parked = [this](lease_thread& thread) {
      const std::lock_guard lock{mutex};
      parked.push_back(&thread);
    };
    common.on_ended = [this] {
      const std::lock_guard lock{mutex};
      ++ended;
      all_ended.notify_all();
    };
  }

  output_publisher::options publishing() const {
    output_publisher::options o;
    o.session = opts.session;
    o.threads = 1;
    o.publishes = publish_own;
    o.on_ends = opts.on_publications;
    o.on_ended = opts.on_publishing_ended;
    o.may_begin = [this] {
      const auto now = std::chrono::steady_clock::now(); // before it looks, see `may_begin_until`
      return now < begins_until.load();
    };
    return o;
  }

  void forget_outputs(stage_id stage, bool is_over) {
    if (auto root = staging.forget(stage))
      publisher.forget(stage, [this, root = *std::move(root), is_over] { staging.remove(root, is_over); });
  }

  lease_thread::lease_terms terms_of(const lease_grant& grant) const {
    lease_thread::lease_terms terms;
    terms.lease = grant.lease;
    terms.memory = opts.memory.for_task(opts.profile, opts.cores, grant.holding.cpus);
    terms.resources.cpus = grant.holding.cpus;
    for (const auto& [resource, shares] : grant.holding.resources) {
      const auto order = opts.ordinals.find(resource);
      if (shares.size() == 1 && shares.front().address.empty()) {
        terms.resources.amounts[resource] = shares.front().amount;
        continue;
      }
      auto& list = terms.resources.addresses.emplace_back(resource, std::vector<task_address>{}).second;
      for (const auto& part : shares) {
        int ordinal = -1;
        if (order != opts.ordinals.end()) {
          const auto at = std::find(order->second.begin(), order->second.end(), part.address);
          if (at != order->second.end()) ordinal = static_cast<int>(at - order->second.begin());
        }
        list.push_back({part.address, ordinal, part.amount});
      }
    }
    return terms;
  }

  /// For calls that may end in `on_outcomes`, which must not happen under the mutex. Threads live as long as this.
  std::vector<lease_thread*> all_threads() const {
    const std::lock_guard lock{mutex};
    std::vector<lease_thread*> list;
    list.reserve(threads.size());
    for (const auto& thread : threads) list.push_back(thread.get());
    return list;
  }

  const options opts;
  gang_gate gang;
  staging_roots staging;
  failure_logs logs;
  std::atomic<time_point> begins_until = time_point::max(); ///< asked by threads of those below
  output_publisher publisher;
  std::atomic<bool> publishing_ended = false;
  lease_thread::shared common;
  mutable std::mutex mutex;
  std::condition_variable all_ended;
  std::vector<std::unique_ptr<lease_thread>> threads; ///< all that were ever started
  std::vector<lease_thread*> parked;
  std::map<lease_id, lease_thread*> leases;
  std::map<stage_id, std::shared_ptr<installed_stage>> stages;
  std::size_t ended = 0;
  bool stopping = false;
};

task_runner::task_runner(options opts) : impl_(std::make_unique<impl>(std::move(opts))) {}

task_runner::~task_runner() {
  shutdown(destructor_grace);
  impl_->threads.clear(); // joins
}

void task_runner::open_lease(const lease_grant& grant) {
  auto& d = *impl_;
  const std::lock_guard lock{d.mutex};
  if (d.stopping) return;
  lease_thread* thread = nullptr;
  if (!d.parked.empty()) {
    thread = d.parked.back();
    d.parked.pop_back();
  } else {
    thread = d.threads.emplace_back(std::make_unique<lease_thread>(d.common)).get();
  }
  thread->open(d.terms_of(grant));
  d.leases[grant.lease] = thread;
}

void task_runner::close_lease(lease_id lease) {
  auto& d = *impl_;
  const std::lock_guard lock{d.mutex};
  const auto i = d.leases.find(lease);
  if (i == d.leases.end()) return;
  if (i->second->close()) d.parked.push_back(i->second);
  d.leases.erase(i);
}

void task_runner::install(const stage_install& stage) {
  auto& d = *impl_;
  const std::lock_guard lock{d.mutex};
  auto& known = d.stages[stage.stage];
  if (!known) {
    known = std::make_shared<installed_stage>(make_version(stage, nullptr));
    if (const auto* command = known->version()->command) d.staging.install(stage.stage, command->output_directory);
    return;
  }
  const auto current = known->version();
  if (stage.stage_attempt > current->install.stage_attempt) known->replace(make_version(stage, current.get()));
}

void task_runner::remove(stage_id stage, bool is_late) {
  auto& d = *impl_;
  const std::lock_guard lock{d.mutex};
  const auto i = d.stages.find(stage);
  if (i == d.stages.end()) return;
  i->second->remove(is_late);
  for (const auto& thread : d.threads) thread->forget(*i->second);
  d.stages.erase(i);
  d.forget_outputs(stage, true);
}

void task_runner::run(std::shared_ptr<const task_batch> batch) {
  auto& d = *impl_;
  if (!batch || batch->count == 0) return;
  if ((!batch->partitions.empty() && batch->partitions.size() != batch->count) ||
      (!batch->attempts.empty() && batch->attempts.size() != batch->count))
    throw std::logic_error("a batch of " + std::to_string(batch->count) + " tasks has columns of another length");
  const std::lock_guard lock{d.mutex};
  if (d.stopping) return;
  const auto lease = d.leases.find(batch->lease);
  if (lease == d.leases.end())
    throw std::logic_error("a batch came for lease " + std::to_string(batch->lease.value) + ", which is not open");
  const auto stage = d.stages.find(batch->stage);
  if (stage == d.stages.end())
    throw std::logic_error("a batch came for stage " + std::to_string(batch->stage.value) + ", which is not installed");
  lease->second->push(std::move(batch), stage->second);
}

void task_runner::kill(const kill_task& which) {
  for (auto* const thread : impl_->all_threads()) thread->kill(which);
}

void task_runner::release(const barrier_release& what) { impl_->gang.release(what); }

void task_runner::give_back(lease_id lease) {
  auto& d = *impl_;
  lease_thread* thread = nullptr;
  {
    const std::lock_guard lock{d.mutex};
    if (const auto i = d.leases.find(lease); i != d.leases.end()) thread = i->second;
  }
  if (thread) thread->give_back();
}

void task_runner::publish(publication_right what) {
  auto& d = *impl_;
  publication_task task{what.stage, what.partition, what.attempt, d.opts.executor, {}, std::move(what.outputs)};
  {
    const std::lock_guard lock{d.mutex};
    const auto known = d.stages.find(what.stage);
    if (known == d.stages.end() || !known->second->version()->command) return;
    task.output_directory = known->second->version()->command->output_directory;
  }
  d.publisher.publish(std::move(task));
}

void task_runner::drop_attempts(job_id job) {
  impl_->publisher.later([job, directories = impl_->opts.attempts_directories] { remove_attempts(directories, job); });
}

void task_runner::may_begin_until(time_point until) {
  auto& d = *impl_;
  const auto before = d.begins_until.exchange(until);
  // Threads that wait have found a time that had passed when they looked, which may be a while ago.
  constexpr auto margin = std::chrono::seconds{1};
  if (until <= before || before > std::chrono::steady_clock::now() + margin) return;
  for (auto* const thread : d.all_threads()) thread->go_on();
  d.publisher.wake();
}

void task_runner::end_publishing() {
  if (!impl_->publishing_ended.exchange(true)) impl_->publisher.end();
}

void task_runner::flush() {
  for (auto* const thread : impl_->all_threads()) thread->flush();
}

task_runner::load task_runner::current_load() const {
  const auto& d = *impl_;
  const std::lock_guard lock{d.mutex};
  load sum;
  for (const auto& thread : d.threads) {
    const auto [running, queued] = thread->load();
    sum.running += running;
    sum.queued += queued;
  }
  return sum;
}

std::vector<running_attempt> task_runner::running() const {
  const auto& d = *impl_;
  const std::lock_guard lock{d.mutex};
  std::vector<running_attempt> list;
  for (const auto& thread : d.threads) thread->append_running(list);
  return list;
}

std::vector<overdue_attempt> task_runner::overdue(time_point now) {
  std::vector<overdue_attempt> list;
  for (auto* const thread : impl_->all_threads()) thread->append_overdue(now, impl_->opts.kill_grace, list);
  return list;
}

void task_runner::discard_outputs() {
  auto& d = *impl_;
  const std::lock_guard lock{d.mutex};
  for (const auto& [stage, known] : d.stages) d.forget_outputs(stage, false); // others may still work on it
}

bool task_runner::shutdown(std::chrono::nanoseconds grace) {
  auto& d = *impl_;
  std::unique_lock lock{d.mutex};
  if (!std::exchange(d.stopping, true)) {
    d.leases.clear();
    for (const auto& thread : d.threads) thread->stop();
  }
  const auto all = [&] { return d.ended == d.threads.size(); };
  if (d.all_ended.wait_for(lock, grace, all)) return true;
  // A command that does not heed SIGTERM is killed after its own grace; that, and its outcome, take a moment.
  d.all_ended.wait_for(lock, d.opts.kill_grace, [&] {
    const auto native =
        std::count_if(d.threads.begin(), d.threads.end(), [](const auto& t) { return t->runs_native(); });
    return d.ended + static_cast<std::size_t>(native) == d.threads.size();
  });
  return all();
}

void task_runner::await_end() {
  auto& d = *impl_;
  std::unique_lock lock{d.mutex};
  d.all_ended.wait(lock, [&] { return d.ended == d.threads.size(); });
}

} // namespace troupe
