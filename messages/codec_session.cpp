// Joining and leaving a session.

#include <troupe/messages/wire_parts.hpp>
#include <troupe/runtime/transfer/handshake.hpp>

namespace troupe::wire {

static void write(const hello& in, pb::Hello& out, const place& at) {
  out.set_version(in.version);
  out.set_role(static_cast<pb::PeerRole>(in.role));
  out.set_cluster_id(at.name("cluster_id", in.cluster_id));
  out.set_client_nonce(at.exactly("client_nonce", in.client_nonce, nonce_size));
}

static void read(const pb::Hello& in, hello& out, const place& at) {
  out.version = in.version();
  out.role = at.enumerator("role", in.role(), peer_role::services);
  out.cluster_id = at.name("cluster_id", in.cluster_id());
  out.client_nonce = at.exactly("client_nonce", in.client_nonce(), nonce_size);
}

static void write(const hello_challenge& in, pb::HelloChallenge& out, const place& at) {
  out.set_version(in.version);
  out.set_cluster_id(at.name("cluster_id", in.cluster_id));
  out.set_session_id(at.name("session_id", in.session_id));
  out.set_server_nonce(at.exactly("server_nonce", in.server_nonce, nonce_size));
  out.set_server_proof(at.exactly("server_proof", in.server_proof, proof_size));
}

static void read(const pb::HelloChallenge& in, hello_challenge& out, const place& at) {
  out.version = in.version();
  out.cluster_id = at.name("cluster_id", in.cluster_id());
  out.session_id = at.name("session_id", in.session_id());
  out.server_nonce = at.exactly("server_nonce", in.server_nonce(), nonce_size);
  out.server_proof = at.exactly("server_proof", in.server_proof(), proof_size);
}

void write(const hello_proof& in, pb::HelloProof& out, const place& at) {
  out.set_client_nonce(at.exactly("client_nonce", in.client_nonce, nonce_size));
  out.set_server_nonce(at.exactly("server_nonce", in.server_nonce, nonce_size));
  out.set_client_proof(at.exactly("client_proof", in.client_proof, proof_size));
}

void read(const pb::HelloProof& in, hello_proof& out, const place& at) {
  out.client_nonce = at.exactly("client_nonce", in.client_nonce(), nonce_size);
  out.server_nonce = at.exactly("server_nonce", in.server_nonce(), nonce_size);
  out.client_proof = at.exactly("client_proof", in.client_proof(), proof_size);
}

static void write(const peer_registration& in, pb::PeerRegistration& out, const place& at) {
  write(in.proof, *out.mutable_proof(), place{at, "proof"});
  out.set_role(static_cast<pb::PeerRole>(in.role));
  out.set_name(at.name("name", in.name));
  out.set_program(in.program);
}

static void read(const pb::PeerRegistration& in, peer_registration& out, const place& at) {
  read(in.proof(), out.proof, place{at, "proof"});
  out.role = at.enumerator("role", in.role(), peer_role::services);
  out.name = at.name("name", in.name());
  out.program = in.program();
}

static void write(const welcome& in, pb::Welcome& out, const place& at) {
  out.set_session_id(at.name("session_id", in.session_id));
  out.set_executor(in.executor.value);
  out.set_heartbeat_nanoseconds(in.heartbeat_nanoseconds);
  out.set_timeout_nanoseconds(in.timeout_nanoseconds);
}

static void read(const pb::Welcome& in, welcome& out, const place& at) {
  out.session_id = at.name("session_id", in.session_id());
  out.executor.value = in.executor();
  out.heartbeat_nanoseconds = in.heartbeat_nanoseconds();
  out.timeout_nanoseconds = in.timeout_nanoseconds();
}

static void write(const goodbye& in, pb::Goodbye& out, const place& at) {
  out.set_executor(in.executor.value);
  out.set_epoch(in.epoch);
  out.set_reason(at.text("reason", in.reason));
}

static void read(const pb::Goodbye& in, goodbye& out, const place& at) {
  out.executor.value = in.executor();
  out.epoch = in.epoch();
  out.reason = at.text("reason", in.reason());
}

static void write(const stop_session& in, pb::StopSession& out, const place& at) {
  out.set_reason(at.text("reason", in.reason));
  out.set_given_up(in.given_up);
}

static void read(const pb::StopSession& in, stop_session& out, const place& at) {
  out.reason = at.text("reason", in.reason());
  out.given_up = in.given_up();
}

static void write(const acknowledged&, pb::Acknowledged&, const place&) {}

static void read(const pb::Acknowledged&, acknowledged&, const place&) {}

} // namespace troupe::wire

TROUPE_WIRE_FORM(hello, Hello)
TROUPE_WIRE_FORM(hello_challenge, HelloChallenge)
TROUPE_WIRE_FORM(peer_registration, PeerRegistration)
TROUPE_WIRE_FORM(welcome, Welcome)
TROUPE_WIRE_FORM(goodbye, Goodbye)
TROUPE_WIRE_FORM(stop_session, StopSession)
TROUPE_WIRE_FORM(acknowledged, Acknowledged)
