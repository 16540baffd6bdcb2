#include <troupe/runtime/resources/carving.hpp>

#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include "profiles.hpp"

namespace troupe {
namespace {

using testing::HasSubstr;

resource_profile shape(std::int64_t cores, std::int64_t memory, std::int64_t gpus = 0) {
  auto p = profile_of({{"cores", cores}, {"memory", memory}}, {{"cpus", "1"}});
  if (gpus > 0) p.executor["gpu"].amount = gpus;
  return p;
}

carving_host host(std::string name, std::int64_t cores, std::int64_t memory,
                  std::map<std::string, resource_pool> custom = {}) {
  return {std::move(name), {}, cores, memory, std::move(custom)};
}

carving two_hosts() {
  return {{host("a", 4, 8 * gib), host("b", 4, 8 * gib)}, "troupe.master = local-cluster[2,4,8g]"};
}

TEST(carving, lends_until_the_hosts_are_full_and_lends_again_what_comes_back) {
  auto c = two_hosts();
  EXPECT_EQ(c.room_for(shape(2, gib)), 4u);
  for (std::uint64_t id = 1; id <= 4; ++id) ASSERT_TRUE(c.place(request_id{id}, shape(2, gib)));
  EXPECT_EQ(c.room_for(shape(2, gib)), 0u);
  const auto refused = c.place(request_id{5}, shape(1, gib));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ec::overloaded);
  EXPECT_THAT(refused.error().message, HasSubstr("local-cluster[2,4,8g]"));
  EXPECT_TRUE(c.free(request_id{2}));
  EXPECT_FALSE(c.free(request_id{2}));
  EXPECT_EQ(c.room_for(shape(1, gib)), 2u);
  EXPECT_TRUE(c.place(request_id{5}, shape(1, gib)));
}

TEST(carving, fills_a_host_before_it_opens_the_next) {
  auto c = two_hosts();
  EXPECT_EQ(c.place(request_id{1}, shape(2, gib))->host, 0u);
  EXPECT_EQ(c.place(request_id{2}, shape(2, gib))->host, 0u);
  EXPECT_EQ(c.place(request_id{3}, shape(4, gib))->host, 1u) << "a spread of the first two would leave no room";
}

TEST(carving, counts_all_memory_of_an_executor) {
  auto c = two_hosts();
  auto p = shape(1, 4 * gib);
  p.executor["memoryOverhead"].amount = 2 * gib;
  p.executor["offHeap"].amount = gib;
  p.executor["pyspark.memory"].amount = gib;
  EXPECT_EQ(c.room_for(p), 2u);
  const auto placed = c.place(request_id{1}, p).value();
  EXPECT_EQ(placed.capacity.memory, 4 * gib);
  EXPECT_EQ(placed.capacity.memory_overhead, 2 * gib);
  EXPECT_EQ(placed.capacity.off_heap, gib);
  EXPECT_EQ(placed.capacity.pyspark_memory, gib);
  p.executor["pyspark.memory"].amount += 1;
  EXPECT_EQ(c.room_for(p), 0u);
  EXPECT_THAT(c.check(p).sentence,
              HasSubstr("(memory 4g + memoryOverhead 2g + offHeap 1g + pyspark.memory 1073741825b)"));
  EXPECT_FALSE(c.check(p).feasible);
}

TEST(carving, lends_each_address_once) {
  carving c{{host("a", 8, 8 * gib, {{"gpu", {3, {"x", "y", "z"}}}})}, "nodes.yaml"};
  EXPECT_EQ(c.place(request_id{1}, shape(1, gib, 2))->capacity.custom.at("gpu"), (resource_pool{2, {"x", "y"}}));
  EXPECT_EQ(c.place(request_id{2}, shape(1, gib, 2)).error().code, ec::overloaded);
  EXPECT_EQ(c.place(request_id{2}, shape(1, gib, 1))->capacity.custom.at("gpu"), (resource_pool{1, {"z"}}));
  c.free(request_id{1});
  EXPECT_EQ(c.place(request_id{3}, shape(1, gib, 1))->capacity.custom.at("gpu"), (resource_pool{1, {"x"}}));
  EXPECT_TRUE(validate(c.place(request_id{4}, shape(1, gib, 1))->capacity));
}

TEST(carving, hosts_on_one_machine_share_its_addresses) {
  auto a = host("a", 4, 8 * gib, {{"gpu", numbered(2)}});
  auto b = host("b", 4, 8 * gib, {{"gpu", numbered(2)}});
  carving apart{{a, b}, ""};
  EXPECT_EQ(apart.room_for(shape(1, gib, 1)), 4u);
  a.machine = b.machine = "here";
  carving together{{a, b}, ""};
  EXPECT_EQ(together.room_for(shape(1, gib, 1)), 2u);
  ASSERT_TRUE(together.place(request_id{1}, shape(4, gib, 1)));
  EXPECT_EQ(together.place(request_id{2}, shape(4, gib, 1))->capacity.custom.at("gpu").addresses.front(), "1");
  EXPECT_EQ(together.room_for(shape(1, gib, 1)), 0u);
}

TEST(carving, counted_resources_are_counted) {
  carving c{{host("a", 8, 8 * gib, {{"license", {3, {}}}})}, ""};
  auto p = shape(1, gib);
  p.executor["license"].amount = 2;
  EXPECT_EQ(c.room_for(p), 1u);
  EXPECT_EQ(c.place(request_id{1}, p)->capacity.custom.at("license"), (resource_pool{2, {}}));
  EXPECT_EQ(c.room_for(p), 0u);
  c.free(request_id{1});
  EXPECT_EQ(c.room_for(p), 1u);
}

TEST(carving, keeps_hosts_with_scarce_resources_for_those_who_ask) {
  carving c{{host("gpus", 4, 8 * gib, {{"gpu", numbered(1)}}), host("plain", 8, 16 * gib)}, ""};
  EXPECT_EQ(c.place(request_id{1}, shape(4, gib))->host, 1u) << "though the other is the tighter fit";
  EXPECT_EQ(c.place(request_id{2}, shape(4, gib, 1))->host, 0u);
}

TEST(carving, a_parked_executor_takes_no_room_and_keeps_its_request) {
  carving c{{host("a", 2, 2 * gib, {{"gpu", numbered(1)}})}, ""};
  ASSERT_TRUE(c.place(request_id{1}, shape(2, 2 * gib, 1)));
  EXPECT_EQ(c.room_for(shape(1, gib)), 0u);
  EXPECT_TRUE(c.park(request_id{1}));
  EXPECT_FALSE(c.park(request_id{1}));
  EXPECT_FALSE(c.park(request_id{9}));
  EXPECT_EQ(c.place(request_id{1}, shape(1, gib)).error().code, ec::invalid_argument);
  EXPECT_TRUE(c.place(request_id{2}, shape(2, 2 * gib, 1)));
  EXPECT_TRUE(c.free(request_id{1}));
  EXPECT_EQ(c.room_for(shape(1, gib)), 0u) << "the end of a parked executor gives nothing back twice";
  EXPECT_TRUE(c.free(request_id{2}));
  EXPECT_TRUE(c.is_unused());
  EXPECT_EQ(c.room_for(shape(1, gib)), 2u);
}

TEST(carving, says_which_amount_is_missing_where) {
  const auto c = two_hosts();
  EXPECT_TRUE(c.check(shape(4, 8 * gib)).feasible);
  const auto cores = c.check(shape(8, gib));
  EXPECT_FALSE(cores.feasible);
  EXPECT_TRUE(cores.fixed);
  EXPECT_EQ(cores.sentence,
            "no host has 8 cores: the largest of 2 hosts has 4 (troupe.master = local-cluster[2,4,8g])");
  auto p = shape(8, 8 * gib, 1);
  p.executor["memoryOverhead"].amount = gib;
  EXPECT_EQ(
      c.check(p).sentence,
      "no host has 8 cores: the largest of 2 hosts has 4; no host has 9g of memory (memory 8g + memoryOverhead 1g): "
      "the largest of 2 hosts has 8g; no host has gpu 1: the largest of 2 hosts has 0 "
      "(troupe.master = local-cluster[2,4,8g])");
  EXPECT_EQ(carving({}, "nodes.yaml").check(shape(1, gib)).sentence,
            "there is no host to run executors on (nodes.yaml)");
}

TEST(carving, knows_what_was_meant) {
  const carving c{{host("a", 2, gib, {{"gpu", numbered(1)}})}, "nodes.yaml"};
  auto p = shape(1, gib);
  p.executor["gpus"] = {1, {}, {}, false};
  EXPECT_EQ(c.check(p).sentence, "no host has gpus 1: the largest of 1 host has 0; did you mean gpu? (nodes.yaml)");
  auto slip = p;
  slip.executor.erase("gpus");
  slip.executor["memroy"] = {1, {}, {}, false};
  EXPECT_THAT(c.check(slip).sentence, HasSubstr("did you mean memory?"));
  p.executor.erase("gpus");
  p.executor["bandwidth"] = {1, {}, {}, false};
  EXPECT_THAT(c.check(p).sentence, ::testing::Not(HasSubstr("did you mean")));
}

TEST(carving, says_how_many_executors_there_can_be) {
  const carving c{{host("a", 5, 8 * gib, {{"gpu", numbered(1)}}), host("b", 4, 3 * gib)}, "nodes.yaml"};
  EXPECT_EQ(c.check(shape(2, gib)).most, 4u);
  EXPECT_EQ(c.check(shape(1, 2 * gib)).most, 5u) << "by memory";
  EXPECT_EQ(c.check(shape(1, gib, 1)).most, 1u) << "by gpus";
  EXPECT_EQ(c.check(shape(0, gib)).most, 2u) << "each takes all cores of its host";
  auto left = host("left", 4, 8 * gib, {{"gpu", numbered(1)}});
  auto right = host("right", 4, 8 * gib, {{"gpu", numbered(1)}});
  left.machine = right.machine = "here";
  EXPECT_EQ((carving{{left, right}, "local"}.check(shape(1, gib, 1)).most), 1u) << "they share it";
}

TEST(carving, says_when_every_amount_exists_but_never_together) {
  const carving c{{host("small", 2, gib, {{"gpu", numbered(1)}}), host("big", 16, 64 * gib)}, "nodes.yaml"};
  EXPECT_EQ(
      c.check(shape(8, 32 * gib, 1)).sentence,
      "no single host has all of 8 cores, 32g of memory, gpu 1: the nearest, big, lacks gpu 1, has 0 (nodes.yaml)");
}

TEST(carving, what_fits_no_empty_host_is_infeasible_at_once) {
  auto c = two_hosts();
  ASSERT_TRUE(c.place(request_id{1}, shape(4, gib)));
  EXPECT_EQ(c.place(request_id{2}, shape(5, gib)).error().code, ec::infeasible);
  EXPECT_TRUE(c.check(shape(4, 8 * gib)).feasible) << "feasible is about empty hosts";
}

TEST(carving, checks_hosts_from_files) {
  EXPECT_TRUE(validate(host("a", 1, 1)));
  EXPECT_FALSE(validate(host("", 1, 1)));
  EXPECT_FALSE(validate(host("a", -1, 1)));
  EXPECT_THAT(validate(host("a", 1, 1, {{"gpu", {2, {"0", "0"}}}})).error().message,
              HasSubstr("host \"a\": gpu address \"0\""));
}

std::vector<request_id> requests(std::initializer_list<std::uint64_t> numbers) {
  std::vector<request_id> ids;
  for (const auto number : numbers) ids.push_back(request_id{number});
  return ids;
}

TEST(carving, those_make_way_who_are_enough_on_one_host) {
  auto c = two_hosts();
  for (std::uint64_t id = 1; id <= 7; ++id) ASSERT_TRUE(c.place(request_id{id}, shape(1, gib)));
  const auto all = requests({1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(c.who_makes_way(shape(1, gib), 1, {}, all).going, requests({})) << "there is room";
  EXPECT_EQ(c.who_makes_way(shape(2, gib), 1, {}, all).going, requests({5})) << "one core is free beside it";
  EXPECT_EQ(c.who_makes_way(shape(2, gib), 2, {}, all).going, requests({5, 1, 2}));
  EXPECT_EQ(c.who_makes_way(shape(2, gib), 1, {}, requests({4, 7, 6, 99})).going, requests({7})) << "in that order";
  EXPECT_EQ(c.who_makes_way(shape(2, gib), 1, requests({3, 4}), requests({7})).going, requests({}))
      << "room is on its way";
  EXPECT_EQ(c.who_makes_way(shape(3, gib), 1, requests({4}), requests({1, 2, 7})).going, requests({1, 2}));
  EXPECT_EQ(c.who_makes_way(shape(4, gib), 1, {}, requests({1, 2, 3, 5, 6})).going, requests({})) << "in vain";
  EXPECT_EQ(c.who_makes_way(shape(4, gib), 9, {}, all).going.size(), 7u);
  EXPECT_EQ(c.who_makes_way(shape(5, gib), 1, {}, all).going, requests({})) << "never";
  EXPECT_TRUE(c.park(request_id{5}));
  EXPECT_EQ(c.who_makes_way(shape(3, gib), 1, {}, all).going, requests({6})) << "one that is parked gives nothing";
}

TEST(carving, a_large_one_makes_way_rather_than_several_small_ones) {
  carving c{{host("a", 8, 8 * gib)}, ""};
  ASSERT_TRUE(c.place(request_id{1}, shape(3, gib)));
  ASSERT_TRUE(c.place(request_id{2}, shape(3, gib)));
  ASSERT_TRUE(c.place(request_id{3}, shape(1, 6 * gib)));
  const auto all = requests({1, 2, 3});
  EXPECT_EQ(c.who_makes_way(shape(1, 5 * gib), 1, {}, all).going, requests({3})) << "memory is what is short";
  EXPECT_EQ(c.who_makes_way(shape(4, gib), 1, {}, all).going, requests({1}));
  EXPECT_EQ(c.who_makes_way(shape(5, gib), 1, {}, all).going, requests({1, 2}));
}

TEST(carving, whoever_holds_a_device_of_the_machine_makes_way_for_it) {
  auto a = host("a", 4, 8 * gib, {{"gpu", numbered(1)}});
  auto b = host("b", 6, 8 * gib, {{"gpu", numbered(1)}});
  a.machine = b.machine = "here";
  carving c{{a, b}, ""};
  ASSERT_EQ(c.place(request_id{1}, shape(3, gib, 1))->host, 0u);
  ASSERT_EQ(c.place(request_id{2}, shape(1, gib))->host, 0u);
  ASSERT_EQ(c.place(request_id{3}, shape(1, gib))->host, 1u);
  EXPECT_EQ(c.who_makes_way(shape(5, gib, 1), 1, {}, requests({3, 2, 1})).going, requests({1}))
      << "the cores are free on b, the device is not";
  EXPECT_EQ(c.who_makes_way(shape(6, gib, 1), 1, {}, requests({3, 2, 1})).going, requests({3, 1}));
}

TEST(carving, making_way_costs_little_on_many_hosts) {
  const auto cost = [](std::uint32_t count, std::uint32_t wanted) {
    std::vector<carving_host> hosts;
    for (std::uint32_t i = 0; i < count; ++i) hosts.push_back(host("h" + std::to_string(i), 4, 8 * gib));
    carving c{std::move(hosts), ""};
    std::vector<request_id> all;
    for (std::uint64_t id = 1; id <= 4 * count; ++id) {
      EXPECT_TRUE(c.place(request_id{id}, shape(1, gib)));
      all.push_back(request_id{id});
    }
    const auto before = c.looks();
    const auto answer = c.who_makes_way(shape(2, gib), wanted, {}, all);
    EXPECT_EQ(answer.placed, wanted);
    EXPECT_EQ(answer.going.size(), 2 * wanted);
    return c.looks() - before;
  };
  const auto one = cost(100, 1);
  EXPECT_LT(one, 20u * 100u) << "a few looks at every host and its executors";
  EXPECT_LT(cost(100, 64), one + 64u * 30u) << "and for each one more a few at one host";
  EXPECT_LT(cost(200, 64), 2 * one + 64u * 30u);
}

TEST(carving, making_way_is_enough_and_nobody_goes_in_vain) {
  std::mt19937_64 random{7};
  const auto between = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>{low, high}(random);
  };
  int asked = 0;
  for (int round = 0; round < 300; ++round) {
    std::vector<carving_host> hosts;
    const auto count = between(1, 3);
    for (std::int64_t i = 0; i < count; ++i)
      hosts.push_back({"h" + std::to_string(i),
                       between(0, 1) == 0 ? "m" : "",
                       between(2, 8),
                       between(2, 8) * gib,
                       {{"gpu", numbered(between(0, 2))}, {"license", {between(0, 2), {}}}}});
    carving c{hosts, ""};
    std::vector<request_id> may_go;
    for (std::uint64_t id = 1; id <= 20; ++id)
      if (c.place(request_id{id}, shape(between(1, 2), between(1, 2) * gib, between(0, 1))) && between(0, 3) > 0)
        may_go.push_back(request_id{id});
    const auto wanted = shape(between(1, 6), between(1, 6) * gib, between(0, 2));
    const auto before = c.room_for(wanted);
    const auto going = c.who_makes_way(wanted, before + 1, {}, may_go).going;
    const auto whole = c;
    auto after = c;
    for (const auto id : going) ASSERT_TRUE(after.free(id));
    for (const auto id : may_go) static_cast<void>(c.free(id));
    ASSERT_EQ(after.room_for(wanted) > before, c.room_for(wanted) > before) << round;
    for (const auto kept : going) {
      auto less = whole;
      for (const auto id : going)
        if (id != kept) less.free(id);
      ASSERT_LE(less.room_for(wanted), before) << round;
    }
    asked += going.empty() ? 0 : 1;
  }
  EXPECT_GT(asked, 50);
}

TEST(carving, who_has_a_bit_of_everything_goes_alone) {
  const auto with_license = [](resource_profile profile, std::int64_t licenses) {
    if (licenses > 0) profile.executor["license"].amount = licenses;
    return profile;
  };
  carving c{{{"h", "", 14, 32 * gib, {{"gpu", numbered(3)}, {"license", {3, {}}}}}}, ""};
  // Of each resource somebody else has more, but lacks the others.
  ASSERT_TRUE(c.place(request_id{1}, shape(8, 8 * gib)));
  ASSERT_TRUE(c.place(request_id{2}, shape(1, gib, 2)));
  ASSERT_TRUE(c.place(request_id{3}, with_license(shape(1, gib), 2)));
  ASSERT_TRUE(c.place(request_id{4}, with_license(shape(2, gib, 1), 1)));
  const auto wanted = with_license(shape(4, gib, 1), 1);
  const std::vector<request_id> all{request_id{1}, request_id{2}, request_id{3}, request_id{4}};
  EXPECT_EQ(c.who_makes_way(wanted, 1, {}, all).going, std::vector<request_id>{request_id{4}});
}

TEST(carving, says_what_is_missing_for_so_many) {
  auto c = two_hosts();
  EXPECT_EQ(c.lack_for(shape(2, gib), 4), "");
  EXPECT_EQ(c.lack_for(shape(2, gib), 5), "need 10 cores, the hosts have 8 (missing: 2 cores)");
  EXPECT_EQ(c.lack_for(shape(1, 3 * gib), 6), "need 18g of memory, the hosts have 16g (missing: 2g of memory)");
  EXPECT_EQ(c.lack_for(shape(1, 5 * gib), 3),
            "need 1 core, 5g of memory each on one host, and there is room for 2 only");
  EXPECT_EQ(c.lack_for(shape(5, gib), 2), "fit no host: no host has 5 cores: the largest of 2 hosts has 4 "
                                          "(troupe.master = local-cluster[2,4,8g])");
  EXPECT_THAT(c.lack_for(shape(1, 1), std::numeric_limits<std::uint32_t>::max()), HasSubstr("need 4294967295 cores"));
  for (std::uint64_t id = 1; id <= 2; ++id) ASSERT_TRUE(c.place(request_id{id}, shape(3, gib)));
  EXPECT_EQ(c.lack_for(shape(3, gib), 1), "needs 3 cores, the hosts have 8, of which others take 6 (missing: 1 core)");
  EXPECT_EQ(c.lack_for(shape(2, gib), 1), "needs 2 cores, 1g of memory on one host, and none has all of that left");
}

TEST(carving, says_which_addresses_are_missing_for_so_many) {
  auto a = host("a", 8, 8 * gib, {{"gpu", numbered(2)}, {"license", {3, {}}}});
  auto b = host("b", 8, 8 * gib, {{"gpu", numbered(2)}});
  a.machine = b.machine = "here";
  carving c{{a, b}, ""};
  EXPECT_EQ(c.lack_for(shape(1, gib, 1), 3), "need gpu 3, the hosts have 2 (missing: gpu 1)") << "the same two devices";
  ASSERT_TRUE(c.place(request_id{1}, shape(1, gib, 1)));
  EXPECT_EQ(c.lack_for(shape(1, gib, 1), 2), "need gpu 2, the hosts have 2, of which others take 1 (missing: gpu 1)");
  auto p = shape(1, gib);
  p.executor["license"].amount = 2;
  ASSERT_TRUE(c.place(request_id{2}, p));
  EXPECT_EQ(c.lack_for(p, 1), "needs license 2, the hosts have 3, of which others take 2 (missing: license 1)");
}

TEST(carving, never_oversubscribes_and_room_is_what_place_grants) {
  std::mt19937_64 random{42};
  const auto between = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>{low, high}(random);
  };
  for (int round = 0; round < 60; ++round) {
    std::vector<carving_host> hosts;
    const auto count = between(1, 4);
    for (std::int64_t i = 0; i < count; ++i) {
      hosts.push_back(
          host("h" + std::to_string(i), between(1, 8), between(1, 8) * gib, {{"gpu", numbered(between(0, 3))}}));
      if (between(0, 1) == 0) hosts.back().machine = "m";
    }
    carving c{hosts, ""};
    std::map<std::uint64_t, carved_executor> live;
    for (std::uint64_t id = 1; id <= 60; ++id) {
      const auto s = shape(between(1, 4), between(1, 4) * gib, between(0, 2));
      const auto room = c.room_for(s);
      const auto placed = c.place(request_id{id}, s);
      ASSERT_EQ(placed.has_value(), room > 0);
      if (placed) {
        ASSERT_EQ(c.room_for(s), room - 1);
        ASSERT_TRUE(satisfies(placed->capacity, s));
        live.emplace(id, *placed);
      } else if (!live.empty()) {
        const auto victim = std::next(live.begin(), between(0, static_cast<std::int64_t>(live.size()) - 1));
        ASSERT_TRUE(between(0, 1) == 0 ? c.free(request_id{victim->first}) : c.park(request_id{victim->first}));
        live.erase(victim);
      }
      std::set<std::pair<std::string, std::string>> devices;
      std::vector<std::int64_t> cores(hosts.size()), memory(hosts.size());
      for (const auto& [key, executor] : live) {
        cores[executor.host] += executor.capacity.cores;
        memory[executor.host] += executor.capacity.memory;
        const auto& h = hosts[executor.host];
        const auto gpu = executor.capacity.custom.find("gpu");
        if (gpu == executor.capacity.custom.end()) continue;
        for (const auto& address : gpu->second.addresses) {
          ASSERT_TRUE(devices.emplace(h.machine.empty() ? h.name : h.machine, address).second) << "lent twice";
        }
      }
      for (std::size_t i = 0; i < hosts.size(); ++i) {
        ASSERT_LE(cores[i], hosts[i].cores);
        ASSERT_LE(memory[i], hosts[i].memory);
      }
    }
  }
}

} // namespace
} // namespace troupe
