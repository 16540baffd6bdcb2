#pragma once

#include <sys/fsuid.h>
#include <unistd.h>

namespace troupe::testing_execution {

/// This thread may do with files what anybody may, also where root runs the tests.
class as_anybody {
public:
  as_anybody() : before_(::setfsuid(::geteuid() == 0 ? 65534 : ::geteuid())) {}
  ~as_anybody() { ::setfsuid(static_cast<uid_t>(before_)); }
  as_anybody(const as_anybody&) = delete;
  as_anybody& operator=(const as_anybody&) = delete;

private:
  int before_;
};

} // namespace troupe::testing_execution
