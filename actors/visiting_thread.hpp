#pragma once

#include <caf/logger.hpp>

namespace troupe {

/// Lets a thread of an application use an actor system for a while. CAF notes at a thread which actor system it last
/// worked for, and lets no system go while a thread lives that it has noted it at; this one's destructor takes the note
/// back. On the stack of that thread, and destroyed before the system is.
class visiting_thread {
public:
  visiting_thread() = default;
  ~visiting_thread() {
    if (was_unknown_) caf::logger::set_current_actor_system(nullptr);
  }
  visiting_thread(const visiting_thread&) = delete;
  visiting_thread& operator=(const visiting_thread&) = delete;

private:
  const bool was_unknown_ = caf::logger::current_logger() == nullptr;
};

} // namespace troupe
