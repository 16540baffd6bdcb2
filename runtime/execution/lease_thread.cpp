#include <troupe/runtime/execution/lease_thread.hpp>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <pthread.h>
#include <vector>

#include <troupe/runtime/execution/failure_text.hpp>
#include <troupe/runtime/storage/block_store.hpp>

namespace troupe {

namespace {

/// Outcomes do not wait longer than this for others before the thread starts another task.
constexpr duration max_outcome_age = std::chrono::milliseconds{1};
/// Nor do so many bytes of results wait for more: they are one message.
constexpr std::size_t max_buffered_results = 1 << 20;

time_point now() { return std::chrono::steady_clock::now(); }

void name_this_thread(lease_id lease) {
  char name[16]; // the kernel's limit
  std::snprintf(name, sizeof name, "lease-%llu", static_cast<unsigned long long>(lease.value));
  ::pthread_setname_np(::pthread_self(), name);
}

bool is_task(const task_batch& batch, std::uint32_t i, const kill_task& which) {
  return batch.stage == which.stage && batch.partition(i) == which.partition && batch.attempt(i) == which.attempt;
}

} // namespace

lease_thread::lease_thread(shared& common)
  : common_(common), buffer_(common.flush_tasks), thread_([this] { main_loop(); }) {}

lease_thread::~lease_thread() { thread_.join(); }

void lease_thread::open(lease_terms terms) {
  const std::lock_guard lock{mutex_};
  terms_ = std::move(terms);
  closing_ = false;
}

bool lease_thread::close() {
  const std::lock_guard lock{mutex_};
  if (!current_.batch && queue_.empty() && buffer_.empty()) return true;
  closing_ = true;
  return false;
}

void lease_thread::push(std::shared_ptr<const task_batch> batch, std::shared_ptr<installed_stage> stage) {
  bool wake = false;
  {
    const std::lock_guard lock{mutex_};
    if (stopping_) return;
    queued_ += batch->count;
    queue_.push_back({std::move(batch), std::move(stage)});
    wake = sleeping_;
  }
  if (wake) wake_.notify_one();
}

void lease_thread::kill(const kill_task& which) {
  full_batches full;
  {
    const std::lock_guard lock{mutex_};
    if (running_ && is_task(*current_.batch, next_ - 1, which)) {
      cancel_running();
      return;
    }
    bool found = current_.batch && kill_queued(current_, next_, which, full);
    for (auto w = queue_.begin(); !found && w != queue_.end(); ++w) found = kill_queued(*w, 0, which, full);
  }
  for (auto& batch : full) common_.on_outcomes(std::move(batch));
}

bool lease_thread::kill_queued(const work& in, std::uint32_t from, const kill_task& which, full_batches& full) {
  const auto& b = *in.batch;
  auto i = from;
  if (b.partitions.empty()) {
    if (which.partition < b.first || which.partition - b.first < from) return false;
    i = which.partition - b.first;
    if (i >= b.count || !is_task(b, i, which)) return false;
  } else {
    while (i < b.count && !is_task(b, i, which)) ++i;
    if (i == b.count) return false;
  }
  if (booked_.emplace(&b, i).second) book_unbegun(b, i, task_status::killed, full);
  return true;
}

void lease_thread::give_back() {
  full_batches full;
  {
    const std::lock_guard lock{mutex_};
    if (current_.batch)
      for (auto i = next_; i < current_.batch->count; ++i)
        if (booked_.emplace(current_.batch.get(), i).second)
          book_unbegun(*current_.batch, i, task_status::given_back, full);
    for (const auto& w : queue_) book_rest(w, 0, task_status::given_back, full);
    queue_.clear();
  }
  for (auto& batch : full) common_.on_outcomes(std::move(batch));
}

void lease_thread::forget(const installed_stage& stage) {
  full_batches full;
  {
    const std::lock_guard lock{mutex_};
    for (const auto& w : queue_)
      if (w.stage.get() == &stage) book_rest(w, 0, task_status::killed, full);
    std::erase_if(queue_, [&](const work& w) { return w.stage.get() == &stage; });
    if (current_.stage.get() == &stage && running_) cancel_running();
    if (sleeping_ && current_.stage.get() == &stage) wake_.notify_one(); // in the middle of a batch
  }
  for (auto& batch : full) common_.on_outcomes(std::move(batch));
}

void lease_thread::book_rest(const work& in, std::uint32_t from, task_status status, full_batches& full) {
  for (auto i = from; i < in.batch->count; ++i)
    if (booked_.erase({in.batch.get(), i}) == 0) book_unbegun(*in.batch, i, status, full);
}

void lease_thread::book_unbegun(const task_batch& b, std::uint32_t i, task_status status, full_batches& full) {
  --queued_;
  // Booked at once: the task that runs before it may take hours. It joins the buffer, since these come in crowds.
  if (buffer_.is_for_another(b.stage, b.stage_attempt, b.lease) || buffer_.count() >= common_.flush_tasks)
    if (auto out = buffer_.take()) full.push_back(std::move(out));
  buffer_.open(b.stage, b.stage_attempt, b.lease, now());
  const auto* why = status == task_status::killed ? "killed before it started" : "given back before it started";
  buffer_.add_failure(b.partition(i), b.attempt(i), status, std::move(*failed_attempt(status, why).failure));
}

void lease_thread::go_on() {
  const std::lock_guard lock{mutex_};
  wake_.notify_one();
}

void lease_thread::flush() {
  std::shared_ptr<outcome_batch> out;
  bool ran_here = false;
  {
    const std::lock_guard lock{mutex_};
    out = buffer_.take();
    ran_here = buffered_ran_here_;
  }
  if (!out) return;
  if (ran_here) out->peak_memory = std::max(out->peak_memory, common_.peak_memory.read(now()));
  common_.on_outcomes(std::move(out));
}

void lease_thread::stop() {
  const std::lock_guard lock{mutex_};
  stopping_ = true;
  queue_.clear();
  queued_ = 0;
  buffer_.take();
  cancel_running();
  wake_.notify_one();
}

std::pair<std::uint32_t, std::uint32_t> lease_thread::load() const {
  const std::lock_guard lock{mutex_};
  return {running_ ? 1u : 0u, static_cast<std::uint32_t>(queued_)};
}

void lease_thread::append_running(std::vector<running_attempt>& to) const {
  const std::lock_guard lock{mutex_};
  if (!running_) return;
  const auto& b = *current_.batch;
  to.push_back({b.stage, b.partition(next_ - 1), b.attempt(next_ - 1), b.lease});
}

void lease_thread::append_overdue(time_point now, duration grace, std::vector<overdue_attempt>& to) {
  const std::lock_guard lock{mutex_};
  if (!running_ || stopping_ || overdue_told_) return;
  const auto version = current_.stage->version();
  if (version->command) return; // its thread looks after it, and kills it after the same time
  if (!cancelled_.load(std::memory_order_relaxed)) {
    if (!seen_) seen_ = now;
    if (version->install.task_timeout == never || now - *seen_ < version->install.task_timeout) return;
    timed_out_ = true;
    cancel_running();
  }
  if (!asked_) asked_ = now;
  const auto waited = now - *asked_;
  if (waited < grace) return;
  overdue_told_ = true;
  const auto& b = *current_.batch;
  to.push_back({b.stage, b.partition(next_ - 1), b.attempt(next_ - 1), b.lease, version->install.job,
                version->install.name, static_cast<std::uint64_t>(waited.count()), timed_out_});
}

bool lease_thread::runs_native() const {
  const std::lock_guard lock{mutex_};
  return running_ && !current_.stage->version()->command;
}

void lease_thread::cancel_running() {
  cancelled_.store(true, std::memory_order_relaxed);
  if (stop_command_) stop_command_->request();
  common_.gang->wake(cancelled_);
}

void lease_thread::main_loop() {
  lease_id named;
  guard lock{mutex_};
  while (!stopping_) {
    if (!queue_.empty() && may_begin(now())) {
      if (named != terms_.lease) name_this_thread(named = terms_.lease);
      run_next_batch(lock);
    } else if (!buffer_.empty()) {
      send_buffered(lock);
    } else if (closing_ && queue_.empty()) {
      closing_ = false;
      lock.unlock();
      common_.on_parked(*this);
      lock.lock();
    } else {
      sleep(lock);
    }
  }
  lock.unlock();
  common_.on_ended();
}

void lease_thread::sleep(guard& lock) {
  sleeping_ = true;
  wake_.wait(lock);
  sleeping_ = false;
}

void lease_thread::run_next_batch(guard& lock) {
  current_ = std::move(queue_.front());
  queue_.pop_front();
  next_ = 0;
  const auto& batch = *current_.batch;
  const auto& stage = *current_.stage;
  const auto version = stage.version();
  task_context::environment env;
  env.executor = common_.executor;
  env.resources = &terms_.resources;
  env.shuffles = common_.shuffles;
  env.broadcasts = common_.broadcasts;
  env.stage = &version->install;
  env.cancelled = &cancelled_;
  env.stage_attempt = batch.stage_attempt;
  env.gang = common_.gang;
  if (common_.results.blocks) env.directories = &common_.results.blocks->directories();
  env.compression = common_.results.compression;
  env.memory = terms_.memory;
  task_context context{env};
  if (version->command && !stop_command_) stop_command_.emplace();
  auto begin = now();
  while (next_ < batch.count && !stopping_ && !stage.removed()) {
    if (!may_begin(begin)) {
      sleep(lock);
      begin = now();
      continue;
    }
    const auto i = next_++;
    if (!booked_.empty() && booked_.erase({&batch, i}) > 0) continue;
    --queued_;
    running_ = true;
    cancelled_.store(false, std::memory_order_relaxed);
    seen_.reset();
    asked_.reset();
    timed_out_ = false;
    overdue_told_ = false;
    if (version->command) stop_command_->clear();
    lock.unlock();
    auto end = run_task(*version, context, batch, i);
    const auto ended = now();
    lock.lock();
    running_ = false;
    book(lock, batch, i, std::move(end), {begin, ended, !version->command});
    begin = ended;
  }
  if (next_ < batch.count && !stopping_) { // left early: the stage is gone
    full_batches full;
    book_rest(current_, std::exchange(next_, batch.count), task_status::killed, full);
    lock.unlock();
    for (auto& out : full) common_.on_outcomes(std::move(out));
    lock.lock();
  }
  current_ = {};
}

attempt_end lease_thread::run_task(const stage_version& version, task_context& context, const task_batch& batch,
                                   std::uint32_t i) {
  if (!version.plan && !version.command) return failed_attempt(task_status::failed, version.fault.message);
  std::string_view argument;
  if (batch.arguments && !batch.arguments->empty()) {
    // The batch came from outside: an entry that its column lacks is a failure, not undefined behaviour.
    const std::uint64_t entry = batch.by_partition ? std::uint64_t{batch.partition(i)} - batch.argument_offset
                                                   : std::uint64_t{batch.argument_offset} + i;
    if (entry >= batch.arguments->size())
      return failed_attempt(task_status::failed,
                            "the batch has no argument for partition " + std::to_string(batch.partition(i)));
    argument = (*batch.arguments)[entry];
  }
  if (version.command) return run_command(version, batch, i, argument);
  context.begin(batch.partition(i), batch.attempt(i), &batch, i);
  return run_native_task(*version.plan, context, argument, common_.results);
}

attempt_end lease_thread::run_command(const stage_version& version, const task_batch& batch, std::uint32_t i,
                                      std::string_view argument) {
  command_task task{
      version.install,  *version.command, terms_.resources, batch.partition(i),  batch.attempt(i), argument, {},
      common_.shuffles, common_.results,  terms_.memory,    current_.stage.get()};
  // The batch came from outside; what it does not say well is as if it were not said.
  if (common_.shuffles)
    for (const auto& input : batch.inputs)
      if (i < input.endpoint_of_task.size() && i < input.attempt_of_task.size() &&
          input.endpoint_of_task[i] < input.endpoints.size())
        task.inputs.push_back({input.endpoints[input.endpoint_of_task[i]],
                               input.stage,
                               batch.partition(i),
                               input.attempt_of_task[i],
                               {}});
  return run_command_task(task, common_.commands, *stop_command_);
}

void lease_thread::book(guard& lock, const task_batch& batch, std::uint32_t i, attempt_end end, const run_of& run) {
  const auto partition = batch.partition(i);
  const auto attempt = batch.attempt(i);
  // First of all, since it lets go of the lock.
  if (buffer_.is_for_another(batch.stage, batch.stage_attempt, batch.lease)) send_buffered(lock);
  const bool killed = cancelled_.load(std::memory_order_relaxed) || current_.stage->removed();
  if ((stopping_ || killed) && end.stored()) {
    common_.results.blocks->remove(output_key(batch.stage, partition, attempt));
    if (end.kind == result_kind::kept_output) // nobody will know of it
      common_.results.blocks->evict(current_.stage->version()->install.keeps, partition);
  }
  if ((stopping_ || killed) && end.staged) discard_staged(*end.staged);
  if (stopping_) return;
  buffer_.open(batch.stage, batch.stage_attempt, batch.lease, run.begin);
  buffered_ran_here_ = run.in_this_process;
  if (killed && timed_out_ && !current_.stage->removed()) {
    const auto& install = current_.stage->version()->install;
    end = failed_attempt(task_status::failed, describe_time_limit("the task", install.task_timeout));
    end.failure->cause = failure_cause::time_limit;
    buffer_.add_failure(partition, attempt, end.status, std::move(*end.failure));
  } else if (killed) {
    end = failed_attempt(task_status::killed, "killed while it ran");
    buffer_.add_failure(partition, attempt, end.status, std::move(*end.failure));
  } else if (end.failure) {
    buffer_.add_failure(partition, attempt, end.status, std::move(*end.failure));
  } else if (end.kind == result_kind::inline_value) {
    buffer_.add_value(partition, attempt, end.value);
  } else {
    buffer_.add_block(partition, attempt, end.kind, end.bytes, end.buckets);
  }
  if (!end.failure) buffer_.add_counted(end.counted);
  buffer_.add_usage(run.end - run.begin, end.cpu_nanoseconds, end.bytes, end.peak_memory);
  if (!end.left.empty()) buffer_.add_left(std::move(end.left));
  const bool last = i + 1 == batch.count && queue_.empty();
  if (last || buffer_.count() >= common_.flush_tasks || buffer_.result_bytes() >= max_buffered_results ||
      run.end - buffer_.oldest() >= max_outcome_age)
    send_buffered(lock);
}

void lease_thread::send_buffered(guard& lock) {
  auto out = buffer_.take();
  if (!out) return;
  const bool ran_here = buffered_ran_here_;
  lock.unlock();
  const auto cpu = cpu_since_last_asked();
  if (ran_here) {
    out->cpu_nanoseconds += cpu;
    out->peak_memory = std::max(out->peak_memory, common_.peak_memory.read(now()));
  }
  common_.on_outcomes(std::move(out));
  lock.lock();
}

std::uint64_t lease_thread::cpu_since_last_asked() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  const auto total = static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_nsec);
  return total - std::exchange(cpu_mark_, total);
}

} // namespace troupe
