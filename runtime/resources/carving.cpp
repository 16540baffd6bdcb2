#include <troupe/runtime/resources/carving.hpp>

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include <troupe/runtime/resources/quote.hpp>
#include <troupe/runtime/spelling.hpp>

namespace troupe {
namespace {

/// One amount that a shape wants of a host.
struct want {
  std::string resource; ///< `cores`, `memory` (all of it) or a custom name
  std::int64_t amount = 0;
  bool counted = false; ///< a size of a custom resource
};

std::vector<want> wants_of(const resource_profile& shape) {
  const auto capacity = capacity_of(shape);
  std::vector<want> wants{{std::string{resource_names::cores}, std::max<std::int64_t>(capacity.cores, 1)},
                          {std::string{resource_names::memory}, container_memory(capacity)}};
  for (const auto& [name, pool] : capacity.custom) wants.push_back({name, pool.amount, pool.counted});
  return wants;
}

std::int64_t amount_of(const executor_capacity& capacity, const std::string& resource) {
  return resource == resource_names::memory ? container_memory(capacity) : capacity.amount_of(resource);
}

/// What a host has of that kind: a size is no number of addresses, and the other way round.
std::int64_t amount_on(const carving_host& host, const want& w) {
  if (w.resource == resource_names::cores) return host.cores;
  if (w.resource == resource_names::memory) return host.memory;
  const auto pool = host.custom.find(w.resource);
  return pool != host.custom.end() && pool->second.counted == w.counted ? pool->second.amount : 0;
}

/// Another amount of what `w` wants, for people.
std::string number_text(const want& w, std::int64_t amount) {
  return executor_amount_to_string(w.resource, amount, w.counted && amount > 0);
}

std::string want_text(const want& w) {
  if (w.resource == resource_names::cores) return std::to_string(w.amount) + (w.amount == 1 ? " core" : " cores");
  if (w.resource == resource_names::memory) return memory_to_string(w.amount) + " of memory";
  return w.resource + " " + number_text(w, w.amount);
}

std::string list_text(const std::vector<want>& wants) {
  std::string list;
  for (const auto& w : wants) list += (list.empty() ? "" : ", ") + want_text(w);
  return list;
}

/// How the memory adds up, where it has more than one part: people ask for 4g and wonder where 4.5g come from.
std::string memory_parts(const resource_profile& shape) {
  std::string parts;
  int count = 0;
  for (const auto name : {resource_names::memory, resource_names::memory_overhead, resource_names::off_heap,
                          resource_names::pyspark_memory}) {
    const std::int64_t bytes = shape.executor_amount(name);
    if (bytes == 0) continue;
    parts += (count++ > 0 ? " + " : "") + std::string{name} + " " + memory_to_string(bytes);
  }
  return count > 1 ? " (" + parts + ")" : "";
}

/// Which of two sets would rather go: the smaller one, then the one whose last stands earlier. An empty one makes no
/// way.
bool is_less(const std::vector<std::size_t>& a, const std::vector<std::size_t>& b) {
  if (a.empty() || b.empty()) return !a.empty();
  return std::tuple{a.size(), a.back()} < std::tuple{b.size(), b.back()};
}

} // namespace

result<void> validate(const carving_host& host) {
  if (host.name.empty()) return make_error(ec::invalid_argument, "a host has no name");
  const auto ok = validate(executor_capacity{host.cores, host.memory, 0, 0, 0, host.custom});
  if (!ok) return make_error(ok.error().code, "host " + detail::quote(host.name) + ": " + ok.error().message);
  return {};
}

carving::carving(std::vector<carving_host> hosts, std::string described_by)
  : hosts_(std::move(hosts)), described_by_(std::move(described_by)), states_(hosts_.size()) {
  std::map<std::string, std::size_t> machines;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    const auto& host = hosts_[i];
    auto machine = lent_devices_.size();
    if (!host.machine.empty()) machine = machines.emplace(host.machine, machine).first->second;
    if (machine == lent_devices_.size()) lent_devices_.emplace_back();
    states_[i] = {machine, host.cores, host.memory, {}};
    for (const auto& [name, pool] : host.custom)
      if (pool.addresses.empty()) states_[i].counted[name] = pool.amount;
  }
}

result<carved_executor> carving::place(request_id request, const resource_profile& shape) {
  if (lent_.count(request) != 0)
    return make_error(ec::invalid_argument, "request " + std::to_string(request.value) + " has an executor already");
  if (auto possible = check(shape); !possible.feasible) return make_error(ec::infeasible, possible.sentence);
  auto executor = find_place(shape, all_hosts());
  if (!executor)
    return make_error(ec::overloaded, "no host has room now for an executor with " + to_string(shape) +
                                          "; it starts when others end (" + described_by_ + ")");
  lend(*executor);
  lent_.emplace(request, *executor);
  return *std::move(executor);
}

