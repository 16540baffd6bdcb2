#pragma once

/// Announces every message type and every handle that travels between processes, and no other: what is announced can be
/// sent by a peer. CAF 0.17 puts the names on the wire, 1.x the numbers. An application with message types of its own
/// starts its block at `caf::first_custom_type_id`; Troupe's stands further up and leaves it room.

#include <caf/actor_system_config.hpp>
#include <caf/type_id.hpp>

#include <troupe/messages/interfaces.hpp>

namespace troupe {

/// Announces Troupe's types in a configuration; before the actor system is made from it. May be called twice.
void register_types(caf::actor_system_config& config);

/// Announces Troupe's, CAF's own and CAF's network types to the process where CAF wants that (1.x); before any
/// configuration is made. May be called twice. Nothing to do for 0.17.
void init_types();

} // namespace troupe

CAF_BEGIN_TYPE_ID_BLOCK(troupe, 1000)

CAF_ADD_TYPE_ID(troupe, (troupe::driver_actor))
CAF_ADD_TYPE_ID(troupe, (troupe::dag_scheduler_actor))
CAF_ADD_TYPE_ID(troupe, (troupe::resource_profile_manager_actor))
CAF_ADD_TYPE_ID(troupe, (troupe::allocator_actor))
CAF_ADD_TYPE_ID(troupe, (troupe::executor_actor))
CAF_ADD_TYPE_ID(troupe, (troupe::client_actor))

CAF_ADD_TYPE_ID(troupe, (troupe::boxed<troupe::hello>) )
CAF_ADD_TYPE_ID(troupe, (troupe::boxed<troupe::hello_challenge>) )
CAF_ADD_TYPE_ID(troupe, (troupe::boxed<troupe::executor_registration>) )
CAF_ADD_TYPE_ID(troupe, (troupe::boxed<troupe::peer_registration>) )
CAF_ADD_TYPE_ID(troupe, (troupe::boxed<troupe::welcome>) )
CAF_ADD_TYPE_ID(troupe, (troupe::boxed<troupe::goodbye>) )
CAF_ADD_TYPE_ID(troupe, (troupe::boxed<troupe::acknowledged>) )
CAF_ADD_TYPE_ID(troupe, (troupe::boxed<troupe::stop_session>) )
CAF_ADD_TYPE_ID(troupe, (troupe::boxed<troupe::driver_heartbeat>) )
CAF_ADD_TYPE_ID(troupe, (troupe::boxed<troupe::executor_heartbeat>) )
CAF_ADD_TYPE_ID(troupe, (troupe::boxed<troupe::executor_orders>) )
CAF_ADD_TYPE_ID(troupe, (troupe::boxed<troupe::executor_report>) )
CAF_ADD_TYPE_ID(troupe, (troupe::boxed<troupe::job_submission>) )
CAF_ADD_TYPE_ID(troupe, (troupe::boxed<troupe::job_accepted>) )
CAF_ADD_TYPE_ID(troupe, (troupe::boxed<troupe::job_progress>) )
CAF_ADD_TYPE_ID(troupe, (troupe::boxed<troupe::job_end>) )
CAF_ADD_TYPE_ID(troupe, (troupe::boxed<troupe::cancel_job>) )
CAF_ADD_TYPE_ID(troupe, (troupe::boxed<troupe::register_profiles>) )
CAF_ADD_TYPE_ID(troupe, (troupe::boxed<troupe::registered_profiles>) )
CAF_ADD_TYPE_ID(troupe, (troupe::boxed<troupe::load_report>) )
CAF_ADD_TYPE_ID(troupe, (troupe::boxed<troupe::feasibility_query>) )
CAF_ADD_TYPE_ID(troupe, (troupe::boxed<troupe::feasibility_answer>) )
CAF_ADD_TYPE_ID(troupe, (troupe::boxed<troupe::release_request>) )
CAF_ADD_TYPE_ID(troupe, (troupe::boxed<troupe::release_answer>) )
CAF_ADD_TYPE_ID(troupe, (troupe::boxed<troupe::launch_report>) )
CAF_ADD_TYPE_ID(troupe, (troupe::boxed<troupe::status_query>) )
CAF_ADD_TYPE_ID(troupe, (troupe::boxed<troupe::cluster_status>) )
CAF_ADD_TYPE_ID(troupe, (troupe::boxed<troupe::placement_query>) )
CAF_ADD_TYPE_ID(troupe, (troupe::boxed<troupe::placement_answer>) )
CAF_ADD_TYPE_ID(troupe, (troupe::boxed<troupe::subscribe_events>) )
CAF_ADD_TYPE_ID(troupe, (troupe::boxed<troupe::event_batch>) )
CAF_ADD_TYPE_ID(troupe, (troupe::boxed<troupe::release_results>) )
CAF_ADD_TYPE_ID(troupe, (troupe::boxed<troupe::exit_query>) )
CAF_ADD_TYPE_ID(troupe, (troupe::boxed<troupe::exit_answer>) )
CAF_ADD_TYPE_ID(troupe, (troupe::boxed<troupe::cancel_stage>) )
CAF_ADD_TYPE_ID(troupe, (troupe::boxed<troupe::cancel_group>) )
CAF_ADD_TYPE_ID(troupe, (troupe::boxed<troupe::cancelled_jobs>) )
CAF_ADD_TYPE_ID(troupe, (troupe::boxed<troupe::allocation_report>) )
CAF_ADD_TYPE_ID(troupe, (troupe::boxed<troupe::explain_query>) )
CAF_ADD_TYPE_ID(troupe, (troupe::boxed<troupe::job_explanation>) )
CAF_ADD_TYPE_ID(troupe, (troupe::boxed<troupe::subscription_cut_off>) )
CAF_ADD_TYPE_ID(troupe, (troupe::boxed<troupe::withdraw_broadcast>) )

CAF_END_TYPE_ID_BLOCK(troupe)
