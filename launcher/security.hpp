#pragma once

/// Secrets as files, and what may be said over an open network.

#include <string>
#include <string_view>

#include <troupe/runtime/config/master.hpp>
#include <troupe/runtime/config/settings.hpp>
#include <troupe/runtime/result.hpp>
#include <troupe/runtime/transfer/handshake.hpp>

namespace troupe {

/// The secret in that file. Where there is none, a new one is written there, and directories that are missing are made
/// with mode 0700.
result<session_secret> load_or_make_secret(const std::string& path);

/// The secret file of this user's driver that listens at `where` on this machine; "" when no such driver is known.
std::string secret_of_local_driver(const std::string& base, const endpoint& where);

/// Error unless `host` is a loopback address or `troupe.security.insecure` is set.
result<void> check_reachable_openly(const std::string& host, const settings& s);

/// What to warn of where the settings make this process listen on other than loopback addresses; "" when they do not.
std::string insecurity_of(const settings& s);

/// Host and process id, by which peers are told apart.
std::string this_process();

} // namespace troupe
