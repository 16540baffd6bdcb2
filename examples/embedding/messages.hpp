#pragma once

/// The application's own messages, and the interfaces of its own actors.

#include <cstdint>

#include <caf/actor_system_config.hpp>
#include <caf/type_id.hpp>

#include <troupe/actors/embedding.hpp>

namespace primes {

/// How many primes are there below `limit`? The work is split into `parts`.
struct count_request {
  std::int64_t limit = 0;
  std::int64_t parts = 1;

  template <class Inspector>
  friend auto inspect(Inspector& f, count_request& x) {
    return f(x.limit, x.parts);
  }
};

struct count_reply {
  std::int64_t limit = 0;
  std::int64_t primes = 0;
  std::uint32_t tasks = 0;
  std::uint32_t executors = 0; ///< that ran at least one of them

  template <class Inspector>
  friend auto inspect(Inspector& f, count_reply& x) {
    return f(x.limit, x.primes, x.tasks, x.executors);
  }
};

/// How far a count has come.
struct count_progress {
  std::uint32_t done = 0;
  std::uint32_t tasks = 0;

  template <class Inspector>
  friend auto inspect(Inspector& f, count_progress& x) {
    return f(x.done, x.tasks);
  }
};

/// Answers requests of the application. The second message is the desk's own: what has become of a job, by the number
/// of the request.
using desk_actor = troupe::handle<count_reply(count_request), void(std::uint64_t, troupe::boxed<troupe::job_end>)>;

/// Whoever wants to know how far a count has come.
using listener_actor = troupe::handle<void(count_progress)>;

} // namespace primes

// Troupe's own types stand further up and leave the first numbers to applications.
CAF_BEGIN_TYPE_ID_BLOCK(primes, caf::first_custom_type_id)
CAF_ADD_TYPE_ID(primes, (primes::count_request))
CAF_ADD_TYPE_ID(primes, (primes::count_reply))
CAF_ADD_TYPE_ID(primes, (primes::count_progress))
CAF_END_TYPE_ID_BLOCK(primes)

namespace primes {

/// The application's own configuration. All that Troupe needs of it is one call.
class config : public caf::actor_system_config {
public:
  config() {
    add_message_types<caf::id_block::primes>();
    troupe::prepare(*this);
  }
};

} // namespace primes
