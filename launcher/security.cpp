#include <troupe/launcher/security.hpp>

#include <troupe/launcher/session_registry.hpp>
#include <troupe/runtime/transfer/stream_socket.hpp>

namespace troupe {

std::string secret_of_local_driver(const std::string& base, const endpoint& where) {
  for (const auto& session : running_sessions(base))
    if (listens_at(session, to_string(where))) return session.secret_file;
  return {};
}

error unknown_secret(const endpoint& where, duration patience) {
  const auto stream = stream_socket::connect(where.host, where.port, patience, [] { return false; });
  if (!stream)
    return make_error(stream.error().code, "cannot connect to " + to_string(where) + ": " + stream.error().message +
                                               "; is the driver running?");
  return make_error(
      ec::invalid_configuration,
      "the driver at " + to_string(where) +
          " asks for its secret: set troupe.security.secret-file to the file that the driver printed when "
          "it started (`troupe cluster up` or `troupe node`)");
}

result<void> check_reachable_openly(const std::string& host, const settings& s) {
  if (is_loopback(host) || s.get(keys::security_insecure)) return {};
  return make_error(ec::invalid_configuration,
                    "the driver's address " + host +
                        " is not a loopback address, and the traffic is not encrypted: set troupe.security.insecure = "
                        "true if everybody on that network may be trusted");
}

std::string insecurity_of(const settings& s) {
  std::string out;
  for (const auto& which : {keys::driver_bind_address, keys::executor_bind_address})
    if (!is_loopback(s.get(which))) out += (out.empty() ? "" : ", ") + std::string{which.name} + " = " + s.get(which);
  if (out.empty()) return out;
  return out + ": the traffic is not encrypted, and whoever reaches the port can disturb or read it "
               "(troupe.security.insecure = true)";
}

} // namespace troupe
