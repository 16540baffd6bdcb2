#include <troupe/runtime/resources/ledger.hpp>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "profiles.hpp"

namespace troupe {
namespace {

constexpr std::array<const char*, 11> fractions{"0.1", "0.19", "0.25", "0.3",  "1/3", "0.4",
                                                "0.5", "0.6",  "0.7",  "0.81", "1/93"};

class ledger_property : public testing::TestWithParam<unsigned> {
protected:
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>{low, high}(random);
  }

  executor_capacity random_capacity() {
    auto capacity = capacity_with(between(1, 12));
    capacity.memory = between(0, 6);
    for (const auto* name : {"fpga", "gpu"})
      if (between(0, 3) > 0) {
        capacity.custom[name] = numbered(between(1, 5));
        if (between(0, 4) == 0) capacity.custom[name].addresses.clear();
      }
    return capacity;
  }

  std::string random_amount() {
    return between(0, 2) == 0 ? std::to_string(between(1, 3)) : fractions[between(0, fractions.size() - 1)];
  }

  resource_profile random_profile() {
    auto profile = profile_of({}, {{"cpus", between(0, 1) == 0 ? "1" : random_amount()}});
    for (const auto* name : {"fpga", "gpu"})
      if (between(0, 1) == 0) profile.task[name] = parsed(random_amount());
    if (between(0, 2) == 0) profile.task["memory"] = share::whole(between(1, 4));
    if (between(0, 3) == 0) profile.max_tasks_per_executor = between(1, 3);
    profile.exclusive = between(0, 5) == 0;
    return profile;
  }

  std::mt19937_64 random{GetParam()};
};

/// Profiles of one kind count as one here: what the ledger knows of them is the id alone.
profile_id id_of(const resource_profile& profile) {
  return profile_id{static_cast<std::uint64_t>(1 + 2 * profile.max_tasks_per_executor + (profile.exclusive ? 1 : 0))};
}

/// An independent book: what is taken, address by address, summed up anew from the live allotments.
struct book {
  const executor_capacity& capacity;
  std::vector<allotment> live;

