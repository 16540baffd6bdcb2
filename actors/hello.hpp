#pragma once

/// Both halves of the hello: each side proves the secret by an HMAC over both nonces, the driver first.

#include <cstdint>
#include <map>
#include <string>

#include <troupe/messages/session.hpp>
#include <troupe/runtime/result.hpp>
#include <troupe/runtime/time.hpp>
#include <troupe/runtime/transfer/handshake.hpp>

namespace troupe {

/// The peer's half: one per attempt to join.
class hello_opening {
public:
  hello_opening(peer_role role, std::string cluster_id);
  const hello& message() const noexcept { return hello_; }
  /// Checks the driver's proof and makes our own. Errors name what differs: version, cluster, secret.
  result<hello_proof> answer(const hello_challenge& challenge, const session_secret& secret) const;

  /// A proof that proves nothing, to be sent where `answer` gave ec::unauthenticated: the driver then knows, and logs,
  /// that somebody tried with another secret.
  hello_proof surrender(const hello_challenge& challenge) const;

private:
  hello hello_;
};

/// The driver's half: challenges that are open. Bounded, so that strangers cannot fill it; not thread-safe.
class hello_desk {
public:
  hello_desk(std::string cluster_id, std::string session_id, const session_secret& secret);

  /// Answers a hello; `now` dates the challenge. Errors name what differs.
  result<hello_challenge> challenge(const hello& from, time_point now);
  /// Checks a proof against its challenge, which is used up either way.
  result<void> check(const hello_proof& proof, peer_role role, time_point now);

private:
  struct open_challenge {
    std::string client_nonce;
    peer_role role;
    time_point made;
  };
  std::string cluster_id_;
  std::string session_id_;
  session_secret secret_;
  std::map<std::string, open_challenge> open_; ///< by server nonce
};

} // namespace troupe