bool carving::free(request_id request) {
  const auto found = lent_.find(request);
  if (found == lent_.end()) return false;
  if (found->second) take_back(*found->second);
  lent_.erase(found);
  return true;
}

bool carving::park(request_id request) {
  const auto found = lent_.find(request);
  if (found == lent_.end() || !found->second) return false;
  take_back(*found->second);
  found->second.reset();
  return true;
}

std::uint32_t carving::room_for(const resource_profile& shape) const {
  carving scratch = *this;
  std::uint32_t room = 0;
  const auto all = all_hosts();
  for (auto next = scratch.find_place(shape, all); next; next = scratch.find_place(shape, all)) {
    scratch.lend(*next);
    ++room;
  }
  return room;
}

way_answer carving::who_makes_way(const resource_profile& shape, std::uint32_t count,
                                  const std::vector<request_id>& leaving, const std::vector<request_id>& may_go) const {
  carving scratch = *this;
  for (const auto request : leaving) scratch.free(request);
  const bool devices = !capacity_of(shape).custom.empty();
  const auto helpers = scratch.helpers_of(may_go, devices);
  way_answer answer;
  std::vector<std::vector<std::size_t>> fewest(hosts_.size()); // by host, indexes into `may_go`, ascending
  auto changed = all_hosts();
  while (answer.placed < count) {
    if (const auto place = scratch.find_place(shape, changed)) {
      scratch.lend(*place);
      ++answer.placed;
      continue;
    }
    for (const auto host : changed) fewest[host] = scratch.fewest_on(host, shape, may_go, helpers[host]);
    const auto host =
        static_cast<std::size_t>(std::min_element(fewest.begin(), fewest.end(), is_less) - fewest.begin());
    if (host == fewest.size() || fewest[host].empty()) break;
    for (const auto i : fewest[host]) {
      scratch.free(may_go[i]);
      answer.going.push_back(may_go[i]);
    }
    changed = hosts_with(host, devices);
  }
  looks_ = scratch.looks_;
  return answer;
}

std::vector<std::size_t> carving::all_hosts() const {
  std::vector<std::size_t> all(hosts_.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

/// Where there may be more or less room when something is lent or taken back on this host: there, and for a shape that
/// takes devices on all hosts of its machine.
std::vector<std::size_t> carving::hosts_with(std::size_t host, bool devices) const {
  if (!devices) return {host};
  auto all = all_hosts();
  std::erase_if(all, [&](std::size_t other) { return states_[other].machine != states_[host].machine; });
  return all;
}

/// By host, those of `may_go` whose end may help there: an executor holds amounts of its own host, and addresses of all
/// hosts of its machine.
std::vector<std::vector<std::size_t>> carving::helpers_of(const std::vector<request_id>& may_go, bool devices) const {
  std::vector<std::vector<std::size_t>> helpers(hosts_.size());
  for (std::size_t i = 0; i < may_go.size(); ++i) {
    const auto found = lent_.find(may_go[i]);
    if (found == lent_.end() || !found->second) continue;
    const auto& custom = found->second->capacity.custom;
    const bool holds =
        std::any_of(custom.begin(), custom.end(), [](const auto& entry) { return !entry.second.addresses.empty(); });
    for (const auto host : hosts_with(found->second->host, devices && holds)) helpers[host].push_back(i);
  }
  return helpers;
}

/// Whose end makes room for one executor on the host, of those in `order` that are still there; none when nobody's
/// does.
std::vector<std::size_t> carving::fewest_on(std::size_t host, const resource_profile& shape,
                                            const std::vector<request_id>& may_go, std::vector<std::size_t> order) {
  std::erase_if(order, [&](std::size_t i) { return !lent_.contains(may_go[i]); });
  std::vector<std::size_t> best;
  // Those that hold most of it first, for each resource in turn: the fewest where one resource is what is short. The
  // fewest for several at once would be a search through all sets of executors.
  for (const auto& w : wants_of(shape)) {
    const auto held = [&](std::size_t i) { return amount_of(lent_.at(may_go[i])->capacity, w.resource); };
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return held(a) > held(b); });
    auto some = enough_on(host, shape, may_go, order);
    if (is_less(some, best)) best = std::move(some);
  }
  return best;
}

/// The first of `order` whose end makes room on this host, less those that are not needed for it, the last in `may_go`
/// first; none when not even all of them do. Changes nothing in the end.
std::vector<std::size_t> carving::enough_on(std::size_t host, const resource_profile& shape,
                                            const std::vector<request_id>& may_go,
                                            const std::vector<std::size_t>& order) {
  const auto executor = [&](std::size_t i) -> const carved_executor& { return *lent_.at(may_go[i]); };
  std::vector<std::size_t> gone;
  for (const auto i : order) {
    if (carve(host, shape)) break;
    take_back(executor(i));
    gone.push_back(i);
  }
  const bool enough = carve(host, shape).has_value();
  std::sort(gone.begin(), gone.end());
  std::vector<std::size_t> needed;
  for (auto it = gone.rbegin(); it != gone.rend(); ++it) {
    lend(executor(*it));
    if (!enough || carve(host, shape)) continue;
    take_back(executor(*it));
    needed.insert(needed.begin(), *it);
  }
  for (const auto i : needed) lend(executor(i));
  return needed;
}