  share taken_cpus() const {
    share sum;
    for (const auto& a : live) sum.units += a.cpus.units;
    return sum;
  }
  share taken(const std::string& resource, const std::string& address) const {
    share sum;
    for (const auto& a : live)
      if (const auto held = a.resources.find(resource); held != a.resources.end())
        for (const auto& entry : held->second)
          if (entry.address == address) sum.units += entry.amount.units;
    return sum;
  }
  share free(const std::string& resource, const std::string& address) const {
    if (resource == "memory") return share{share::whole(capacity.memory).units - taken(resource, address).units};
    const auto& pool = capacity.custom.at(resource);
    const share total = pool.addresses.empty() ? share::whole(pool.amount) : share::whole(1);
    return share{total.units - taken(resource, address).units};
  }
  /// Whether a task fits now, by trying every address.
  bool fits_now(const resource_profile& profile) const {
    const auto is_bounded = profile.max_tasks_per_executor > 0 || profile.exclusive;
    std::int64_t own = 0;
    for (const auto& a : live) {
      const bool same = is_bounded && a.beside.profile == id_of(profile);
      own += same ? 1 : 0;
      if (!same && (profile.exclusive || a.beside.exclusive)) return false;
    }
    if (profile.max_tasks_per_executor > 0 && own >= profile.max_tasks_per_executor) return false;
    for (const auto& [name, part] : profile.task) {
      if (name == "cpus") {
        if (taken_cpus().units + part.units > share::whole(capacity.cores).units) return false;
        continue;
      }
      if (name == "memory") {
        if (free(name, "") < part) return false;
        continue;
      }
      if (capacity.custom.count(name) == 0) return false;
      const auto& pool = capacity.custom.at(name);
      const auto addresses = pool.addresses.empty() ? std::vector<std::string>{""} : pool.addresses;
      const bool one_by_one = part > share::whole(1) && !pool.addresses.empty();
      const share each = one_by_one ? share::whole(1) : part;
      const auto enough = std::count_if(addresses.begin(), addresses.end(),
                                        [&](const auto& address) { return free(name, address) >= each; });
      if (enough < (one_by_one ? part.ceil() : 1)) return false;
    }
    return true;
  }
};

TEST_P(ledger_property, agrees_with_a_brute_force_book) {
  for (int round = 0; round < 40; ++round) {
    const auto capacity = random_capacity();
    ledger l{capacity};
    book b{capacity, {}};
    for (int step = 0; step < 60; ++step) {
      if (!b.live.empty() && between(0, 2) == 0) {
        const auto victim = b.live.begin() + between(0, static_cast<std::int64_t>(b.live.size()) - 1);
        ASSERT_TRUE(l.release(*victim));
        b.live.erase(victim);
      } else {
        const auto profile = random_profile();
        const auto chosen = l.choose(profile, id_of(profile));
        ASSERT_EQ(chosen.has_value(), b.fits_now(profile)) << to_string(profile);
        ASSERT_EQ(l.free_slots(profile, id_of(profile)) > 0, chosen.has_value()) << to_string(profile);
        if (!chosen) continue;
        ASSERT_TRUE(matches(*chosen, profile)) << to_string(profile);
        ASSERT_TRUE(l.acquire(*chosen));
        b.live.push_back(*chosen);
      }
      ASSERT_EQ(l.free_cpus().units, share::whole(capacity.cores).units - b.taken_cpus().units);
      for (const auto& [name, pool] : capacity.custom) {
        const auto addresses = pool.addresses.empty() ? std::vector<std::string>{""} : pool.addresses;
        for (const auto& address : addresses) {
          ASSERT_EQ(l.free_of(name, address), b.free(name, address));
          ASSERT_GE(l.free_of(name, address).units, 0);
        }
      }
      ASSERT_EQ(l.free_of("memory", ""), b.free("memory", ""));
      ASSERT_EQ(l.is_idle(), b.live.empty());
    }
  }
}

TEST_P(ledger_property, slots_are_as_many_as_can_be_taken) {
  for (int round = 0; round < 200; ++round) {
    const auto capacity = random_capacity();
    ledger l{capacity};
    const auto profile = random_profile();
    ASSERT_EQ(l.free_slots(profile, id_of(profile)), slots_of(capacity, profile).slots) << to_string(profile);
    // Some of it is taken by others.
    for (int i = 0; i < 3; ++i) {
      const auto other = l.choose(random_profile());
      if (!other) continue;
      ASSERT_TRUE(l.acquire(*other));
    }
    std::int64_t left = l.free_slots(profile, id_of(profile));
    while (const auto chosen = l.choose(profile, id_of(profile))) {
      ASSERT_TRUE(l.acquire(*chosen));
      --left;
      ASSERT_EQ(l.free_slots(profile, id_of(profile)), left) << to_string(profile);
    }
    ASSERT_EQ(left, 0) << to_string(profile);
  }
}

TEST_P(ledger_property, giving_back_restores_every_amount) {
  for (int round = 0; round < 100; ++round) {
    ledger l{random_capacity()};
    std::vector<allotment> live;
    for (int i = 0; i < 20; ++i) {
      const auto profile = random_profile();
      const auto chosen = l.choose(profile, id_of(profile));
      if (!chosen) continue;
      ASSERT_TRUE(l.acquire(*chosen));
      live.push_back(*chosen);
    }
    std::shuffle(live.begin(), live.end(), random);
    for (const auto& a : live) ASSERT_TRUE(l.release(a));
    EXPECT_TRUE(l.is_idle());
  }
}

TEST_P(ledger_property, a_fraction_takes_the_fullest_address_that_fits) {
  for (int round = 0; round < 100; ++round) {
    ledger l{capacity_with(100, {{"gpu", numbered(5)}})};
    for (int i = 0; i < 12; ++i) {
      const auto part = parsed(fractions[between(0, fractions.size() - 1)]);
      resource_profile profile;
      profile.task["gpu"] = part;
      const auto chosen = l.choose(profile, id_of(profile));
      if (!chosen) continue;
      const auto& address = chosen->resources.at("gpu").front().address;
      for (int other = 0; other < 5; ++other) {
        const auto free = l.free_of("gpu", std::to_string(other));
        if (free >= part) {
          ASSERT_LE(l.free_of("gpu", address), free);
        }
      }
      ASSERT_TRUE(l.acquire(*chosen));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(seeds, ledger_property, testing::Values(1u, 2u, 3u, 20260731u));

} // namespace
} // namespace troupe
