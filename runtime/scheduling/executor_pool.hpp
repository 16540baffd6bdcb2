#pragma once

/// The executors of a session as the dag scheduler sees them: what is free, who holds which lease, and for each demand
/// which executors have room. Owner: the dag scheduler. Not thread-safe; no clock, no I/O.

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <memory_resource>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/resources/capacity.hpp>
#include <troupe/runtime/resources/profile_rules.hpp>
#include <troupe/runtime/scheduling/executor_record.hpp>
#include <troupe/runtime/scheduling/flat_index.hpp>
#include <troupe/runtime/scheduling/hindrance.hpp>
#include <troupe/runtime/scheduling/lease_record.hpp>
#include <troupe/runtime/scheduling/placement_policy.hpp>
#include <troupe/runtime/scheduling/slab.hpp>
#include <troupe/runtime/time.hpp>

namespace troupe {

/// What placement looks for: tasks of one profile that can run wherever `build_id` does ("" for commands).
/// Interned; its `demand_index` is the position in the pool.
struct demand {
  profile_id profile;
  shape_id shape;
  std::shared_ptr<const resource_profile> content; ///< complete; its task half alone where `any_executor`
  std::string build_id;
  bool any_executor = false; ///< `exact`: whatever an executor was started for (see `resolved_profile`)
  bool alone = false;        ///< nothing else runs there meanwhile; `content` says so too
  bool gang = false;         ///< its tasks start together or not at all
};

/// Where an executor stands among those that have room for a demand: the best one first.
struct room_key {
  std::int64_t excess = 0; ///< amount of resources that the demand does not ask for
  std::int64_t load = 0;   ///< by the placement policy
  executor_id id;
  executor_index executor = no_executor;
  auto operator<=>(const room_key&) const = default;
};

class executor_pool {
public:
  explicit executor_pool(profile_matching matching, placement_policy policy = placement_policy::spread)
    : matching_(matching), policy_(policy) {}

  /// The number of this demand, new or known.
  demand_index intern(demand d);
  const demand& demand_of(demand_index d) const { return demands_[d].what; }

  executor_index add(executor_info info, time_point now);
  /// Forgets an executor and its leases. The caller has dealt with what ran there.
  void remove(executor_index executor);
  executor_index find(executor_id id) const { return index_.find(id); }
  bool is_present(executor_index e) const { return static_cast<bool>(executors_[e].info.executor); }
  executor_record& operator[](executor_index e) { return executors_[e]; }
  const executor_record& operator[](executor_index e) const { return executors_[e]; }
  /// Where they stand will be looked up soon; and then, they will be looked at. Where there are ten thousand of them,
  /// most of a placement's time would else be spent waiting for memory.
  void prefetch_index(executor_id executor, lease_id lease) const noexcept {
    index_.prefetch(executor);
    leases_.prefetch_index(lease);
  }
  void prefetch_records(executor_id executor, lease_id lease) const noexcept {
    if (const auto e = find(executor); e != no_executor) prefetch(&executors_[e], executor_record::hot_bytes);
    leases_.prefetch_record(lease);
  }
  /// Indices of all present executors, ascending id.
  const std::map<executor_id, executor_index>& all() const noexcept { return by_id_; }

  /// No more leases on it from now on.
  void drain(executor_index executor);

  /// Takes a slot for `d` on the best executor that has one: fewest resources that the task does not ask for, then by
  /// the placement policy, then lowest id. Null: none has room.
  lease_record* grant(demand_index d);
  /// Executors on which `grant` would take a slot, the best ones, in that order.
  std::vector<executor_index> with_room(demand_index d, std::size_t most = std::numeric_limits<std::size_t>::max());
  /// The same on one executor.
  lease_record* grant_on(executor_index executor, demand_index d);
  /// Gives the lease's resources back and forgets it. Most slots are passed on at once, whole: the executor enters the
  /// lists of those with room when these are next gone through, or at `settle`.
  void release(lease_id lease);
  /// Whoever has room is listed from now on. What counts slots throws std::logic_error before this.
  void settle();
  lease_record* find_lease(lease_id lease) { return leases_.find(lease); }
  const lease_record* find_lease(lease_id lease) const { return leases_.find(lease); }

