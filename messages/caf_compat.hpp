#pragma once

/// Every CAF spelling that differs between 0.17 and 1.x. Actors use these names and nothing that they replace, so that
/// one code base serves both (0.17.6 is the one that is built and tested). What is spelled alike stays CAF's own:
/// `caf::result`, `caf::typed_response_promise`, `make_response_promise`, `scoped_actor`, `spawn`, `publish`,
/// `remote_actor`.

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <caf/actor_addr.hpp>
#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/error.hpp>
#include <caf/exit_reason.hpp>
#include <caf/node_id.hpp>
#include <caf/result.hpp>
#include <caf/scheduled_actor.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/sec.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_actor.hpp>
#include <caf/typed_behavior.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include <troupe/messages/caf_version.hpp>
#include <troupe/runtime/result.hpp>

#if TROUPE_CAF1
#include <mutex>

#include <caf/init_global_meta_objects.hpp>
#include <caf/io/middleman.hpp>
#endif

namespace troupe {

// -- types that CAF carries
// -----------------------------------------------------------------------------------------------------

/// Announces the types of an id block: 0.17 wants it of each configuration, 1.x of each process, for which this does
/// nothing.
template <class Block>
void announce_to_config([[maybe_unused]] caf::actor_system_config& config) {
#if !TROUPE_CAF1
  config.add_message_types<Block>();
#endif
}

/// The same for 1.x; does nothing for 0.17. Any number of times, any thread.
template <class Block>
void announce_to_process() {
#if TROUPE_CAF1
  static std::once_flag once;
  std::call_once(once, [] {
    caf::init_global_meta_objects<Block>();
    caf::io::middleman::init_global_meta_objects();
    caf::core::init_global_meta_objects();
  });
#endif
}

/// What `inspect` returns for a type without content.
template <class Inspector, class T>
auto inspect_nothing(Inspector& f, [[maybe_unused]] T& x) {
#if TROUPE_CAF1
  return f.object(x).fields();
#else
  return f();
#endif
}

/// What `inspect` returns for a type that travels as one text of bytes. `save(bytes)` and `load(bytes)` say whether
/// they could; people see `name` and never the bytes.
template <class Inspector, class T, class Save, class Load>
auto inspect_bytes(Inspector& f, [[maybe_unused]] T& x, [[maybe_unused]] std::string_view name, Save save, Load load) {
#if TROUPE_CAF1
  auto get = [save] {
    std::string bytes;
    if constexpr (!Inspector::is_loading) save(bytes); // what fails to encode goes out as "", which no receiver takes
    return bytes;
  };
  auto set = [load](const std::string& bytes) { return load(bytes); };
  return f.object(x).fields(f.field("bytes", get, set));
#else
  using result_type = typename Inspector::result_type;
  if constexpr (std::is_void_v<result_type>) { // text for people
    std::string shown{name};
    f(shown);
  } else if constexpr (Inspector::writes_state) {
    std::string bytes;
    result_type failure = f(bytes);
    if (!failure && !load(bytes)) failure = caf::make_error(caf::sec::invalid_argument, "malformed message");
    return failure;
  } else {
    std::string bytes;
    if (!save(bytes)) return result_type{caf::make_error(caf::sec::invalid_argument, "message cannot be encoded")};
    return result_type{f(bytes)};
  }
#endif
}

// -- what the middleman is asked and answers
// -----------------------------------------------------------------------------------------------------

#if TROUPE_CAF1
inline constexpr auto connect_request = caf::connect_atom_v;
inline constexpr auto malformed_handshake = caf::sec::malformed_message;
#else
inline constexpr auto connect_request = caf::connect_atom::value;
inline constexpr auto malformed_handshake = caf::sec::malformed_basp_message;
#endif

// -- typed handles
// -----------------------------------------------------------------------------------------------------

/// Stands for several values in the reply of a signature: `replies<R1, R2>(A)`.
template <class... R>
struct replies;

namespace detail {

template <class Signature>
struct caf_signature;

#if TROUPE_CAF1
template <class R, class... A>
struct caf_signature<R(A...)> {
  using type = caf::result<R>(A...);
};
template <class... R, class... A>
struct caf_signature<replies<R...>(A...)> {
  using type = caf::result<R...>(A...);
};
#else
template <class R, class... A>
struct caf_signature<R(A...)> {
  using type = typename caf::replies_to<A...>::template with<R>;
};
template <class... A>
struct caf_signature<void(A...)> {
  using type = caf::reacts_to<A...>;
};
template <class... R, class... A>
struct caf_signature<replies<R...>(A...)> {
  using type = typename caf::replies_to<A...>::template with<R...>;
};
#endif

} // namespace detail

/// A statically typed actor handle: `handle<reply(question), void(notice)>`.
template <class... Signatures>
using handle = caf::typed_actor<typename detail::caf_signature<Signatures>::type...>;

/// `Handle` with more signatures; converts to it.
template <class Handle, class... Signatures>
using extended = typename Handle::template extend<typename detail::caf_signature<Signatures>::type...>;

namespace detail {

/// Stands in the mailbox for a message that was refused. Never announced, so it cannot come over a connection.
struct forged_message {
  const char* what = "";
};

} // namespace detail
} // namespace troupe