std::string carving::lack_for(const resource_profile& shape, std::uint32_t count) const {
  const auto room = room_for(shape);
  if (room >= count) return {};
  if (const auto possible = check(shape); !possible.feasible)
    return (count == 1 ? "fits no host: " : "fit no host: ") + possible.sentence;
  const std::string need = count == 1 ? "needs " : "need ";
  const auto wants = wants_of(shape);
  for (const auto& w : wants) {
    std::int64_t needed = 0;
    if (__builtin_mul_overflow(w.amount, std::int64_t{count}, &needed))
      needed = std::numeric_limits<std::int64_t>::max();
    const auto free = amount_on_all(w.resource, w.counted, true);
    if (needed <= free) continue;
    const auto all = amount_on_all(w.resource, w.counted, false);
    return need + want_text({w.resource, needed, w.counted}) +
           (hosts_.size() == 1 ? ", the host has " : ", the hosts have ") + number_text(w, all) +
           (free < all ? ", of which others take " + number_text(w, all - free) : "") +
           " (missing: " + want_text({w.resource, needed - free, w.counted}) + ")";
  }
  return need + list_text(wants) + (count == 1 ? "" : " each") + " on one host, and " +
         (room == 0 ? "none has all of that left" : "there is room for " + std::to_string(room) + " only");
}

/// An address that several hosts of one machine list is counted once.
std::int64_t carving::amount_on_all(const std::string& resource, bool counted, bool only_free) const {
  std::int64_t sum = 0;
  std::set<std::pair<std::size_t, std::string>> devices; // machine, address
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    const auto& state = states_[i];
    auto here = amount_on(hosts_[i], {resource, 0, counted});
    const auto custom = hosts_[i].custom.find(resource);
    const bool has_kind = custom != hosts_[i].custom.end() && custom->second.counted == counted;
    if (has_kind && !custom->second.addresses.empty()) {
      here = 0;
      for (const auto& address : custom->second.addresses)
        if (!(only_free && lent_devices_[state.machine].contains({resource, address})))
          here += devices.emplace(state.machine, address).second ? 1 : 0;
    } else if (only_free) {
      if (resource == resource_names::cores)
        here = state.cores;
      else if (resource == resource_names::memory)
        here = state.memory;
      else if (has_kind)
        here = state.counted.at(resource);
    }
    if (__builtin_add_overflow(sum, here, &sum)) return std::numeric_limits<std::int64_t>::max();
  }
  return sum;
}