  /// The executor declined tasks of `d`: none is tried there before `until`. Its free slots are kept for nobody.
  void mark_refused(executor_index executor, demand_index d, time_point until, std::string reason);
  /// Why some executor that satisfies the demand is not tried now; nothing where none refused.
  std::optional<std::string> refusal_of(demand_index d) const;
  /// Lets executors be tried again whose time is over. @returns whether there were any.
  bool forgive(time_point now);
  /// The executor can never run tasks of `d`, whatever it said of itself.
  void bar(executor_index executor, demand_index d);
  /// The executor satisfies no demand of this profile until it is readmitted. What runs there runs on.
  void exclude(executor_index executor, profile_id profile);
  void readmit(executor_index executor, profile_id profile);

  /// Keeps what is and gets free on the executor for `d` alone, so that small slots that come back can grow into a
  /// large one. @pre not kept for another
  void reserve(executor_index executor, demand_index d);
  void unreserve(executor_index executor);
  /// The same for a gang that gathers, instead of what else it was reserved for; ended by `unreserve`, and by whatever
  /// ends that the executor can serve the gang.
  void hold(executor_index executor, demand_index d);

  /// Executors with addresses of these resources, which tasks of `d` do not ask for, are kept for others: `d` has no
  /// room there. Replaces what was said before.
  void keep_from(demand_index d, std::set<std::string, std::less<>> resources);
  const std::set<std::string, std::less<>>& kept_from(demand_index d) const { return demands_[d].kept_from; }
  /// The resource for whose sake the executor is kept from the demand; "" where it is not.
  std::string_view kept_for(executor_index executor, demand_index d) const;

  /// Why the executor gets no task of the demand now: the predicate that placement goes by.
  hindrance hindrance_of(executor_index executor, demand_index d) const;
  /// How many present executors satisfy the demand when empty.
  std::uint32_t satisfying(demand_index d) const { return static_cast<std::uint32_t>(demands_[d].satisfied_by.size()); }
  /// How many of these have nothing but what it asks for.
  std::uint32_t plainly_satisfying(demand_index d) const { return demands_[d].plain; }
  bool satisfies(executor_index executor, demand_index d) const;
  const std::set<executor_index>& satisfied_by(demand_index d) const { return demands_[d].satisfied_by; }
  /// Tasks of `d` that would run at once if nothing else ran (spec TS-14), here and on all that satisfy it.
  std::int64_t slots_on(executor_index executor, demand_index d) const;
  std::int64_t slots_of(demand_index d) const { return demands_[d].slots; }
  /// Tasks of `d` that find room now (spec TS-10, but that what is taken is not free), and how many of these where
  /// executors are held for a gang.
  std::int64_t free_slots(demand_index d) const { return settled(d).free; }
  std::int64_t held_slots(demand_index d) const { return settled(d).held; }
  /// Whether an executor on this host satisfies it.
  bool is_satisfied_on(const std::string& host, demand_index d) const;
  /// Whether an executor on another host than this one satisfies it.
  bool is_satisfied_beyond(const std::string& host, demand_index d) const;
  /// Those that would satisfy the demand were they not excluded.
  const std::set<executor_index>& excluded_from(demand_index d) const { return demands_[d].excluded; }
  bool has_room(demand_index d) const { return !demands_[d].room.empty() || has_unlisted_room(d); }
  std::size_t executors_with_room(demand_index d) {
    settle();
    return demands_[d].room.size();
  }
  bool has_room_on(executor_index executor, demand_index d) const;
  std::uint32_t leases_of(demand_index d) const { return demands_[d].leases; }