template <>
struct caf::allowed_unsafe_message_type<troupe::detail::forged_message> : std::true_type {};

namespace troupe {
namespace detail {

/// The way into an actor's mailbox that starts from a function call of this process and from nowhere else.
class trusted_mailbox {
public:
  /// Puts `what` into the mailbox as it is. Any thread.
  virtual void take(caf::mailbox_element_ptr what) = 0;

protected:
  ~trusted_mailbox() = default;
};

/// An actor that takes orders to end (see `shut_down`) and notices of an end (see `watch`) by function calls alone.
/// CAF's messages of these kinds, its links and its streams can all be read from a connection in any name, so they are
/// refused, whoever is said to have sent them.
template <class Base>
class guarded : public Base, public trusted_mailbox {
public:
  using Base::Base;
  using Base::enqueue;

  void take(caf::mailbox_element_ptr what) override { Base::enqueue(std::move(what), nullptr); }

#if TROUPE_CAF1
  bool enqueue(caf::mailbox_element_ptr what, caf::scheduler* host) override {
    const auto& content = what->payload;
    const char* forged = nullptr;
#else
  void enqueue(caf::mailbox_element_ptr what, caf::execution_unit* host) override {
    const auto& content = what->content();
    const char* forged = what->mid.is_stream_message() || content.template match_elements<caf::open_stream_msg>()
                             ? "a message of a stream"
                             : nullptr;
#endif
    if (content.template match_elements<caf::exit_msg>()) forged = "an order to end";
    if (content.template match_elements<caf::down_msg>()) forged = "the notice of an end";
    if (forged != nullptr)
      what = caf::make_mailbox_element(what->sender, caf::make_message_id(), {}, forged_message{forged});
    return Base::enqueue(std::move(what), host);
  }

#if !TROUPE_CAF1
private:
  /// A packet may claim to be a question of this actor's own: what somebody refuses it then comes here as an answer. So
  /// nobody must be able to guess which answers are waited for.
  bool begin_questions_anywhere() {
    std::random_device dice;
    const auto begin = (std::uint64_t{dice()} << 32 | dice()) & (caf::message_id::request_id_mask >> 1);
    this->last_request_id_ = caf::make_message_id(caf::message_id::default_async_value | begin);
    return true;
  }
  const bool is_hidden_ = begin_questions_anywhere();

public:
  void add_link(caf::abstract_actor*) override {}
  void remove_link(caf::abstract_actor*) override {}
  bool add_backlink(caf::abstract_actor*) override { return false; }
  bool remove_backlink(caf::abstract_actor*) override { return false; }
#endif
};

} // namespace detail

/// The `self` of an actor of interface `Handle` with state `State`.
template <class Handle, class State>
using stateful_pointer = caf::stateful_actor<State, detail::guarded<std::remove_pointer_t<typename Handle::pointer>>>*;

/// The state of `self`.
template <class Self>
auto& state_of(Self* self) {
#if TROUPE_CAF1
  return self->state();
#else
  return self->state;
#endif
}

// -- sending
// -----------------------------------------------------------------------------------------------------------

/// Sends without waiting for an answer. `self` is an actor's own pointer or a `caf::scoped_actor`; the receiver's
/// handler must return nothing (use `ask` for one that answers).
template <class Self, class Handle, class... Args>
void tell(Self&& self, const Handle& receiver, Args&&... args) {
#if TROUPE_CAF1
  self->mail(std::forward<Args>(args)...).send(receiver);
#else
  self->send(receiver, std::forward<Args>(args)...);
#endif
}

/// Sends in the name of `sender`, from a thread that is no actor.
template <class Source, class Handle, class... Args>
void tell_as(const Source& sender, const Handle& receiver, Args&&... args) {
#if TROUPE_CAF1
  if (receiver)
    caf::actor_cast<caf::abstract_actor*>(receiver)->enqueue(
        caf::make_mailbox_element(caf::actor_cast<caf::strong_actor_ptr>(sender), caf::make_message_id(),
                                  std::forward<Args>(args)...),
        nullptr);
#else
  caf::send_as(sender, receiver, std::forward<Args>(args)...);
#endif
}

/// Sends when `delay` is over, in the name of `self`.
template <class Self, class Handle, class Rep, class Period, class... Args>
void tell_after(Self&& self, const Handle& receiver, std::chrono::duration<Rep, Period> delay, Args&&... args) {
#if TROUPE_CAF1
  self->mail(std::forward<Args>(args)...).delay(delay).send(receiver);
#else
  self->delayed_send(receiver, delay, std::forward<Args>(args)...);
#endif
}

/// Sends a question; the result takes `.then(on_answer, on_error)`, `.await(…)`, or on a `caf::scoped_actor`
/// `.receive(on_answer, on_error)`. The time-out is finite by design: CAF fails no request when its receiver's node
/// dies. It counts in whole milliseconds, rounded up.
template <class Self, class Handle, class Rep, class Period, class... Args>
auto ask(Self&& self, const Handle& receiver, std::chrono::duration<Rep, Period> timeout, Args&&... args) {
  const auto rounded = std::chrono::ceil<std::chrono::milliseconds>(timeout);
#if TROUPE_CAF1
  return self->mail(std::forward<Args>(args)...).request(receiver, rounded);
#else
  return self->request(receiver, rounded, std::forward<Args>(args)...);
#endif
}

/// Asks without a time-out, whose clock would wake a thread twice for each question: for a receiver of this process
/// that is watched, and for an asker who watches the other process and has a clock of its own.
template <class Self, class Handle, class... Args>
auto ask_untimed(Self&& self, const Handle& receiver, Args&&... args) {
#if TROUPE_CAF1
  return self->mail(std::forward<Args>(args)...).request(receiver, caf::infinite);
#else
  return self->request(receiver, caf::infinite, std::forward<Args>(args)...);
#endif
}

/// The node that sent the message in hand; an invalid one (`!node`) when the message names no sender. The name is the
/// packet's own word, also where it is that of this process: see gate.hpp.
template <class Self>
caf::node_id sender_node(Self* self) {
  const auto& sender = self->current_sender();
  return sender ? sender->node() : caf::node_id{};
}

/// Asks an actor of this process to end. Actors of Troupe obey nothing else: CAF's own message can come from anybody.
template <class Handle>
void shut_down(const Handle& whom) {
  if (!whom) return;
  const auto actor = caf::actor_cast<caf::strong_actor_ptr>(whom);
  auto order =
      caf::make_mailbox_element(actor, caf::make_message_id(), {},
                                caf::exit_msg{whom.address(), caf::make_error(caf::exit_reason::user_shutdown)});
  if (auto* trusted = dynamic_cast<detail::trusted_mailbox*>(actor->get()))
    trusted->take(std::move(order));
  else
    actor->get()->enqueue(std::move(order), nullptr);
}

// -- watching and surprises
// --------------------------------------------------------------------------------------------

/// What an actor does about everything that is not in its interface. Callbacks run in the actor. Nothing is printed.
struct actor_hooks {
  /// A message that no handler takes, or one that did not decode. `what` lists type names, never content.
  std::function<void(const std::string& what)> on_unexpected;
  /// A watched actor is gone, or its process is out of reach.
  std::function<void(const caf::actor_addr& source, const caf::error& reason)> on_down;
  /// An error came back and the question had no error handler.
  std::function<void(const caf::error& what)> on_error;
  /// This process wants the actor to end (see `shut_down`); it does when this returns true. Unset: it ends.
  std::function<bool(const caf::actor_addr& source, const caf::error& reason)> on_exit;
  /// One of CAF's messages that anybody who reaches a port can send came and was dropped: an order to end, the notice
  /// of an end, a message of a stream.
  std::function<void(const std::string& what)> on_forged;
  /// A handler threw: a defect. The actor ends afterwards.
  std::function<void(const std::string& what)> on_exception;
};

namespace detail {

/// The text of an exception, for people.
std::string text_of(const std::exception_ptr& thrown);

#if TROUPE_CAF1
std::string type_names(const caf::message& content);
#else
std::string type_names(caf::actor_system& system, const caf::type_erased_tuple& content);
#endif

} // namespace detail

#if TROUPE_CAF1
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

/// Installs `hooks` for everything that CAF would otherwise print, or die of. Call it first in every actor. Only an
/// actor that was spawned with a `stateful_pointer` is closed to forged orders and notices.
template <class Self>
void harden(Self* self, const actor_hooks& hooks) {
#if TROUPE_CAF1
  self->set_default_handler([hooks](caf::scheduled_actor*, caf::message& content) -> caf::skippable_result {
    if (content.match_elements<detail::forged_message>()) {
      if (hooks.on_forged) hooks.on_forged(content.get_as<detail::forged_message>(0).what);
      return caf::message{};
    }
    if (hooks.on_unexpected) hooks.on_unexpected(detail::type_names(content));
    return caf::make_error(caf::sec::unexpected_message);
  });
#else
  self->set_default_handler([hooks](caf::scheduled_actor* me, caf::message_view& content) -> caf::result<caf::message> {
    if (content.content().match_elements<detail::forged_message>()) {
      if (hooks.on_forged) hooks.on_forged(content.content().get_as<detail::forged_message>(0).what);
      return caf::message{};
    }
    if (hooks.on_unexpected) hooks.on_unexpected(detail::type_names(me->system(), content.content()));
    return caf::make_error(caf::sec::unexpected_message);
  });
#endif
  self->set_down_handler([hooks](caf::down_msg& down) {
    if (hooks.on_down) hooks.on_down(down.source, down.reason);
  });
  self->set_error_handler([hooks](caf::error& what) {
    if (hooks.on_error) hooks.on_error(what);
  });
  self->set_exit_handler([self, hooks](caf::exit_msg& exit) {
    if (!hooks.on_exit || hooks.on_exit(exit.source, exit.reason)) self->quit(exit.reason);
  });
  self->set_exception_handler([hooks](std::exception_ptr& thrown) -> caf::error {
    auto text = detail::text_of(thrown);
    if (hooks.on_exception) hooks.on_exception(text);
    return caf::make_error(caf::sec::runtime_error, std::move(text));
  });
}

/// Asks for `on_down` (see `actor_hooks`) when `whom` ends or becomes unreachable. Each call gives one notice.
template <class Self, class Handle>
void watch(Self* self, const Handle& whom) {
  if constexpr (std::is_base_of_v<detail::trusted_mailbox, Self>)
    caf::actor_cast<caf::abstract_actor*>(whom)->attach_functor(
        [to = self->address(), who = whom.address()](const caf::error& why) {
          const auto watcher = caf::actor_cast<caf::strong_actor_ptr>(to);
          if (!watcher) return;
          auto notice = caf::make_mailbox_element(nullptr, caf::make_message_id(), {}, caf::down_msg{who, why});
          dynamic_cast<detail::trusted_mailbox&>(*watcher->get()).take(std::move(notice));
        });
  else
    self->monitor(whom);
}

#if TROUPE_CAF1
#pragma GCC diagnostic pop
#endif

/// Blocks until `whom`, an actor of this process, has ended.
template <class Handle>
void await_end(const Handle& whom) {
  const auto ended = std::make_shared<std::promise<void>>();
  auto future = ended->get_future();
  caf::actor_cast<caf::abstract_actor*>(whom)->attach_functor([ended](const caf::error&) { ended->set_value(); });
  future.wait();
}

/// Waits until every actor of the system has ended, at most `longest`. False where some have not. Actors that are left
/// when a system goes are never destroyed, with all that they hold.
bool await_actors(caf::actor_system& system, std::chrono::nanoseconds longest);

/// Drops all that is to be sent later. To be called right before a system goes, when its actors have ended: a heartbeat
/// of CAF's own that comes in between finds its broker ended and its mailbox open, and keeps it there for ever.
void cancel_delayed(caf::actor_system& system);

// -- errors
// ------------------------------------------------------------------------------------------------------------

/// The version of CAF, such as `0.17.6`.
std::string caf_version();

/// A CAF error for people.
std::string describe(const caf::actor_system& system, const caf::error& what);

/// Troupe's error as the answer to a request.
caf::error to_caf_error(const error& failure);
/// The error of a request that failed: the one that `to_caf_error` packed, else CAF's own (no answer in time or nobody
/// there: ec::unreachable).
error from_caf_error(const caf::actor_system& system, const caf::error& what);

// -- configuration
// -----------------------------------------------------------------------------------------------------

/// Sets one of CAF's own options, named without CAF's prefix (`scheduler.max-threads`), from its text: counts are
/// digits, durations digits with `ns us ms s min h`, policies words. Unknown options and bad values are errors: CAF
/// itself would drop them in silence. Automatic connections cannot be had: they listen on all interfaces, without TLS.
result<void> set_caf_option(caf::actor_system_config& config, std::string_view key, std::string_view value);

} // namespace troupe
