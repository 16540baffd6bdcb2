#include <troupe/runtime/execution/executor_core.hpp>

#include <stdexcept>
#include <string>
#include <utility>

#include <troupe/runtime/scheduling/state_machine.hpp>

namespace troupe {

executor_core::executor_core(executor_info info) : info_(std::move(info)), ledger_(info_.capacity) {}

void executor_core::on_orders(const std::shared_ptr<const executor_orders>& orders, effects::execution_list& out) {
  // What follows a gap is left alone: its heartbeats then lack what was lost, and the executor is given up.
  if (orders->epoch != info_.epoch || orders->sequence != seen_ + 1) {
    ++ignored_;
    return;
  }
  seen_ = orders->sequence;
  for (const auto lease : orders->revoked) close(lease, out);
  for (const auto stage : orders->removed_stages)
    if (stages_.erase(stage) > 0 || info_.shuffle_service) {
      const auto& late = orders->late_stages;
      out.push_back(effects::remove_stage{stage, std::find(late.begin(), late.end(), stage) != late.end()});
    }
  for (const auto& k : orders->kills) out.push_back(effects::kill_attempt{k});
  for (const auto lease : orders->recalled)
    if (leases_.contains(lease)) out.push_back(effects::recall_lease{lease}); // else it was refused
  for (const auto lost : orders->gone) out.push_back(effects::forget_executor{lost});
  for (const auto& g : orders->grants) grant(g, out);
  for (const auto& s : orders->installs) install(s, out);
  for (std::size_t i = 0; i < orders->batches.size(); ++i) batch(orders, i, out);
  for (const auto& b : orders->barriers)
    if (stages_.contains(b.stage)) out.push_back(effects::release_barrier{b}); // else its tasks have been killed
  for (const auto& right : orders->rights)
    if (stages_.contains(right.stage)) out.push_back(effects::publish_attempt{right}); // else its job is over
  for (const auto& t : orders->takeovers)
    if (info_.shuffle_service) out.push_back(effects::take_over_blocks{t});
  for (const auto id : orders->withdrawn) out.push_back(effects::drop_broadcast{id});
  for (const auto& block : orders->consumed) out.push_back(effects::drop_output{block});
  for (const auto id : orders->unkept) out.push_back(effects::drop_kept{id});
  for (const auto& copy : orders->surplus) out.push_back(effects::drop_copy{copy});
  for (const auto id : orders->forgotten_jobs) out.push_back(effects::drop_attempts{id});
  if (orders->stop) out.push_back(effects::stop_executor{});
}

void executor_core::grant(const lease_grant& g, effects::execution_list& out) {
  const auto refuse = [&](std::string why) {
    refusal r;
    r.lease = g.lease;
    r.reason = std::move(why);
    out.push_back(effects::send_refusal{std::move(r)});
  };
  if (!g.profile) return refuse("the grant names no profile");
  if (leases_.contains(g.lease)) return refuse("this lease is open already");
  if (const auto lacks = shortfalls(info_.capacity, *g.profile); !lacks.empty()) {
    std::string why = "this executor does not satisfy the profile";
    for (const auto& lack : lacks) why += "; " + to_string(lack);
    return refuse(std::move(why));
  }
  if (!matches(g.holding, *g.profile)) return refuse("the addresses are not what one task of the profile takes");
  if (auto taken = ledger_.acquire(g.holding); !taken) return refuse(taken.error().message);
  leases_.emplace(g.lease, open_record{g.profile, g.holding, 0, lease_state::open});
  out.push_back(effects::open_lease{g});
}

void executor_core::close(lease_id id, effects::execution_list& out) {
  const auto it = leases_.find(id);
  if (it == leases_.end()) return; // it was refused
  if (it->second.unfinished > 0) {
    if (it->second.state == lease_state::open) transition("lease", it->second.state, lease_state::closing);
    return;
  }
  // Cannot fail: the ledger gave exactly this.
  (void) ledger_.release(it->second.holding);
  leases_.erase(it);
  out.push_back(effects::close_lease{id});
}

void executor_core::install(const stage_install& s, effects::execution_list& out) {
  auto& known = stages_[s.stage];
  known.attempt = s.stage_attempt;
  known.refused.clear();
  if (s.program && s.program->index() == 0) {
    const auto& wanted = std::get<native_program>(*s.program).build_id;
    if (!info_.native)
      known.refused = "this executor was started from the plain troupe program and runs commands only";
    else if (wanted != info_.build_id)
      known.refused = "this executor runs build " + info_.build_id + " of the program, the stage needs build " + wanted;
  } else if (!s.program) {
    known.refused = "the stage came without a program";
  }
  if (known.refused.empty()) out.push_back(effects::install_stage{s});
}

void executor_core::batch(const std::shared_ptr<const executor_orders>& orders, std::size_t index,
                          effects::execution_list& out) {
  const auto& b = orders->batches[index];
  const auto refuse = [&](std::string why, bool build_mismatch) {
    refusal r;
    r.lease = b.lease;
    r.stage = b.stage;
    r.reason = std::move(why);
    r.build_mismatch = build_mismatch;
    for (std::uint32_t i = 0; i < b.count; ++i) {
      r.partitions.push_back(b.partition(i));
      r.attempts.push_back(b.attempt(i));
    }
    out.push_back(effects::send_refusal{std::move(r)});
  };
  const auto lease = leases_.find(b.lease);
  if (lease == leases_.end() || lease->second.state == lease_state::closing)
    return refuse("the lease is not open here", false);
  const auto stage = stages_.find(b.stage);
  if (stage == stages_.end()) return refuse("the stage is not installed here", false);
  if (!stage->second.refused.empty()) return refuse(stage->second.refused, true);
  lease->second.unfinished += b.count;
  out.push_back(effects::run_batch{orders, index});
}

void executor_core::on_outcomes(const outcome_batch& outcomes, effects::execution_list& out) {
  const auto it = leases_.find(outcomes.lease);
  if (it == leases_.end()) {
    ++ignored_;
    return;
  }
  auto& lease = it->second;
  if (outcomes.count > lease.unfinished)
    throw std::logic_error("lease " + std::to_string(outcomes.lease.value) + ": " + std::to_string(outcomes.count) +
                           " attempts have ended, of " + std::to_string(lease.unfinished) + " that were handed over");
  lease.unfinished -= outcomes.count;
  if (lease.state == lease_state::closing && lease.unfinished == 0) close(outcomes.lease, out);
}

} // namespace troupe
