#include <troupe/runtime/execution/output_publisher.hpp>

#include <algorithm>
#include <exception>
#include <optional>
#include <pthread.h>
#include <system_error>

#include <troupe/runtime/execution/staged_outputs.hpp>
#include <troupe/runtime/execution/staging_root.hpp>

namespace troupe {

namespace {

/// Ends that are told at once at most.
constexpr std::size_t max_told = 64;

} // namespace

output_publisher::output_publisher(options opts) : options_(std::move(opts)) {}

output_publisher::~output_publisher() {
  {
    const std::lock_guard lock{mutex_};
    stopping_ = true;
    waiting_.clear();
    retries_.clear();
    ends_ = {};
  }
  wake_.notify_all();
  timer_.notify_all();
  for (auto& thread : threads_) thread.join();
  if (timekeeper_.joinable()) timekeeper_.join();
}

void output_publisher::publish(publication_task what) {
  const std::lock_guard lock{mutex_};
  if (ending_ || is_closing(what.stage)) return;
  waiting_.push_back(std::move(what));
  ensure_thread();
}

void output_publisher::discard(publication_task what) {
  const std::lock_guard lock{mutex_};
  add_chore([place = place_of(options_.session, what.stage, what.partition, what.attempt, what.executor,
                              what.output_directory)] { discard_staged(place); });
}

void output_publisher::later(std::function<void()> what) {
  const std::lock_guard lock{mutex_};
  leisurely_.push_back(std::move(what));
  ensure_thread();
}

void output_publisher::forget(stage_id stage, std::function<void()> remove) {
  const std::lock_guard lock{mutex_};
  start({{stage}, std::move(remove), {}});
}

void output_publisher::close(job_id job, std::vector<std::pair<stage_id, std::string>> stages) {
  closing what;
  std::vector<std::string> roots;
  for (const auto& [stage, output_directory] : stages) {
    what.stages.push_back(stage);
    roots.push_back(staging_root(options_.session, stage, output_directory));
  }
  what.remove = [roots = std::move(roots)] {
    for (const auto& root : roots) remove_staging(root);
  };
  what.tell = [this, job](bool clean) { options_.on_closed(job, clean); };
  const std::lock_guard lock{mutex_};
  start(std::move(what));
}

void output_publisher::end() {
  const std::lock_guard lock{mutex_};
  ending_ = true;
  waiting_.clear();
  for (auto& r : retries_) // it will not be tried again, and nobody else is to
    ends_.ends.push_back(
        {r.what.stage, r.what.partition, r.what.attempt, publication_outcome::failed, std::move(r.reason)});
  retries_.clear();
  if (!ends_.ends.empty()) ensure_thread();
  start({{}, [] {}, options_.on_ended, true});
}

void output_publisher::wake() {
  const std::lock_guard lock{mutex_};
  wake_.notify_all();
}

void output_publisher::start(closing what) {
  const auto is_of_it = [&](const publication_task& w) {
    return std::find(what.stages.begin(), what.stages.end(), w.stage) != what.stages.end();
  };
  std::erase_if(waiting_, is_of_it);
  std::erase_if(retries_, [&](const retry& r) { return is_of_it(r.what); });
  const bool tells = what.tell != nullptr;
  what.deadline = std::chrono::steady_clock::now() + options_.patience;
  closings_.push_back(std::move(what));
  remove_what_is_ready();
  if (!tells) return;
  if (!timekeeper_.joinable()) timekeeper_ = std::thread{[this] { keep_time(); }};
  timer_.notify_one();
}

bool output_publisher::is_closing(stage_id stage) const {
  return std::any_of(closings_.begin(), closings_.end(), [&](const closing& c) {
    return std::find(c.stages.begin(), c.stages.end(), stage) != c.stages.end();
  });
}

bool output_publisher::is_in_hand(const closing& what) const {
  if (what.all) return !in_hand_.empty() || telling_ > 0 || !ends_.ends.empty();
  return std::any_of(what.stages.begin(), what.stages.end(), [&](stage_id s) { return in_hand_.contains(s); });
}

void output_publisher::remove_what_is_ready() {
  for (auto c = closings_.begin(); c != closings_.end(); ++c) {
    if (c->removing || is_in_hand(*c)) continue;
    c->removing = true;
    add_chore([this, c] { finish(c); });
  }
}

void output_publisher::finish(std::list<closing>::iterator which) {
  which->remove();
  guard lock{mutex_};
  const auto tell = std::move(which->tell);
  closings_.erase(which);
  const bool stopping = stopping_;
  lock.unlock();
  if (tell && !stopping) tell(true);
}

void output_publisher::add_chore(std::function<void()> chore) {
  chores_.push_back(std::move(chore));
  ensure_thread();
}

void output_publisher::ensure_thread() {
  if (stopping_) return;
  if (idle_ > 0) wake_.notify_one();
  // One that is at leisure, which may take long, is none of those that others wait for.
  const std::size_t most = std::max(1u, options_.threads) + (at_leisure_ ? 1 : 0);
  if (chores_.size() + waiting_.size() + leisurely_.size() <= idle_ || threads_.size() >= most) return;
  try {
    threads_.emplace_back([this] { work(); });
  } catch (const std::system_error&) { // then those that there are do it
    if (threads_.empty()) throw;
  }
}

void output_publisher::work() {
  ::pthread_setname_np(::pthread_self(), "publisher");
  guard lock{mutex_};
  while (!stopping_ || !chores_.empty() || (!leisurely_.empty() && !at_leisure_)) {
    const bool has_work = !waiting_.empty() || has_due();
    const bool may_begin = !has_work || !options_.may_begin || options_.may_begin();
    if (!chores_.empty() && !ends_.ends.empty() && !stopping_) { // nothing is told any more when it stops
      tell_ends(lock);                                           // removing may take long, and dependants wait for them
    } else if (!chores_.empty()) {
      const auto chore = std::move(chores_.front());
      chores_.pop_front();
      lock.unlock();
      chore();
      lock.lock();
    } else if (has_work && may_begin) {
      publish_next(lock);
    } else if (!ends_.ends.empty() && !stopping_) {
      tell_ends(lock);
    } else if (!leisurely_.empty() && !at_leisure_) {
      const auto what = std::move(leisurely_.front());
      leisurely_.pop_front();
      at_leisure_ = true;
      lock.unlock();
      what();
      lock.lock();
      at_leisure_ = false;
    } else {
      wait_for_work(lock, may_begin);
    }
  }
}

/// @param may_begin what was said of those that are due: without leave they wait for `wake`, and else for their time,
/// also where it has just come
void output_publisher::wait_for_work(guard& lock, bool may_begin) {
  ++idle_;
  std::optional<time_point> next;
  const auto now = may_begin ? time_point::min() : std::chrono::steady_clock::now();
  for (const auto& r : retries_)
    if (r.at > now) next = next ? std::min(*next, r.at) : r.at;
  if (next)
    wake_.wait_until(lock, *next);
  else
    wake_.wait(lock);
  --idle_;
}

bool output_publisher::has_due() const {
  if (retries_.empty()) return false;
  const auto now = std::chrono::steady_clock::now();
  return std::any_of(retries_.begin(), retries_.end(), [&](const retry& r) { return r.at <= now; });
}

void output_publisher::publish_next(guard& lock) {
  const auto now = std::chrono::steady_clock::now();
  const auto due = std::find_if(retries_.begin(), retries_.end(), [&](const retry& r) { return r.at <= now; });
  if (due != retries_.end()) {
    auto again = std::move(*due);
    retries_.erase(due);
    return publish_now(lock, std::move(again));
  }
  retry first;
  first.what = std::move(waiting_.front());
  waiting_.pop_front();
  publish_now(lock, std::move(first));
}

void output_publisher::publish_now(guard& lock, retry now) {
  const auto& what = now.what;
  ++in_hand_[what.stage];
  lock.unlock();
  const auto place =
      place_of(options_.session, what.stage, what.partition, what.attempt, what.executor, what.output_directory);
  published end;
  try {
    end = options_.publishes(place, what.outputs);
  } catch (const std::exception& e) {
    end = {publication_outcome::failed, std::string{"cannot publish outputs: "} + e.what(), false};
  }
  if (now.begun && end.outcome == publication_outcome::not_seen && end.gone) end = {}; // somebody else has completed it
  const bool again = end.may_pass && now.tries < options_.pauses.size();
  if (end.may_pass && !again) give_up_staged(place);
  lock.lock();
  const auto stage = what.stage;
  const bool told = !is_closing(stage);
  if (told && again && !ending_ && !stopping_) {
    const auto at = std::chrono::steady_clock::now() + options_.pauses[now.tries];
    retries_.push_back({what, now.tries + 1, at, now.begun || end.begun, std::move(end.reason)});
    wake_.notify_one(); // who waits may have to wait for less
  } else if (told && !stopping_)
    ends_.ends.push_back({stage, what.partition, what.attempt, end.outcome, std::move(end.reason)});
  const auto enough = std::clamp<std::size_t>(waiting_.size() / std::max(1u, options_.threads), 1, max_told);
  if (ending_ || waiting_.empty() || ends_.ends.size() >= enough) tell_ends(lock);
  if (const auto in_hand = in_hand_.find(stage); --in_hand->second == 0) in_hand_.erase(in_hand);
  remove_what_is_ready();
}

void output_publisher::tell_ends(guard& lock) {
  if (ends_.ends.empty() || stopping_) return;
  auto told = std::exchange(ends_, {});
  ++telling_;
  lock.unlock();
  options_.on_ends(std::move(told));
  lock.lock();
  --telling_;
  remove_what_is_ready();
}

void output_publisher::keep_time() {
  ::pthread_setname_np(::pthread_self(), "publisher-time");
  guard lock{mutex_};
  while (!stopping_) {
    std::vector<std::function<void(bool)>> late;
    std::optional<time_point> next;
    const time_point now = std::chrono::steady_clock::now();
    for (auto& c : closings_) {
      if (!c.tell) continue;
      if (c.deadline <= now)
        late.push_back(std::exchange(c.tell, nullptr));
      else
        next = next ? std::min(*next, c.deadline) : c.deadline;
    }
    if (!late.empty()) {
      lock.unlock();
      for (const auto& tell : late) tell(false);
      lock.lock();
    } else if (next) {
      timer_.wait_until(lock, *next);
    } else {
      timer_.wait(lock);
    }
  }
}

} // namespace troupe
