#include <troupe/launcher/interruption.hpp>

#include <csignal>
#include <cstdlib>
#include <ctime>

#include <pthread.h>

#include <troupe/runtime/execution/signals.hpp>

namespace troupe {
namespace {

sigset_t watched_signals() {
  auto set = unless_ignored({SIGINT, SIGTERM, SIGHUP});
  sigaddset(&set, SIGUSR2); // our own word to the thread
  return set;
}

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
    const auto limit = grace_ + std::chrono::milliseconds{400};
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
    const timespec wait{seconds.count(), (limit - seconds).count()};
    do signal = sigtimedwait(&set, nullptr, &wait);
    while (signal == SIGUSR2 && !over_);
    if (!over_) std::_Exit(130); // the keepers see our end and clear up
    calling.join();
    return;
  }
}

} // namespace troupe
