#pragma once

/// Actors under virtual time: nothing runs and no time passes unless the test says so, and everything happens on the
/// test's own thread. For actors that start no thread of their own and no network. CAF's coordinator for tests is
/// spelled differently in its versions, so it stands here alone.

#include <memory>
#include <string>
#include <utility>

#include <caf/actor_system.hpp>
#include <caf/scoped_actor.hpp>

#include <troupe/messages/caf_compat.hpp>
#include <troupe/runtime/result.hpp>
#include <troupe/runtime/time.hpp>

namespace troupe::testing {

class virtual_system {
public:
  virtual_system();
  /// Ends every actor that was handed to `end_with_system`, and waits for none else: end yours before.
  ~virtual_system();
  virtual_system(const virtual_system&) = delete;
  virtual_system& operator=(const virtual_system&) = delete;

  caf::actor_system& system() noexcept;
  caf::scoped_actor& self() noexcept;

  /// Lets every actor handle what it has, and what comes of it, until nobody has anything to do. No time passes.
  void settle();
  /// Time passes in steps, and everything that becomes due runs in its time.
  void pass(duration time, duration step = std::chrono::milliseconds{10});
  /// Time passes at once, as for a process that was stopped meanwhile; then everything that is due runs.
  void jump(duration time);
  /// Whether something has come for the test itself that was not received yet.
  bool has_mail();
  /// The actors' time.
  time_point now() const;

  /// Tells `whom` something and settles.
  template <class Handle, class... Args>
  void say(const Handle& whom, const Args&... what) {
    tell(self(), whom, what...);
    settle();
  }
  /// Asks `whom`, settles, and hands the answer to `on_answer`. @returns the error that came in its place, ec::none
  /// where there was none
  template <class Handle, class OnAnswer, class... Args>
  error request(const Handle& whom, OnAnswer on_answer, const Args&... question) {
    error failed;
    auto answer = ask(self(), whom, patience, question...);
    settle();
    if (!has_mail()) jump(patience);
    answer.receive(on_answer, [&](const caf::error& why) { failed = from_caf_error(system(), why); });
    return failed;
  }

  /// Ends the actor when the system ends.
  template <class Handle>
  Handle end_with_system(Handle actor) {
    remember(caf::actor_cast<caf::actor>(actor));
    return actor;
  }
  /// Ends an actor now, as if its process had died.
  template <class Handle>
  void end(const Handle& actor) {
    end_now(caf::actor_cast<caf::actor>(actor));
  }

private:
  static constexpr duration patience = std::chrono::hours{10};
  void remember(caf::actor actor);
  void end_now(const caf::actor& actor);

  struct impl;
  std::unique_ptr<impl> impl_;
};

} // namespace troupe::testing
