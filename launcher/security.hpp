#pragma once

/// Secrets as files, and what may be said over an open network.

#include <string>
#include <string_view>

#include <troupe/runtime/config/master.hpp>
#include <troupe/runtime/config/settings.hpp>
#include <troupe/runtime/result.hpp>
#include <troupe/runtime/time.hpp>

namespace troupe {

/// The secret file of this user's driver that listens at `where` on this machine; "" when no such driver is known.
std::string secret_of_local_driver(const std::string& base, const endpoint& where);

/// What to say where no secret is known for a driver: that, or that nobody listens there. Waits for at most `patience`.
error unknown_secret(const endpoint& where, duration patience);

/// Error unless `host` is a loopback address or `troupe.security.insecure` is set.
result<void> check_reachable_openly(const std::string& host, const settings& s);

/// What to warn of where the settings make this process listen on other than loopback addresses; "" when they do not.
std::string insecurity_of(const settings& s);

} // namespace troupe
