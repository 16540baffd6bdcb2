// What this machine takes to wake somebody who sleeps: the physical limit of a job of one task, which is a chain of
// such wake-ups. Prints lines of JSON with the median of one hop, after a pause of 1 ms like the jobs of `task_rate
// latency`.
#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <iostream>
#include <mutex>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using steady = std::chrono::steady_clock;
constexpr int rounds = 2000;

double microseconds_since(steady::time_point start) {
  return std::chrono::duration<double, std::micro>(steady::now() - start).count();
}

/// Two hops a round.
template <class Round>
void measure(const char* what, Round round) {
  std::vector<double> hops;
  for (int i = 0; i < rounds; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
    const auto start = steady::now();
    round();
    hops.push_back(microseconds_since(start) / 2);
  }
  std::sort(hops.begin(), hops.end());
  std::cout << "{\"what\": \"" << what << "\", \"p50_us\": " << hops[rounds / 2] << "}\n";
}

void between_threads() {
  std::mutex mutex;
  std::condition_variable ping;
  std::condition_variable pong;
  int asked = 0;
  int answered = 0;
  std::thread other{[&] {
    std::unique_lock lock{mutex};
    while (answered < rounds) {
      ping.wait(lock, [&] { return asked > answered; });
      ++answered;
      pong.notify_one();
    }
  }};
  measure("wake-up between threads", [&] {
    std::unique_lock lock{mutex};
    ++asked;
    ping.notify_one();
    pong.wait(lock, [&] { return answered == asked; });
  });
  other.join();
}

void between_processes() {
  const int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof where;
  if (bind(listening, reinterpret_cast<sockaddr*>(&where), sizeof where) != 0 || listen(listening, 1) != 0 ||
      getsockname(listening, reinterpret_cast<sockaddr*>(&where), &size) != 0)
    std::exit(1);
  std::array<char, 64> message{};
  const int on = 1;
  const pid_t child = fork();
  if (child == 0) {
    const int s = accept(listening, nullptr, nullptr);
    setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    while (recv(s, message.data(), message.size(), MSG_WAITALL) == static_cast<ssize_t>(message.size()))
      if (write(s, message.data(), message.size()) < 0) break;
    _exit(0);
  }
  const int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(s, reinterpret_cast<sockaddr*>(&where), sizeof where) != 0) std::exit(1);
  setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  measure("message between processes, plain sockets", [&] {
    if (write(s, message.data(), message.size()) < 0) std::exit(1);
    if (recv(s, message.data(), message.size(), MSG_WAITALL) < 0) std::exit(1);
  });
  close(s);
  waitpid(child, nullptr, 0);
}

} // namespace

int main() {
  between_processes(); // before there is another thread
  between_threads();
}
