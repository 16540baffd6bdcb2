#include <troupe/runtime/transfer/takeover_worker.hpp>

#include <exception>
#include <utility>

#include <pthread.h>

namespace troupe {

takeover_worker::takeover_worker(action does) : does_(std::move(does)), thread_([this] { work(); }) {}

takeover_worker::~takeover_worker() {
  {
    const std::lock_guard lock{mutex_};
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void takeover_worker::start(block_takeover what) {
  const std::lock_guard lock{mutex_};
  waiting_.push_back(std::move(what));
  wake_.notify_one();
}

std::vector<block_takeover> takeover_worker::take_done() {
  const std::lock_guard lock{mutex_};
  return std::exchange(done_, {});
}

void takeover_worker::work() {
  ::pthread_setname_np(::pthread_self(), "take-over");
  std::unique_lock lock{mutex_};
  while (!stopping_) {
    if (waiting_.empty()) {
      wake_.wait(lock);
      continue;
    }
    const auto what = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    block_takeover got{what.from, {}, what.sockets};
    try {
      got = does_(what, [this] { return stopping_.load(std::memory_order_relaxed); });
    } catch (const std::exception&) { // no memory: then it has nothing, and says so
    }
    lock.lock();
    done_.push_back(std::move(got));
  }
}

} // namespace troupe
