#pragma once

/// All typed actor interfaces. What crosses between actors is a plain struct (see session.hpp and runtime/), with an
/// actor handle beside it where the receiver is to answer later. Actors include type_ids.hpp, which includes this
/// header and announces every type that travels.
///
/// A `boxed` struct may come from another process; the receiver asks its gate first (see gate.hpp). A `local_message`
/// cannot: CAF can read none from a connection. So each actor has two interfaces: the one that other processes know,
/// and the one of its own process, `local_…`, which has what only this process may say beside it.
///
/// An arrow says what comes back: `-> void` is a notice (use `tell`), anything else a request (use `ask`). A request
/// that is declined gets an error made by `to_caf_error`. Notices may come late or after their sender is gone; what is
/// repeated or stale is recognised by its incarnation, sequence number or attempt, counted and dropped.

#include <type_traits>

#include <troupe/messages/boxed.hpp>
#include <troupe/messages/caf_compat.hpp>
#include <troupe/messages/local_message.hpp>
#include <troupe/messages/session.hpp>

namespace troupe {

/// An actor's alarm clock: sent by each actor to itself alone. Never announced, as a `local_message`.
struct tick {};

} // namespace troupe

template <>
struct caf::allowed_unsafe_message_type<troupe::tick> : std::true_type {};

