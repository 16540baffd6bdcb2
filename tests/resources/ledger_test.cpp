#include <troupe/runtime/resources/ledger.hpp>

#include <limits>
#include <string>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include "profiles.hpp"

namespace troupe {
namespace {

using testing::HasSubstr;

resource_profile gpu_task(std::string_view gpu, std::string_view cpus = "1") {
  return profile_of({}, {{"cpus", std::string{cpus}}, {"gpu", std::string{gpu}}});
}

/// Chooses and takes; the addresses, in order, or "-" where nothing fits.
std::string take(ledger& l, const resource_profile& profile) {
  const auto chosen = l.choose(profile);
  if (!chosen) return "-";
  EXPECT_TRUE(l.acquire(*chosen));
  std::string addresses;
  for (const auto& entry : chosen->resources.at("gpu")) addresses += entry.address;
  return addresses;
}

allotment holding(std::string_view cpus, std::vector<address_share> gpu) {
  return {cpus.empty() ? share{} : parsed(cpus), {{"gpu", std::move(gpu)}}};
}

ledger four_gpus(std::int64_t cores = 100) { return ledger{capacity_with(cores, {{"gpu", numbered(4)}})}; }

// Spec AD-9, with the fullest address that fits in place of the first one.
TEST(ledger, follows_the_worked_sequence_with_best_fit) {
  auto l = four_gpus();
  EXPECT_EQ(take(l, gpu_task("0.2")), "0");
  EXPECT_EQ(take(l, gpu_task("0.2")), "0");
  EXPECT_EQ(l.free_of("gpu", "0"), parsed("0.6"));
  EXPECT_EQ(take(l, gpu_task("2")), "12");
  ASSERT_TRUE(l.release(holding("", {{"0", parsed("0.1")}})));
  ASSERT_TRUE(l.release(holding("", {{"2", parsed("0.8")}})));
  EXPECT_EQ(take(l, gpu_task("0.50002")), "0");
  EXPECT_EQ(l.free_of("gpu", "0"), parsed("0.19998"));
  EXPECT_EQ(take(l, gpu_task("1")), "3");
  EXPECT_EQ(take(l, gpu_task("0.2")), "2");
  EXPECT_EQ(l.free_of("gpu", "2"), parsed("0.6"));
}

// Spec AD-9, to the letter.
TEST(exact_ledger, follows_the_worked_sequence) {
  ledger l{capacity_with(100, {{"gpu", numbered(4)}}), profile_matching::exact};
  EXPECT_EQ(take(l, gpu_task("0.2")), "0");
  EXPECT_EQ(l.free_of("gpu", "0"), parsed("0.8"));
  EXPECT_EQ(take(l, gpu_task("0.2")), "0");
  EXPECT_EQ(l.free_of("gpu", "0"), parsed("0.6"));
  EXPECT_EQ(take(l, gpu_task("2")), "12");
  ASSERT_TRUE(l.release(holding("", {{"0", parsed("0.1")}})));
  ASSERT_TRUE(l.release(holding("", {{"2", parsed("0.8")}})));
  EXPECT_EQ(take(l, gpu_task("0.50002")), "0");
  EXPECT_EQ(l.free_of("gpu", "0"), parsed("0.19998"));
  EXPECT_EQ(take(l, gpu_task("1")), "3");
  EXPECT_EQ(take(l, gpu_task("0.2")), "2") << "0 has too little left";
  EXPECT_EQ(l.free_of("gpu", "2"), parsed("0.6"));
}

// Spec AD-2: addresses are texts.
TEST(exact_ledger, looks_at_addresses_in_the_order_of_their_texts) {
  const resource_pool twelve = numbered(12);
  ledger l{capacity_with(100, {{"gpu", twelve}}), profile_matching::exact};
  std::vector<std::string> order;
  for (int i = 0; i < 12; ++i) order.push_back(take(l, gpu_task("0.7")));
  EXPECT_EQ(order, (std::vector<std::string>{"0", "1", "10", "11", "2", "3", "4", "5", "6", "7", "8", "9"}));
  ledger whole{capacity_with(100, {{"gpu", twelve}}), profile_matching::exact};
  EXPECT_EQ(take(whole, gpu_task("3")), "0110");
  EXPECT_EQ(take(whole, gpu_task("2")), "112");
}

// Spec AD-3: what is partly used is no part of a whole request.
TEST(exact_ledger, takes_entirely_free_addresses_for_whole_requests) {
  ledger l{capacity_with(8, {{"gpu", numbered(3)}}), profile_matching::exact};
  ASSERT_TRUE(l.acquire(holding("", {{"0", parsed("0.1")}})));
  EXPECT_EQ(take(l, gpu_task("2")), "12");
  EXPECT_EQ(take(l, gpu_task("1")), "-");
  EXPECT_EQ(take(l, gpu_task("0.9")), "0");
}

// Spec AD-5, AD-6.
TEST(exact_ledger, takes_all_that_a_task_names_or_nothing) {
  ledger l{capacity_with(8, {{"fpga", numbered(1)}, {"gpu", numbered(2)}}), profile_matching::exact};
  const auto both = profile_of({}, {{"cpus", "1"}, {"fpga", "1"}, {"gpu", "2"}});
  ASSERT_TRUE(l.acquire(holding("", {{"1", parsed("0.5")}})));
  EXPECT_FALSE(l.choose(both));
  EXPECT_EQ(l.free_of("fpga", "0"), share::whole(1));
  ASSERT_TRUE(l.release(holding("", {{"1", parsed("0.5")}})));
  EXPECT_TRUE(l.choose(both));
  EXPECT_TRUE(l.is_idle()) << "choosing takes nothing";
}

// Spec AD-12 [Q]: first fit by name leaves no whole address; best fit does (the test below).
TEST(exact_ledger, breaks_a_whole_address_for_a_fraction_that_fits_elsewhere) {
  ledger l{capacity_with(8, {{"gpu", numbered(2)}}), profile_matching::exact};
  ASSERT_TRUE(l.acquire(holding("", {{"1", parsed("0.5")}})));
  EXPECT_EQ(take(l, gpu_task("0.5")), "0");
  EXPECT_EQ(take(l, gpu_task("1")), "-");
}

// Spec AD-13, under either policy.
TEST(exact_ledger, fractions_of_different_profiles_share_an_address_up_to_one) {
  for (const auto order : {profile_matching::compatible, profile_matching::exact}) {
    ledger l{capacity_with(100, {{"gpu", numbered(4)}}), order};
    for (const auto* address : {"0", "1", "2", "3"}) EXPECT_EQ(take(l, gpu_task("0.7")), address);
    EXPECT_EQ(take(l, gpu_task("0.4")), "-");
    for (const auto* address : {"0", "1", "2", "3"}) EXPECT_EQ(take(l, gpu_task("0.3")), address);
    EXPECT_EQ(take(l, gpu_task("0.3")), "-");
  }
}

TEST(ledger, does_not_break_a_whole_address_for_a_fraction_that_fits_elsewhere) {
  ledger l{capacity_with(8, {{"gpu", numbered(2)}})};
  ASSERT_TRUE(l.acquire(holding("", {{"1", parsed("0.5")}})));
  EXPECT_EQ(take(l, gpu_task("0.5")), "1") << "first fit would take 0 (spec AD-12)";
  EXPECT_EQ(take(l, gpu_task("1")), "0");
  EXPECT_EQ(take(l, gpu_task("0.1")), "-");
}

TEST(ledger, prefers_the_first_of_equally_full_addresses_in_the_executors_order) {
  ledger l{capacity_with(8, {{"gpu", {3, {"10", "2", "b"}}}})};
  EXPECT_EQ(take(l, gpu_task("0.5")), "10");
  EXPECT_EQ(take(l, gpu_task("2")), "2b");
}

TEST(ledger, fractions_of_different_profiles_share_an_address_up_to_one) {
  auto l = four_gpus();
  for (const auto* address : {"0", "1", "2", "3"}) EXPECT_EQ(take(l, gpu_task("0.7")), address);
  EXPECT_EQ(l.free_slots(gpu_task("0.4")), 0);
  EXPECT_EQ(l.free_slots(gpu_task("0.3")), 4);
  for (const auto* address : {"0", "1", "2", "3"}) EXPECT_EQ(take(l, gpu_task("0.3")), address);
  EXPECT_EQ(take(l, gpu_task("0.000000000001")), "-") << "0.7 + 0.3 is one exactly";
}

TEST(ledger, all_of_one_nth_fit_and_no_more) {
  for (const int n : {3, 7, 93, 99, 353, 1409}) {
    ledger l{capacity_with(10'000, {{"gpu", numbered(1)}})};
    const auto profile = gpu_task("1/" + std::to_string(n));
    EXPECT_EQ(l.free_slots(profile), n);
    for (int i = 0; i < n; ++i) ASSERT_EQ(take(l, profile), "0") << i << " of " << n;
    EXPECT_EQ(take(l, profile), "-") << n;
    EXPECT_EQ(l.free_slots(profile), 0);
  }
}

TEST(ledger, cpus_are_fractional_and_exact) {
  ledger l{capacity_with(1)};
  const auto third = profile_of({}, {{"cpus", "1/3"}});
  for (int i = 0; i < 3; ++i) {
    const auto chosen = l.choose(third);
    ASSERT_TRUE(chosen);
    ASSERT_TRUE(l.acquire(*chosen));
  }
  EXPECT_FALSE(l.choose(third));
  EXPECT_EQ(l.free_cpus(), share{1});
}

TEST(ledger, counted_resources_have_no_addresses) {
  ledger l{capacity_with(100, {{"license", {2, {}}}})};
  const auto profile = profile_of({}, {{"cpus", "1"}, {"license", "0.8"}});
  EXPECT_EQ(l.free_slots(profile), 2);
  const auto chosen = l.choose(profile);
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->resources.at("license"), (std::vector<address_share>{{"", parsed("0.8")}}));
  EXPECT_TRUE(matches(*chosen, profile));
  ASSERT_TRUE(l.acquire(*chosen));
  EXPECT_EQ(l.free_of("license", ""), parsed("1.2"));
  ASSERT_TRUE(l.release(*chosen));
  const auto both = l.choose(profile_of({}, {{"cpus", "1"}, {"license", "2"}}));
  ASSERT_TRUE(both);
  EXPECT_EQ(both->resources.at("license"), (std::vector<address_share>{{"", share::whole(2)}}));
  EXPECT_FALSE(l.acquire({{}, {{"license", {{"0", share::whole(1)}}}}})) << "no address to name";
}

TEST(ledger, chooses_nothing_where_a_clause_fails) {
  auto l = four_gpus(2);
  EXPECT_FALSE(l.choose(profile_of({}, {{"cpus", "3"}})));
  EXPECT_FALSE(l.choose(gpu_task("5")));
  EXPECT_FALSE(l.choose(profile_of({}, {{"cpus", "1"}, {"fpga", "1"}})));
  EXPECT_FALSE(l.choose(resource_profile{})) << "a task that takes nothing would fit without end";
  EXPECT_EQ(l.free_slots(resource_profile{}), 0);
  EXPECT_EQ(l.free_slots(profile_of({}, {{"cpus", "1"}, {"fpga", "1"}})), 0);
}

/// Expects `a` to be refused with `words` and nothing to have changed.
void expect_refused(ledger l, const allotment& a, const std::string& words) {
  const auto before = l.choose(gpu_task("0.5"));
  const auto free_before = std::pair{l.free_cpus(), l.free_of("gpu", "0")};
  const auto refusal = l.acquire(a);
  ASSERT_FALSE(refusal) << words;
  EXPECT_EQ(refusal.error().code, ec::refused);
  EXPECT_THAT(refusal.error().message, HasSubstr(words));
  EXPECT_EQ(l.choose(gpu_task("0.5")), before);
  EXPECT_EQ((std::pair{l.free_cpus(), l.free_of("gpu", "0")}), free_before);
}

TEST(ledger, refuses_to_lend_what_is_not_free_or_malformed) {
  auto l = four_gpus(2);
  ASSERT_TRUE(l.acquire(holding("1", {{"1", parsed("0.5")}})));
  const share one = share::whole(1);
  expect_refused(l, {share::whole(2), {}}, "cpus: cannot take 2, only 1 free");
  expect_refused(l, {share{-1}, {}}, "cpus");
  expect_refused(l, {share{std::numeric_limits<std::int64_t>::min()}, {}}, "cpus");
  expect_refused(l, {{}, {{"fpga", {{"0", one}}}}}, "\"fpga\" address \"0\" does not exist");
  expect_refused(l, holding("", {{"7", one}}), "\"gpu\" address \"7\" does not exist");
  expect_refused(l, holding("", {{"", one}}), "does not exist");
  expect_refused(l, holding("", {{"1", one}}), "\"gpu\" address \"1\": cannot take 1, only 0.5 free");
  expect_refused(l, holding("1", {{"0", one}, {"1", one}}), "only 0.5 free");
  expect_refused(l, holding("", {{"0", parsed("0.5")}, {"2", parsed("0.5")}}), "splits");
  expect_refused(l, holding("", {{"0", one}, {"2", parsed("0.5")}}), "splits");
  expect_refused(l, holding("", {{"0", one}, {"0", one}}), "named twice");
  expect_refused(l, holding("", {{"0", share::whole(2)}}), "not a share");
  expect_refused(l, holding("", {{"0", share{}}}), "above zero");
  expect_refused(l, holding("", {{"0", share{-1}}}), "above zero");
  expect_refused(l, holding("", {{"0", share{std::numeric_limits<std::int64_t>::max()}}}), "not a share");
  expect_refused(l, holding("", {}), "without an amount");
}

TEST(ledger, refuses_to_take_back_what_is_not_lent) {
  auto l = four_gpus(2);
  const auto lent = holding("1", {{"1", parsed("0.5")}});
  EXPECT_FALSE(l.release(lent));
  ASSERT_TRUE(l.acquire(lent));
  EXPECT_FALSE(l.is_idle());
  for (const auto& wrong :
       {holding("1", {{"0", parsed("0.5")}}), holding("1", {{"1", parsed("0.6")}}),
        holding("1", {{"9", parsed("0.5")}}), holding("2", {{"1", parsed("0.5")}}),
        holding("1", {{"1", share{std::numeric_limits<std::int64_t>::max()}}}), allotment{share{-1}, {}}}) {
    EXPECT_FALSE(l.release(wrong));
    EXPECT_EQ(l.free_cpus(), share::whole(1));
    EXPECT_EQ(l.free_of("gpu", "1"), parsed("0.5"));
  }
  EXPECT_THAT(l.release(holding("1", {{"1", parsed("0.6")}})).error().message,
              HasSubstr("cannot give back 0.6, only 0.5 taken"));
  ASSERT_TRUE(l.release(lent));
  EXPECT_TRUE(l.is_idle());
  EXPECT_FALSE(l.release(lent)) << "twice";
}

TEST(ledger, a_huge_hostile_allotment_is_refused_quickly) {
  auto l = four_gpus();
  std::vector<address_share> many;
  for (int i = 0; i < 200'000; ++i) many.push_back({std::to_string(i), share::whole(1)});
  EXPECT_FALSE(l.acquire(holding("", many)));
  EXPECT_TRUE(l.is_idle());
}

TEST(matching, wants_exactly_what_one_task_takes) {
  const share one = share::whole(1);
  EXPECT_TRUE(matches(holding("1", {{"0", parsed("0.5")}}), gpu_task("0.5")));
  EXPECT_TRUE(matches(holding("1", {{"0", one}, {"1", one}}), gpu_task("2")));
  EXPECT_TRUE(matches(holding("1", {{"", share::whole(2)}}), gpu_task("2")));
  EXPECT_FALSE(matches(holding("2", {{"0", parsed("0.5")}}), gpu_task("0.5"))) << "more cpus";
  EXPECT_FALSE(matches(holding("1", {{"0", one}}), gpu_task("0.5"))) << "more gpu";
  EXPECT_FALSE(matches(holding("1", {{"0", parsed("0.4")}}), gpu_task("0.5"))) << "less gpu";
  EXPECT_FALSE(matches(holding("1", {{"0", one}}), gpu_task("2")));
  EXPECT_FALSE(matches(holding("1", {{"0", one}, {"0", one}}), gpu_task("2"))) << "one address twice";
  EXPECT_FALSE(matches(holding("1", {{"0", share::whole(2)}}), gpu_task("2"))) << "two of one address";
  EXPECT_FALSE(matches(holding("1", {{"0", parsed("0.5")}, {"1", parsed("0.5")}}), gpu_task("1")));
  EXPECT_FALSE(matches({one, {}}, gpu_task("1"))) << "resource missing";
  EXPECT_FALSE(matches({one, {{"gpu", {{"0", one}}}, {"fpga", {{"0", one}}}}}, gpu_task("1"))) << "resource too many";
  EXPECT_FALSE(matches(holding("1", {}), gpu_task("1")));
}

// n of the spec's AD-7 and AD-8 that Spark's units get wrong, and the ends of the range. That `fits` holds for every n
// up to 40,000 is tested with the shares themselves.
TEST(ledger, takes_exactly_n_shares_of_one_nth_from_an_address) {
  for (const int n : {1, 9, 93, 353, 1409, 39'999, 40'000}) {
    const auto profile = profile_of({}, {{"gpu", "1/" + std::to_string(n)}});
    ledger l{capacity_with(1, {{"gpu", numbered(1)}})};
    for (int taken = 0; taken < n; ++taken) {
      ASSERT_EQ(l.free_slots(profile), n - taken);
      const auto chosen = l.choose(profile);
      ASSERT_TRUE(chosen) << taken << " of " << n;
      ASSERT_TRUE(l.acquire(*chosen));
    }
    EXPECT_FALSE(l.choose(profile)) << n;
  }
}

} // namespace
} // namespace troupe