feasibility carving::check(const resource_profile& shape) const {
  const auto wants = wants_of(shape);
  // The host that lacks least, in case every amount exists somewhere but never together.
  const carving_host* nearest = nullptr;
  std::vector<want> nearest_lacks;
  std::int64_t most = 0;
  for (const auto& host : hosts_) {
    std::vector<want> lacks;
    // Who does not say how many cores takes them all (spec SM-6).
    std::int64_t here = capacity_of(shape).cores > 0 ? host.cores : 1;
    for (const auto& w : wants) {
      if (amount_on(host, w) < w.amount) lacks.push_back(w);
      if (w.amount > 0) here = std::min(here, amount_on(host, w) / w.amount);
    }
    if (lacks.empty()) most += here;
    if (nearest == nullptr || lacks.size() < nearest_lacks.size()) {
      nearest = &host;
      nearest_lacks = std::move(lacks);
    }
  }
  for (const auto& w : wants) // hosts of one machine share its addresses
    if (w.resource != resource_names::cores && w.resource != resource_names::memory && w.amount > 0)
      most = std::min(most, amount_on_all(w.resource, w.counted, false) / w.amount);
  if (most > 0) return {true, true, {}, static_cast<std::uint32_t>(std::min<std::int64_t>(most, 0xffff'ffff))};
  const auto because_of = " (" + described_by_ + ")";
  if (nearest == nullptr) return {false, true, "there is no host to run executors on" + because_of};

  const auto hosts = std::to_string(hosts_.size()) + (hosts_.size() == 1 ? " host" : " hosts");
  std::string sentence;
  for (const auto& w : wants) {
    std::int64_t largest = 0;
    bool other_kind = false;
    for (const auto& host : hosts_) {
      largest = std::max(largest, amount_on(host, w));
      other_kind = other_kind || amount_on(host, {w.resource, 0, !w.counted}) > 0;
    }
    if (largest >= w.amount) continue;
    sentence += (sentence.empty() ? "" : "; ") + std::string{"no host has "} + want_text(w);
    if (w.resource == resource_names::memory) sentence += memory_parts(shape);
    sentence += ": the largest of " + hosts + " has " + number_text(w, largest);
    if (largest == 0 && !other_kind) {
      std::vector<std::string> known;
      for (const auto& host : hosts_)
        for (const auto& [name, pool] : host.custom) known.push_back(name);
      auto meant = nearest_name(w.resource, known);
      // `cards` and `ports` are no misspelt `cores`.
      for (const auto built_in : {resource_names::cores, resource_names::memory})
        if (meant.empty() && edit_distance(w.resource, built_in) == 1) meant = built_in;
      if (!meant.empty()) sentence += "; did you mean " + meant + "?";
    }
    if (largest == 0 && other_kind)
      sentence += w.counted ? "; they have a number of it, not a size" : "; they have a size of it, not a number";
  }
  if (sentence.empty()) {
    sentence = "no single host has all of " + list_text(wants) + ": the nearest, " + nearest->name + ", lacks ";
    for (std::size_t i = 0; i < nearest_lacks.size(); ++i) {
      const auto& lack = nearest_lacks[i];
      sentence += (i == 0 ? "" : ", ") + want_text(lack) + ", has " + number_text(lack, amount_on(*nearest, lack));
    }
  }
  return {false, true, sentence + because_of};
}

std::optional<executor_capacity> carving::carve(std::size_t host, const resource_profile& shape) const {
  ++looks_;
  auto capacity = capacity_of(shape);
  const auto& state = states_[host];
  // Who does not say how many takes them all (spec SM-6).
  if (capacity.cores == 0) capacity.cores = state.cores;
  if (capacity.cores <= 0 || capacity.cores > state.cores || container_memory(capacity) > state.memory)
    return std::nullopt;
  const auto& lent = lent_devices_[state.machine];
  for (auto& [name, pool] : capacity.custom) {
    const auto there = hosts_[host].custom.find(name);
    if (there == hosts_[host].custom.end() || there->second.counted != pool.counted) return std::nullopt;
    if (there->second.addresses.empty()) {
      if (pool.amount > state.counted.at(name)) return std::nullopt;
      continue;
    }
    for (const auto& address : there->second.addresses) {
      if (static_cast<std::int64_t>(pool.addresses.size()) == pool.amount) break;
      if (lent.count({name, address}) == 0) pool.addresses.push_back(address);
    }
    if (static_cast<std::int64_t>(pool.addresses.size()) < pool.amount) return std::nullopt;
  }
  return capacity;
}

std::optional<carved_executor> carving::find_place(const resource_profile& shape,
                                                   const std::vector<std::size_t>& among) const {
  std::optional<carved_executor> best;
  std::tuple<std::int64_t, std::int64_t, std::int64_t> best_cost;
  for (const auto i : among) {
    auto capacity = carve(i, shape);
    if (!capacity) continue;
    const std::tuple cost{spare_after(i, shape), states_[i].cores, states_[i].memory};
    if (best && cost >= best_cost) continue;
    best = carved_executor{i, *std::move(capacity)};
    best_cost = cost;
  }
  return best;
}

/// Custom amounts that lie free on a host and that the shape has no use for. A counted size is one thing, however
/// large.
std::int64_t carving::spare_after(std::size_t host, const resource_profile& shape) const {
  std::int64_t spare = 0;
  for (const auto& [name, pool] : hosts_[host].custom) {
    if (shape.executor_amount(name) > 0) continue;
    if (pool.addresses.empty()) {
      const auto free = states_[host].counted.at(name);
      spare += pool.counted ? std::min<std::int64_t>(free, 1) : free;
    }
    for (const auto& address : pool.addresses)
      spare += lent_devices_[states_[host].machine].count({name, address}) == 0 ? 1 : 0;
  }
  return spare;
}

void carving::lend(const carved_executor& executor) {
  auto& state = states_[executor.host];
  state.cores -= executor.capacity.cores;
  state.memory -= container_memory(executor.capacity);
  for (const auto& [name, pool] : executor.capacity.custom) {
    if (pool.addresses.empty()) state.counted.at(name) -= pool.amount;
    for (const auto& address : pool.addresses) lent_devices_[state.machine].insert({name, address});
  }
}

void carving::take_back(const carved_executor& executor) {
  auto& state = states_[executor.host];
  state.cores += executor.capacity.cores;
  state.memory += container_memory(executor.capacity);
  for (const auto& [name, pool] : executor.capacity.custom) {
    if (pool.addresses.empty()) state.counted.at(name) += pool.amount;
    for (const auto& address : pool.addresses) lent_devices_[state.machine].erase({name, address});
  }
}

} // namespace troupe
