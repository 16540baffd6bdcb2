#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <troupe/runtime/result.hpp>
#include <troupe/runtime/time.hpp>

namespace troupe {

/// What a process in the background says to the one that started it: once, when it is ready or has failed.
class readiness {
public:
  explicit readiness(int fd) : fd_(fd) {}
  void ready(const std::string& text);
  void failed(const error& why);
  /// Nobody waits any more: it was interrupted or has ended. What is not ready by then should end too.
  bool abandoned() const;

private:
  void send(char kind, std::uint16_t code, const std::string& text);
  int fd_;
};

/// Runs `body` in a process that outlives this one: in a session of its own, without terminal, standard streams at
/// /dev/null. To be called before there is any other thread. Waits until the process has said what it has to say.
/// Gives its text, or its error; one that ends without a word is an error. SIGINT, SIGTERM and SIGHUP meanwhile tell it
/// that it is abandoned: it may take `grace` to end, then the error is ec::cancelled; or it was ready already. In the
/// new process this call does not return: it exits with what `body` returns.
result<std::string> run_in_background(const std::function<int(readiness&)>& body, duration grace);

} // namespace troupe
