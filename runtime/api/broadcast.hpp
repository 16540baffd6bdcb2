#pragma once

/// Large values that many tasks read: made once with `session::broadcast`, sent at most once to each host, decoded once
/// by each process that runs tasks.
///
///     const auto dictionary = session.broadcast(load_dictionary());
///     words.filter(troupe::with(dictionary), [](const auto& d, const std::string& word) { return d->contains(word); })
///
/// What is given to `with` as it is and takes more than 1 MiB goes the same way; a broadcast of one's own serves
/// several functions. A handle is a small value. The program's copies keep the broadcast, as do the datasets and jobs
/// whose functions were given one by `troupe::with` or as their captures; with the last of them it is withdrawn, and
/// executors drop it. A handle that is part of records keeps nothing: hold another one as long as those are read.

#include <memory>
#include <stdexcept>
#include <string_view>
#include <typeindex>
#include <utility>

#include <troupe/runtime/api/serialize.hpp>
#include <troupe/runtime/execution/broadcast_source.hpp>
#include <troupe/runtime/execution/task_context.hpp>

namespace troupe {

class session;

namespace detail {

/// The bytes that name a broadcast.
inline void write_reference(encoder& out, const broadcast_reference& r) {
  out(r.id.program, r.id.number, r.host, r.port);
}
inline broadcast_reference read_reference(decoder& in) {
  broadcast_reference r;
  in(r.id.program, r.id.number, r.host, r.port);
  return r;
}

/// The value, decoded once for all tasks of this process; null outside of tasks. Waits, and throws, as
/// broadcast_source::get does.
template <class T>
std::shared_ptr<const T> find_broadcast(const broadcast_reference& r) {
  const auto* const task = task_context::find_current();
  if (!task || r.id == broadcast_id{}) return nullptr;
  return std::static_pointer_cast<const T>(task->broadcast(r, typeid(T), [](std::string_view encoded) {
    return std::static_pointer_cast<const void>(std::make_shared<const T>(decode_value<T>(encoded)));
  }));
}

} // namespace detail

/// A value of type `T`, the program's own or the executor's. Copy freely; any thread may read the value.
template <class T>
class broadcast {
public:
  /// Names none.
  broadcast() = default;

  /// The value; valid as long as a copy of this handle is there, in a task until it ends. Throws std::logic_error in a
  /// program that got the handle from a task, and where it names none.
  const T& operator*() const {
    if (!value_)
      throw std::logic_error("this broadcast's value is not here: it is in the handle that session::broadcast "
                             "gave, and in tasks whose function was given that");
    return *value_;
  }
  const T* operator->() const { return &**this; }

private:
  friend class session;
  friend struct serializer<broadcast>;
  broadcast(std::shared_ptr<const T> value, broadcast_reference reference, std::shared_ptr<const void> published)
    : value_(std::move(value)), reference_(std::move(reference)), published_(std::move(published)) {}

  std::shared_ptr<const T> value_;
  broadcast_reference reference_;
  std::shared_ptr<const void> published_; ///< withdraws it; null in tasks
};

/// What travels is where the value is; a task that reads a handle has the value with it.
template <class T>
struct serializer<broadcast<T>> {
  static void write(encoder& out, const broadcast<T>& handle) {
    detail::check_travels<detail::stuck_part<T>>();
    detail::write_reference(out, handle.reference_);
    if (handle.published_) out.hold(handle.published_);
  }

  static broadcast<T> read(decoder& in) {
    broadcast<T> handle;
    handle.reference_ = detail::read_reference(in);
    handle.value_ = detail::find_broadcast<T>(handle.reference_);
    return handle;
  }
};

} // namespace troupe
