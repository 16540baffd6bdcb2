#include <troupe/runtime/resources/ledger.hpp>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include <troupe/runtime/resources/quote.hpp>

namespace troupe {
namespace {

using detail::quote;

constexpr share one = share::whole(1);

error refused(std::string message) { return make_error(ec::refused, std::move(message)); }

tenancy tenancy_of(const resource_profile& profile, profile_id id) {
  if (profile.max_tasks_per_executor == 0 && !profile.exclusive) return {};
  return {id, profile.max_tasks_per_executor, profile.exclusive};
}

/// Nothing else runs on its executor, not even a task of the same profile.
bool is_alone(const tenancy& t) { return t.exclusive && t.most == 1; }
bool is_bounded(const tenancy& t) { return t.most > 0 || t.exclusive; }

std::string name_of(std::string_view resource, std::string_view address) {
  return address.empty() ? quote(resource) : quote(resource) + " address " + quote(address);
}

/// Whether several shares of one resource have a form that `choose` may have made: one fraction, one counted amount, or
/// whole addresses, each once.
result<void> check_form(const std::string& resource, const std::vector<address_share>& shares) {
  if (shares.empty()) return refused(quote(resource) + " is named without an amount");
  std::set<std::string_view> seen;
  for (const auto& entry : shares) {
    const auto fault = [&](const std::string& what) { return refused(name_of(resource, entry.address) + what); };
    if (entry.amount.units <= 0) return fault(": amount " + to_string(entry.amount) + " must be above zero");
    if (entry.amount > one && (!entry.address.empty() || !entry.amount.is_whole()))
      return fault(": amount " + to_string(entry.amount) + " is not a share of it");
    if (shares.size() == 1) break;
    if (entry.address.empty() || entry.amount != one)
      return fault(": amount " + to_string(entry.amount) + " splits one request over several addresses");
    if (!seen.insert(entry.address).second) return fault(" is named twice");
  }
  return {};
}

} // namespace

ledger::ledger(executor_capacity capacity, profile_matching order)
  : capacity_(std::move(capacity)), order_(order), free_cpus_(share::whole(capacity_.cores)) {
  if (const auto memory = share::whole(capacity_.memory); !memory.is_zero())
    pools_[std::string{resource_names::memory}] = {true, {{{}, memory, memory}}};
  for (const auto& [name, resource] : capacity_.custom) {
    pool& p = pools_[name];
    p.counted = resource.addresses.empty();
    if (p.counted) p.cells.push_back({{}, share::whole(resource.amount), share::whole(resource.amount)});
    for (const auto& address : resource.addresses) p.cells.push_back({address, one, one});
    if (order_ == profile_matching::exact)
      std::sort(p.cells.begin(), p.cells.end(), [](const cell& a, const cell& b) { return a.address < b.address; });
  }
}

std::vector<address_share> ledger::pool::choose(share part, profile_matching order) const {
  std::vector<address_share> chosen;
  if (part.is_whole() && !counted) {
    const auto count = static_cast<std::size_t>(part.ceil());
    for (const auto& place : cells) {
      if (chosen.size() == count) break;
      if (place.free == one) chosen.push_back({place.address, one});
    }
    if (chosen.size() < count) chosen.clear();
  } else {
    const cell* best = nullptr;
    for (const auto& candidate : cells) {
      if (candidate.free < part || (best != nullptr && candidate.free >= best->free)) continue;
      best = &candidate;
      if (order == profile_matching::exact) break; // the first one, however empty
    }
    if (best != nullptr) chosen.push_back({best->address, part});
  }
  return chosen;
}

std::int64_t ledger::pool::free_slots(share part) const noexcept {
  if (part.is_whole() && !counted) {
    const auto is_free = [](const cell& c) { return c.free == one; };
    return std::count_if(cells.begin(), cells.end(), is_free) / part.ceil();
  }
  std::int64_t slots = 0;
  for (const auto& place : cells) slots += fits(place.free, part);
  return slots;
}

const ledger::cell* ledger::find(std::string_view resource, std::string_view address) const noexcept {
  const auto found = pools_.find(resource);
  if (found == pools_.end()) return nullptr;
  for (const auto& place : found->second.cells)
    if (place.address == address) return &place;
  return nullptr;
}

ledger::cell* ledger::find(std::string_view resource, std::string_view address) noexcept {
  return const_cast<cell*>(std::as_const(*this).find(resource, address));
}

std::int64_t ledger::tasks_beside(const tenancy& t) const noexcept {
  const auto found = is_bounded(t) ? bounded_.find(t.profile) : bounded_.end();
  return found == bounded_.end() ? 0 : found->second;
}

std::int64_t ledger::places_for(const tenancy& t) const noexcept {
  // One that is alone may be of a profile whose other tasks are not.
  if (alone_ || (is_alone(t) && held_ > 0)) return 0;
  const auto own = tasks_beside(t);
  if (t.exclusive && held_ > own) return 0;
  if (exclusive_ > 0 && !(t.exclusive && own > 0)) return 0;
  if (t.most == 0) return std::numeric_limits<std::int64_t>::max();
  return std::max<std::int64_t>(0, t.most - own);
}

std::string ledger::why_no_place_for(const tenancy& t) const {
  const auto own = tasks_beside(t);
  if (t.exclusive && held_ > own) return "the profile is exclusive, and tasks of others run on this executor";
  if (t.most > 0 && own >= t.most)
    return "the profile has at most " + std::to_string(t.most) + " tasks per executor, and " + std::to_string(own) +
           " run on this one";
  return "tasks of an exclusive profile run on this executor";
}

std::optional<allotment> ledger::choose(const resource_profile& profile, profile_id id) const {
  if (profile.task.empty()) return std::nullopt;
  allotment a;
  a.beside = tenancy_of(profile, id);
  if (places_for(a.beside) == 0) return std::nullopt;
  for (const auto& [name, part] : profile.task) {
    if (part.units <= 0) return std::nullopt;
    if (name == resource_names::cpus) {
      if (part > free_cpus_) return std::nullopt;
      a.cpus = part;
      continue;
    }
    const auto found = pools_.find(name);
    if (found == pools_.end()) return std::nullopt;
    auto chosen = found->second.choose(part, order_);
    if (chosen.empty()) return std::nullopt;
    a.resources.emplace(name, std::move(chosen));
  }
  return a;
}

result<void> ledger::check(const allotment& a, std::string_view verb, std::string_view state,
                           share (*limit_of)(const cell&)) const {
  const auto refuse = [&](const std::string& name, share wanted, share limit) {
    return refused(name + ": cannot " + std::string{verb} + " " + to_string(wanted) + ", only " + to_string(limit) +
                   " " + std::string{state});
  };
  const share cpus_limit = limit_of({{}, share::whole(capacity_.cores), free_cpus_});
  if (a.cpus.units < 0 || a.cpus > cpus_limit) return refuse("cpus", a.cpus, cpus_limit);
  for (const auto& [resource, shares] : a.resources) {
    if (auto ok = check_form(resource, shares); !ok) return ok;
    for (const auto& entry : shares) {
      const cell* place = find(resource, entry.address);
      if (place == nullptr) return refused(name_of(resource, entry.address) + " does not exist on this executor");
      if (entry.amount > limit_of(*place))
        return refuse(name_of(resource, entry.address), entry.amount, limit_of(*place));
    }
  }
  return {};
}

result<void> ledger::acquire(const allotment& a) {
  const auto free = [](const cell& c) { return c.free; };
  if (auto ok = check(a, "take", "free", free); !ok) return ok;
  if (places_for(a.beside) == 0) return refused(why_no_place_for(a.beside));
  ++held_;
  if (is_bounded(a.beside)) ++bounded_[a.beside.profile];
  if (a.beside.exclusive) ++exclusive_;
  alone_ = is_alone(a.beside);
  free_cpus_.units -= a.cpus.units;
  for (const auto& [resource, shares] : a.resources)
    for (const auto& entry : shares) find(resource, entry.address)->free.units -= entry.amount.units;
  return {};
}

result<void> ledger::release(const allotment& a) {
  const auto taken = [](const cell& c) { return share{c.total.units - c.free.units}; };
  if (auto ok = check(a, "give back", "taken", taken); !ok) return ok;
  const auto own = bounded_.find(a.beside.profile);
  if (held_ == 0 || (is_bounded(a.beside) && own == bounded_.end()) || (a.beside.exclusive && exclusive_ == 0))
    return refused("no task of that profile runs on this executor");
  --held_;
  if (is_bounded(a.beside) && --own->second == 0) bounded_.erase(own);
  if (a.beside.exclusive) --exclusive_;
  if (is_alone(a.beside)) alone_ = false;
  free_cpus_.units += a.cpus.units;
  for (const auto& [resource, shares] : a.resources)
    for (const auto& entry : shares) find(resource, entry.address)->free.units += entry.amount.units;
  return {};
}

std::int64_t ledger::free_slots(const resource_profile& profile, profile_id id) const {
  const auto places = places_for(tenancy_of(profile, id));
  std::optional<std::int64_t> slots;
  for (const auto& [name, part] : profile.task) {
    std::int64_t here = 0;
    if (part.units <= 0) return 0;
    if (name == resource_names::cpus)
      here = fits(free_cpus_, part);
    else if (const auto found = pools_.find(name); found != pools_.end())
      here = found->second.free_slots(part);
    if (here == 0) return 0;
    slots = std::min(slots.value_or(here), here);
  }
  return std::min(slots.value_or(0), places);
}

share ledger::free_of(std::string_view resource, std::string_view address) const {
  const cell* place = find(resource, address);
  return place != nullptr ? place->free : share{};
}

bool ledger::is_idle() const {
  return held_ == 0 && free_cpus_ == share::whole(capacity_.cores) &&
         std::all_of(pools_.begin(), pools_.end(), [](const auto& entry) {
           const auto& cells = entry.second.cells;
           return std::all_of(cells.begin(), cells.end(), [](const cell& c) { return c.free == c.total; });
         });
}

bool matches(const allotment& a, const resource_profile& profile) {
  if (a.cpus != profile.task_amount(resource_names::cpus)) return false;
  if (a.beside != tenancy_of(profile, a.beside.profile)) return false;
  std::size_t custom = 0;
  for (const auto& [name, part] : profile.task) {
    if (name == resource_names::cpus) continue;
    ++custom;
    const auto held = a.resources.find(name);
    if (held == a.resources.end() || !check_form(name, held->second)) return false;
    const auto& shares = held->second;
    const bool in_one_piece = shares.size() == 1 && shares.front().amount == part;
    const bool in_whole_addresses = part.is_whole() && !shares.front().address.empty() &&
                                    static_cast<std::int64_t>(shares.size()) == part.ceil() &&
                                    shares.front().amount == one;
    if (!in_one_piece && !in_whole_addresses) return false;
  }
  return custom == a.resources.size();
}

} // namespace troupe
