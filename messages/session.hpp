#pragma once

/// Plain structs of the session protocol: hello, goodbye, status, submission. Immutable once sent. Those that the
/// cores use themselves stand in `runtime/`; these are for actors only.

#include <cstdint>
#include <string>
#include <vector>

#include <troupe/runtime/allocation/allocation.hpp>
#include <troupe/runtime/dag/job_spec.hpp>
#include <troupe/runtime/events/event.hpp>
#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/resources/resolved_profile.hpp>
#include <troupe/runtime/result.hpp>
#include <troupe/runtime/scheduling/explanation.hpp>
#include <troupe/runtime/scheduling/job_status.hpp>
#include <troupe/runtime/scheduling/orders.hpp>
#include <troupe/runtime/scheduling/reports.hpp>

namespace troupe {

/// Raised with every change of a message's meaning; compared at the hello.
inline constexpr std::uint32_t protocol_version = 4;

/// Who says hello. Numbers are wire format.
enum class peer_role : std::uint8_t { executor = 0, client = 1, services = 2 };

/// First message of every connection. Peer -> driver.
struct hello {
  std::uint32_t version = protocol_version;
  peer_role role = peer_role::executor;
  std::string cluster_id;   ///< that the peer means to join; "" takes any
  std::string client_nonce; ///< 32 random bytes
  bool operator==(const hello&) const = default;
};

/// The driver's answer: it proves the secret first, so that a peer never talks to an impostor.
struct hello_challenge {
  std::uint32_t version = protocol_version;
  std::string cluster_id;
  std::string session_id;
  std::string server_nonce; ///< 32 random bytes, good for one registration
  std::string server_proof; ///< HMAC-SHA256(secret, "troupe-server" | role | cluster id | client nonce | server nonce)
  bool operator==(const hello_challenge&) const = default;
};

/// The peer's proof: HMAC-SHA256(secret, "troupe-client" | role | cluster id | client nonce | server nonce).
struct hello_proof {
  std::string client_nonce;
  std::string server_nonce;
  std::string client_proof;
  bool operator==(const hello_proof&) const = default;
};

/// An executor asks to be admitted. Executor -> driver, after the challenge.
struct executor_registration {
  hello_proof proof;
  executor_info info;
  std::string session_id;               ///< of the session that it already belongs to; "" for a new one
  std::vector<running_attempt> running; ///< so that a restarted driver can adopt it
  std::vector<held_block> blocks;
  bool operator==(const executor_registration&) const = default;
};

/// A client or a process of services asks to be admitted.
struct peer_registration {
  hello_proof proof;
  peer_role role = peer_role::client;
  std::string name;        ///< for people: host and pid
  incarnation program = 0; ///< of a client: its broadcasts are withdrawn when it is gone; 0: it makes none
  bool operator==(const peer_registration&) const = default;
};

/// The driver admits a peer.
struct welcome {
  std::string session_id;
  executor_id executor;                    ///< of an admitted executor
  std::uint64_t heartbeat_nanoseconds = 0; ///< how often both sides say that they live
  std::uint64_t timeout_nanoseconds = 0;   ///< silence after which the driver gives it up
  bool operator==(const welcome&) const = default;
};

/// Leaving on purpose; answered, so that both sides know. Either direction.
struct goodbye {
  executor_id executor; ///< of a leaving executor, else none
  incarnation epoch = 0;
  std::string reason;
  bool operator==(const goodbye&) const = default;
};

/// Sign of life of the driver. Driver -> executor.
struct driver_heartbeat {
  std::uint64_t number = 0; ///< from 1
  std::uint64_t heard = 0;  ///< number of the last heartbeat of this executor that has come; 0: none
  auto operator<=>(const driver_heartbeat&) const = default;
};

/// Driver -> dag scheduler: an admitted executor is gone, is about to be, or must be given up.
struct executor_gone {
  executor_id executor;
  incarnation epoch = 0;
  std::string cause; ///< `said goodbye: …`, `connection lost`, `silent for 10s`, or that of `exit`
  bool lost = true;  ///< false after a goodbye
  /// It is out of reach and gets no more tasks; what became of it follows in another message.
  bool announced = false;
  executor_exit exit = {}; ///< what whoever started it knows of its end
  bool ended = false;      ///< its process is known to be dead, or has said that it publishes nothing more
  bool operator==(const executor_gone&) const = default;
};

/// Dag scheduler -> itself: nothing of an ended job is published any more. `clean` is false where something was still
/// in hand after the patience of `output_publisher`.
struct outputs_closed {
  job_id job;
  bool clean = true;
  bool operator==(const outputs_closed&) const = default;
};

/// Executor -> itself: it publishes nothing more; `clean` as above.
struct publishing_ended {
  bool clean = true;
  bool operator==(const publishing_ended&) const = default;
};

/// A job on its way to the dag scheduler, its profiles resolved.
struct job_submission {
  std::shared_ptr<const job_spec> job;
  std::vector<resolved_profile> profiles; ///< one per entry of job_spec::profiles; empty when the client submits
  bool operator==(const job_submission& other) const;
};
struct job_accepted {
  job_id job;
  bool operator==(const job_accepted&) const = default;
};
struct cancel_job {
  job_id job;
  std::string reason;
  bool operator==(const cancel_job&) const = default;
};

/// One stage of a job, by its place there from 0. The job needs it, so it fails.
struct cancel_stage {
  job_id job;
  std::uint32_t stage = 0;
  std::string reason;
  bool operator==(const cancel_stage&) const = default;
};
/// Every unfinished job of a group, whoever has submitted it.
struct cancel_group {
  std::string group;
  std::string reason;
  bool operator==(const cancel_group&) const = default;
};
/// The answer: those that it has ended; none where all had ended already.
struct cancelled_jobs {
  std::vector<job_id> jobs;
  bool operator==(const cancelled_jobs&) const = default;
};

/// Profiles to register, and stages in which several of them meet. An empty profile means the default one.
struct register_profiles {
  std::string submitter; ///< who built them, whose build numbers are unique; "" for the session itself
  std::vector<resource_profile> profiles;
  std::vector<std::vector<carried_profile>> meetings; ///< of each such stage
  profile_change on_profile_change = profile_change::by_matching;
  bool operator==(const register_profiles&) const = default;
};
/// The answer: one for each profile in the order of the question, then one for each meeting.
struct registered_profiles {
  std::vector<resolved_profile> profiles;
  bool operator==(const registered_profiles&) const = default;
};

/// Dag scheduler -> allocator: can these shapes ever be had? Answered in order.
struct feasibility_query {
  std::vector<executor_shape> shapes;
  bool operator==(const feasibility_query&) const = default;
};
struct feasibility_answer {
  std::vector<feasibility> answers;
  bool operator==(const feasibility_answer&) const = default;
};

/// Submitter -> driver: results of an ended job that stayed on executors are no longer needed.
struct release_results {
  job_id job;
  bool operator==(const release_results&) const = default;
};

/// Submitter -> driver: no task needs the broadcast any more; executors may drop it.
struct withdraw_broadcast {
  broadcast_id broadcast;
  bool operator==(const withdraw_broadcast&) const = default;
};

/// Allocator -> dag scheduler: may this idle executor be stopped? Yes means that it is draining from now on.
struct release_request {
  executor_id executor;
  bool operator==(const release_request&) const = default;
};
struct release_answer {
  executor_id executor;
  bool granted = false;
  bool serving = false; ///< granted, but it still holds output that an unfinished job needs: park it
  std::string reason;   ///< why not
  bool operator==(const release_answer&) const = default;
};

/// Allocator -> dag scheduler: what became of requested executors that will not register.
struct launch_report {
  std::vector<launch_status> statuses;
  bool operator==(const launch_report&) const = default;
};
/// Allocator -> dag scheduler: what has become of the last load, when that has changed. All shapes with demand.
struct allocation_report {
  std::vector<shape_status> shapes;
  bool operator==(const allocation_report&) const = default;
};

/// Driver -> allocator: how did the executor of this request end? It is out of reach.
struct exit_query {
  request_id request;
  bool operator==(const exit_query&) const = default;
};
/// The answer, when the backend has seen its end; the cause is unknown where it has not within a while.
struct exit_answer {
  request_id request;
  executor_exit exit;
  bool operator==(const exit_answer&) const = default;
};

/// One admitted executor as `troupe cluster status` shows it.
struct executor_status {
  executor_info info;
  std::string state; ///< `active`, `draining`, `silent`
  std::uint32_t leases = 0;
  std::uint32_t running = 0; ///< attempts handed out and not ended
  std::uint64_t tasks_done = 0;
  std::uint64_t block_bytes = 0; ///< in its block store, as its last heartbeat said
  std::uint64_t kept = 0;        ///< map outputs, results and kept partitions that the scheduler knows to be there
  bool operator==(const executor_status&) const = default;
};
struct status_query {
  bool jobs = true;
  bool executors = true;
  bool operator==(const status_query&) const = default;
};
struct cluster_status {
  std::string cluster_id;
  std::string session_id;
  std::string master;
  std::vector<executor_status> executors;
  std::vector<job_progress> jobs;     ///< running ones, and the last `troupe.driver.retained-jobs` ended ones
  std::uint64_t dropped_messages = 0; ///< from peers that had not passed the hello, and stale ones
  bool operator==(const cluster_status&) const = default;
};

/// Where the accepted attempts of a job ran.
struct placement_query {
  job_id job;
  bool operator==(const placement_query&) const = default;
};
struct placement_answer {
  std::vector<task_placement> placements; ///< stage by stage, ascending partitions
  bool operator==(const placement_answer&) const = default;
};

/// Why a job and its stages wait. Client -> driver; answered with a `job_explanation`.
struct explain_query {
  job_id job;
  bool operator==(const explain_query&) const = default;
};

/// Client -> driver: events from number `from` on, at most `credit` of them until the next one (a window, so that a
/// slow subscriber costs nothing).
struct subscribe_events {
  std::uint64_t from = 0; ///< 0: from now on
  std::uint32_t credit = 0;
  bool operator==(const subscribe_events&) const = default;
};
struct event_batch {
  std::vector<events::record> records;
  std::uint64_t skipped = 0; ///< to a client: so many events before the first one are no longer kept
  bool operator==(const event_batch&) const = default;
};

/// Driver -> client: it has not renewed its credit for so long that its subscription is over. Whoever asks again from
/// `last` + 1 reads on; what is no longer kept by then is counted in `event_batch::skipped`.
struct subscription_cut_off {
  std::uint64_t last = 0; ///< number of the last event that it was sent
  bool operator==(const subscription_cut_off&) const = default;
};

/// The end of the session: running jobs are cancelled, executors stopped. Answered when all are gone.
struct stop_session {
  std::string reason;
  bool given_up = false; ///< to an executor: the session goes on without it
  bool operator==(const stop_session&) const = default;
};

/// A plain yes.
struct acknowledged {
  bool operator==(const acknowledged&) const = default;
};

} // namespace troupe
