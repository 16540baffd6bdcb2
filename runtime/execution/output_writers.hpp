#pragma once

/// Who still writes into the outputs of a command that has ended: a shell does not wait for `>(gzip >{output})`, nor
/// for what it has sent to the background.

#include <functional>
#include <string>
#include <sys/types.h>
#include <vector>

#include <troupe/runtime/execution/stop_event.hpp>
#include <troupe/runtime/time.hpp>

namespace troupe {

/// How the waiting for outputs ended.
struct output_rest {
  bool seen = false;    ///< nobody was seen to write
  bool stopped = false; ///< it was asked to end
  bool overdue = false; ///< the deadline has come
  std::string writers;  ///< who still writes, and where, after the grace: "gzip (pid 7) still writes 'a.gz'"; else ""
};

/// Who has no output open and yet may go on with one is waited for as well, 5 s at most.
struct rest_limits {
  time_point deadline = time_point::max(); ///< of the steady clock
  duration grace{};                        ///< for which no output has changed
};

/// The outputs of one command. One thread.
class output_watch {
public:
  /// What the command has left running, as seen at the moment.
  using remaining = std::function<std::vector<pid_t>()>;

  /// `names` lie below `directory`; they are copied.
  output_watch(const std::string& directory, const std::vector<std::string>& names);

  /// Waits until nobody has an output open for writing or mapped so, and none of the remaining processes is a part of
  /// the command's script or was told an output's name; and until each is there or nothing remains that could make it.
  /// A missing output is no error here. Asks the kernel by a lease; where it gives none, as on NFS, the remaining
  /// processes are looked at, and other writers are not seen.
  output_rest wait(const remaining& left, const rest_limits& limits, const stop_event& stop);

  /// The name of an output that has changed since `wait` saw it at rest; "" where none has.
  std::string changed() const;

private:
  struct output {
    std::string name;
    std::string path;
    std::string state; ///< as it was seen last; "" where it is missing
  };
  bool may_write(pid_t pid) const;

  const std::string directory_;
  std::vector<output> outputs_;
};

} // namespace troupe