  /// True when an executor that was started on request is large enough and runs another program: one more would too.
  bool has_wrong_program(demand_index d) const;

  /// The present executor that lacks least for the demand, and what it lacks; empty when there is no executor.
  struct nearest_executor {
    executor_index executor;
    std::vector<shortfall> lacks;
    std::string other;
    bool wrong_program = false; ///< it runs commands only, or another build
  };
  std::optional<nearest_executor> nearest(demand_index d) const;

  /// Every cross-reference holds, every book equals the sum of its leases. For tests and debug builds: the first fault.
  std::optional<std::string> fault() const;
  std::size_t lease_count() const noexcept { return leases_.size(); }
  std::uint64_t examined() const noexcept { return examined_; } ///< candidates looked at by grants, ever

private:
  struct demand_record {
    demand what;
    std::set<executor_index> satisfied_by;
    std::set<executor_index> excluded; ///< else they would stand in `satisfied_by`
    /// Of those with a free slot. Slots come and go with every lease: what this forgets, it uses again.
    std::unique_ptr<std::pmr::unsynchronized_pool_resource> nodes =
        std::make_unique<std::pmr::unsynchronized_pool_resource>();
    std::pmr::set<room_key> room{nodes.get()};
    std::int64_t slots = 0; ///< of those that satisfy it, when empty
    std::int64_t free = 0;  ///< sum over `room`
    std::int64_t held = 0;  ///< the same of those that are held
    std::uint32_t leases = 0;
    std::uint32_t plain = 0; ///< of those that satisfy it: they have nothing that it does not ask for
    std::set<std::string, std::less<>> kept_from; ///< see keep_from
  };

  bool was_started_for(const executor_record& e, const demand& d) const;
  hindrance unfit(const executor_record& e, demand_index d) const;
  bool fits(const executor_record& e, demand_index d) const { return unfit(e, d) == hindrance::none; }
  hindrance closed(executor_index executor, demand_index d) const;
  std::int64_t free_on(executor_index executor, demand_index d) const;
  /// The same. @pre satisfies(executor, d)
  std::int64_t free_in_service(executor_index executor, demand_index d) const;
  std::int64_t excess_of(const executor_record& e, const demand& d) const;
  std::int64_t load_of(const executor_record& e) const;
  void recount(executor_index executor, demand_index d);
  void stop_satisfying(executor_index executor, demand_index d);
  void refresh(executor_index executor);
  void refresh(executor_index executor, demand_index d);
  void refresh(executor_index executor, executor_record::service& s, std::int64_t load);
  room_key key_of(executor_index executor, const executor_record::service& s) const;
  void drop_room(executor_index executor, executor_record::service& s);
  static const executor_record::service* find_service(const executor_record& e, demand_index d);
  lease_record* open(executor_index executor, demand_index d, allotment holding);
  const demand_record& settled(demand_index d) const;
  bool has_unlisted_room(demand_index d) const {
    return unlisted_.executor != no_executor && free_on(unlisted_.executor, d) > 0;
  }

  profile_matching matching_;
  placement_policy policy_;
  std::vector<demand_record> demands_;
  std::map<std::tuple<profile_id, std::string, bool, bool>, demand_index> demand_numbers_;
  slab<executor_record, 64> executors_;
  std::map<executor_id, executor_index> by_id_;
  flat_index<executor_id> index_;                                        ///< the same, found without a walk down a tree
  std::map<std::string, std::set<executor_index>, std::less<>> holders_; ///< of addresses, by resource
  std::set<executor_index> refusing_;                                    ///< executors with an entry in `refused`
  lease_table leases_;
  /// The executor whose slots have changed since it was listed.
  struct {
    executor_index executor = no_executor;
    std::optional<allotment> came_back; ///< the one change; nothing where there were more
  } unlisted_;
  std::uint64_t next_lease_ = 1;
  std::uint64_t examined_ = 0;
};

} // namespace troupe