namespace troupe {

/// Runs tasks. One per executor process or in-process executor.
using executor_actor = handle<
    /// Everything that one scheduling event means for this executor; applied in order of `sequence`. Dag scheduler.
    void(boxed<executor_orders>),
    /// The driver lives. Repeats are harmless.
    void(boxed<driver_heartbeat>),
    /// End: kill what runs, say goodbye, quit. Answered when nothing is left. Driver.
    boxed<acknowledged>(boxed<stop_session>)>;

using local_executor_actor =
    extended<executor_actor,
             /// Attempts ended; from this executor's own lease threads alone.
             void(local_message<outcome_batch>),
             /// A task of a gang waits for the others; from this executor's own lease threads alone.
             void(local_message<barrier_arrival>),
             /// Attempts that it had the right to publish; from its own publisher alone.
             void(local_message<publications>),
             /// It publishes nothing more and may say goodbye; from its own publisher alone.
             void(local_message<publishing_ended>),
             /// Time passes: heartbeat, driver's silence, flush of outcomes.
             void(tick)>;

/// Receives what a submitter hears of its jobs. One in each submitting process.
using client_actor = handle<
    /// How a job stands; at most a few a second, each replaces the one before. Dag scheduler.
    void(boxed<job_progress>),
    /// A job is over; once for each accepted job. Dag scheduler.
    void(boxed<job_end>),
    /// Events that were subscribed to, in order of their numbers. Driver.
    void(boxed<event_batch>),
    /// No more events come until it subscribes again. Driver.
    void(boxed<subscription_cut_off>)>;

/// A client that also hands jobs over.
using local_client_actor = extended<client_actor,
                                    /// Hands a job to the driver in this client's name.
                                    void(local_message<job_submission>)>;

/// Interns resource profiles.
using resource_profile_manager_actor = handle<
    /// Completes, checks and interns profiles; equal ones get one id. Idempotent. Driver.
    boxed<registered_profiles>(boxed<register_profiles>)>;

/// Decides how many executors of each shape should exist.
using allocator_actor = handle<
    /// Demand and idle executors: totals, so a lost report heals at the next one; an older `number` is dropped.
    /// Dag scheduler.
    void(boxed<load_report>),
    /// Can executors of these shapes ever be had? Dag scheduler.
    boxed<feasibility_answer>(boxed<feasibility_query>),
    /// How did the executor of a request end? Answered when its end was seen, or not within a while. Driver.
    boxed<exit_answer>(boxed<exit_query>),
    /// Stop every requested executor and request none again. Answered when none is left. Driver.
    boxed<acknowledged>(boxed<stop_session>)>;

using local_allocator_actor = extended<allocator_actor,
                                       /// Time passes: launch time-outs, a look at the backend.
                                       void(tick)>;

/// Decides which task runs where and when. What other processes may tell it:
using dag_scheduler_actor = handle<
    /// Ended attempts, refusals, and tasks that wait for their gang. Executor.
    void(boxed<executor_report>),
    /// May this idle executor be stopped? A yes drains it. Allocator.
    boxed<release_answer>(boxed<release_request>),
    /// Requested executors that will not register. Totals; may be repeated. Allocator.
    void(boxed<launch_report>),
    /// What has become of the last load; replaces what was said before. Allocator.
    void(boxed<allocation_report>),
    /// Facts of the allocator, passed on to the driver. Allocator.
    void(boxed<event_batch>)>;

/// All else comes from the driver of its own process, for itself or for a client.
using local_dag_scheduler_actor =
    extended<dag_scheduler_actor,
             /// An executor was admitted and takes orders from now on. Once per incarnation.
             void(local_message<executor_info>, executor_actor),
             /// An admitted executor said goodbye, is out of reach, or must be given up; may be repeated.
             void(local_message<executor_gone>),
             /// What an executor says it has: compared with what it was given.
             void(local_message<executor_heartbeat>),
             /// What became of accepted attempts; from its own publisher alone.
             void(local_message<publications>),
             /// An ended job's outputs are as they stay; from its own publisher alone.
             void(local_message<outputs_closed>),
             /// Whom to report load to and to ask about feasibility; replaces an earlier one.
             void(local_message<allocator_actor>),
             /// Runs a job whose profiles are resolved; progress and end go to the client.
             local_message<job_accepted>(local_message<job_submission>, client_actor),
             /// Ends a job; one that has ended already is acknowledged as well.
             local_message<acknowledged>(local_message<cancel_job>),
             /// Ends one stage, and so its job; where either has ended it is acknowledged as well.
             local_message<acknowledged>(local_message<cancel_stage>),
             /// Ends the jobs of a group; repeats end those that came since. A group of no known job is declined.
             local_message<cancelled_jobs>(local_message<cancel_group>),
             /// Results of an ended job that stayed on executors may go.
             void(local_message<release_results>),
             /// Executors may drop a broadcast.
             void(local_message<withdraw_broadcast>),
             /// Executors and jobs as they stand.
             local_message<cluster_status>(local_message<status_query>),
             /// Why a job and its stages wait.
             local_message<job_explanation>(local_message<explain_query>),
             /// Which attempts of a job were accepted, and where they ran.
             local_message<placement_answer>(local_message<placement_query>),
             /// Cancel all jobs, take no new ones. Answered when every job has ended.
             local_message<acknowledged>(local_message<stop_session>),
             /// Time passes: time-outs, progress, load.
             void(tick)>;

/// The front door: the one published actor.
using driver_actor = handle<
    /// First message of every connection, from anyone; proves nothing yet.
    boxed<hello_challenge>(boxed<hello>),
    /// An executor proves the secret and asks to be admitted; the answer names whom to report to. Executor.
    replies<boxed<welcome>, dag_scheduler_actor>(boxed<executor_registration>, executor_actor),
    /// A client proves the secret and asks to be admitted. Client.
    boxed<welcome>(boxed<peer_registration>, client_actor),
    /// A process that is to run allocator and resource profile manager proves the secret; the answer names whom the
    /// allocator works for. Services.
    replies<boxed<welcome>, dag_scheduler_actor>(boxed<peer_registration>),
    /// The two actors of the process that was welcomed so; jobs run from now on. Services.
    boxed<acknowledged>(allocator_actor, resource_profile_manager_actor),
    /// Runs a job, its profiles unresolved; progress and end go to the named actor. Client.
    boxed<job_accepted>(boxed<job_submission>, client_actor),
    /// Ends a job. Client.
    boxed<acknowledged>(boxed<cancel_job>),
    /// Ends one stage of a job, and so the job. Client.
    boxed<acknowledged>(boxed<cancel_stage>),
    /// Ends the unfinished jobs of a group. Client.
    boxed<cancelled_jobs>(boxed<cancel_group>),
    /// Results of an ended job that stayed on executors may go. Client.
    void(boxed<release_results>),
    /// Executors may drop a broadcast. Client.
    void(boxed<withdraw_broadcast>),
    /// Executors and jobs as they stand. Client.
    boxed<cluster_status>(boxed<status_query>),
    /// Why a job and its stages wait. Client.
    boxed<job_explanation>(boxed<explain_query>),
    /// Where the attempts of a job ran. Client.
    boxed<placement_answer>(boxed<placement_query>),
    /// A peer leaves on purpose. Executor.
    boxed<acknowledged>(boxed<goodbye>),
    /// Opens or renews a window on the event stream. One that is not renewed while many events come is closed. Client.
    void(boxed<subscribe_events>, client_actor),
    /// The executor lives, and its load. Repeats are harmless. Executor.
    void(boxed<executor_heartbeat>),
    /// End the session. Answered when jobs and executors are gone. Client.
    boxed<acknowledged>(boxed<stop_session>)>;

using local_driver_actor =
    extended<driver_actor,
             /// An executor whose messages get lost: it is given up like one that fell silent. Dag scheduler.
             void(local_message<executor_gone>),
             /// Facts from the owners of state, unnumbered: the driver gives each its place in the history. Dag
             /// scheduler.
             void(local_message<event_batch>),
             /// Time passes: heartbeats, silent executors.
             void(tick)>;

} // namespace troupe
