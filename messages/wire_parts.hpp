#pragma once

/// `write` and `read` of structs that are parts of several messages; codec sources only.

#include <troupe/messages/wire.hpp>

#include "troupe/messages/allocation.pb.h"
#include "troupe/messages/blocks.pb.h"
#include "troupe/messages/executor.pb.h"
#include "troupe/messages/ids.pb.h"
#include "troupe/messages/job.pb.h"
#include "troupe/messages/resources.pb.h"
#include "troupe/messages/session.pb.h"
#include "troupe/messages/status.pb.h"

namespace troupe::wire {

/// The three numbers that name an attempt, in whatever struct they stand.
struct attempt_ref {
  stage_id& stage;
  partition_index& partition;
  attempt_number& attempt;
};
void write_attempt(stage_id stage, partition_index partition, attempt_number attempt, pb::AttemptId& out);
void read_attempt(const pb::AttemptId& in, attempt_ref out);

void write(const error& in, pb::Failure& out, const place& at);
void read(const pb::Failure& in, error& out, const place& at);
void write(const packed_column& in, pb::PackedColumn& out, const place& at);
void read(const pb::PackedColumn& in, packed_column& out, const place& at);

void write(const resource_profile& in, pb::ResourceProfile& out, const place& at);
void read(const pb::ResourceProfile& in, resource_profile& out, const place& at);
void write(const executor_capacity& in, pb::ExecutorCapacity& out, const place& at);
void read(const pb::ExecutorCapacity& in, executor_capacity& out, const place& at);
void write(const allotment& in, pb::Allotment& out, const place& at);
void read(const pb::Allotment& in, allotment& out, const place& at);
void write(const carried_profile& in, pb::CarriedProfile& out, const place& at);
void read(const pb::CarriedProfile& in, carried_profile& out, const place& at);
void write(const resolved_profile& in, pb::ResolvedProfile& out, const place& at);
void read(const pb::ResolvedProfile& in, resolved_profile& out, const place& at);

void write(const std::variant<native_program, command_program>& in, pb::Program& out, const place& at);
void read(const pb::Program& in, std::variant<native_program, command_program>& out, const place& at);

void write(const held_block& in, pb::HeldBlock& out, const place& at);
void read(const pb::HeldBlock& in, held_block& out, const place& at);
void write(const broadcast_id& in, pb::BroadcastId& out, const place& at);
void read(const pb::BroadcastId& in, broadcast_id& out, const place& at);
storage_level read_level(std::uint32_t number, const place& at);
void write(const block_endpoint& in, pb::BlockEndpoint& out, const place& at);
void read(const pb::BlockEndpoint& in, block_endpoint& out, const place& at);

void write(const executor_info& in, pb::ExecutorInfo& out, const place& at);
void read(const pb::ExecutorInfo& in, executor_info& out, const place& at);

void write(const executor_exit& in, pb::ExecutorExit& out, const place& at);
void read(const pb::ExecutorExit& in, executor_exit& out, const place& at);

void write(const hello_proof& in, pb::HelloProof& out, const place& at);
void read(const pb::HelloProof& in, hello_proof& out, const place& at);

} // namespace troupe::wire
