#include <troupe/launcher/interruption.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <iostream>

#include <pthread.h>

#include <troupe/runtime/execution/signals.hpp>

namespace troupe {
namespace {

sigset_t watched_signals() {
  auto set = unless_ignored({SIGINT, SIGTERM, SIGHUP});
  sigaddset(&set, SIGUSR2); // our own word to the thread
  return set;
}

/// After which people are told that something takes its time to end.
constexpr duration silence = std::chrono::seconds{1};

} // namespace

interruption::interruption(duration grace) : grace_(grace) {
  const auto set = watched_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  thread_ = std::thread{[this] { watch(); }};
}

interruption::~interruption() {
  over_ = true;
  pthread_kill(thread_.native_handle(), SIGUSR2);
  thread_.join();
}

void interruption::on_signal(std::function<void()> handler) {
  std::lock_guard lock{mutex_};
  handler_ = std::move(handler);
  if (requested_ && handler_) handler_();
}

void interruption::watch() {
  pthread_setname_np(pthread_self(), "troupe-signals");
  const auto set = watched_signals();
  for (;;) {
    int signal = 0;
    if (sigwait(&set, &signal) != 0) continue;
    if (over_) return;
    if (signal == SIGUSR2) continue;
    requested_ = true;
    std::function<void()> handler;
    {
      std::lock_guard lock{mutex_};
      handler = handler_;
    }
    // The handler may wait for a driver that does not answer: the deadline runs beside it.
    std::thread calling{[handler] {
      if (handler) handler();
    }};
    const auto begin = std::chrono::steady_clock::now();
    const auto deadline = begin + grace_ + std::chrono::milliseconds{400};
    auto next = std::min<time_point>(deadline, begin + silence);
    for (bool is_second = false; !is_second && !over_;) {
      const auto left = std::max<duration>(next - std::chrono::steady_clock::now(), duration::zero());
      const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
      const timespec wait{seconds.count(), (left - seconds).count()};
      signal = sigtimedwait(&set, nullptr, &wait);
      is_second = signal > 0 && signal != SIGUSR2;
      // The system may wake a thread for none of these signals: that is neither a second one nor the end.
      if (is_second || std::chrono::steady_clock::now() < next) continue;
      if (next == deadline) break;
      next = deadline;
      if (!over_) std::cerr << "troupe: waits for what is ending; a second Ctrl-C ends it at once\n";
    }
    if (!over_) std::_Exit(130); // the keepers see our end and clear up
    calling.join();
    return;
  }
}

} // namespace troupe
