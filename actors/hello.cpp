#include <troupe/actors/hello.hpp>

#include <utility>

namespace troupe {
namespace {

constexpr std::size_t most_open_challenges = 1024;
constexpr duration challenge_lifetime = std::chrono::seconds{30};

std::string_view name_of(peer_role role) {
  switch (role) {
  case peer_role::executor: return "executor";
  case peer_role::client: return "client";
  case peer_role::services: return "services";
  }
  return "unknown";
}

error wrong_version(std::uint32_t theirs) {
  return make_error(ec::version_mismatch, "the peer speaks protocol version " + std::to_string(theirs) +
                                              ", this process speaks " + std::to_string(protocol_version) +
                                              ": use one Troupe version in a cluster");
}

} // namespace

hello_opening::hello_opening(peer_role role, std::string cluster_id)
  : hello_{protocol_version, role, std::move(cluster_id), make_nonce()} {}

result<hello_proof> hello_opening::answer(const hello_challenge& challenge, const session_secret& secret) const {
  if (challenge.version != protocol_version) return wrong_version(challenge.version);
  if (!hello_.cluster_id.empty() && challenge.cluster_id != hello_.cluster_id)
    return make_error(ec::refused, "the driver belongs to cluster " + challenge.cluster_id + ", not to " +
                                       hello_.cluster_id + ": check the address");
  if (challenge.server_nonce.size() != nonce_size ||
      !secret.verify(challenge.server_proof, {"troupe-server", name_of(hello_.role), challenge.cluster_id,
                                              hello_.client_nonce, challenge.server_nonce}))
    return make_error(ec::unauthenticated, "the driver of cluster " + challenge.cluster_id +
                                               " does not know this secret: check troupe.security.secret-file");
  return hello_proof{hello_.client_nonce, challenge.server_nonce,
                     secret.sign({"troupe-client", name_of(hello_.role), challenge.cluster_id, hello_.client_nonce,
                                  challenge.server_nonce})};
}

hello_proof hello_opening::surrender(const hello_challenge& challenge) const {
  return {hello_.client_nonce, challenge.server_nonce, std::string(proof_size, char{0})}; // proves nothing
}

hello_desk::hello_desk(std::string cluster_id, std::string session_id, const session_secret& secret)
  : cluster_id_(std::move(cluster_id)), session_id_(std::move(session_id)), secret_(secret) {}

result<hello_challenge> hello_desk::challenge(const hello& from, time_point now) {
  if (from.version != protocol_version) return wrong_version(from.version);
  if (from.client_nonce.size() != nonce_size) return make_error(ec::malformed, "the hello has no proper nonce");
  if (!from.cluster_id.empty() && from.cluster_id != cluster_id_)
    return make_error(ec::refused, "this driver belongs to cluster " + cluster_id_ + ", not to " + from.cluster_id);
  std::erase_if(open_, [&](const auto& entry) { return now - entry.second.made > challenge_lifetime; });
  if (open_.size() >= most_open_challenges)
    return make_error(ec::overloaded, "too many peers say hello at once: try again");
  hello_challenge answer;
  answer.cluster_id = cluster_id_;
  answer.session_id = session_id_;
  answer.server_nonce = make_nonce();
  answer.server_proof =
      secret_.sign({"troupe-server", name_of(from.role), cluster_id_, from.client_nonce, answer.server_nonce});
  open_.emplace(answer.server_nonce, open_challenge{from.client_nonce, from.role, now});
  return answer;
}

result<void> hello_desk::check(const hello_proof& proof, peer_role role, time_point now) {
  const auto it = open_.find(proof.server_nonce);
  if (it == open_.end()) return make_error(ec::unauthenticated, "the proof answers no challenge of this driver");
  const auto challenge = open_.extract(it).mapped();
  if (now - challenge.made > challenge_lifetime)
    return make_error(ec::unauthenticated, "the proof came too late: say hello again");
  if (challenge.role != role || challenge.client_nonce != proof.client_nonce ||
      !secret_.verify(proof.client_proof,
                      {"troupe-client", name_of(role), cluster_id_, proof.client_nonce, proof.server_nonce}))
    return make_error(ec::unauthenticated, std::string{"the "} + std::string{name_of(role)} +
                                               " does not know the secret of cluster " + cluster_id_ +
                                               ": check troupe.security.secret-file");
  return {};
}

} // namespace troupe
