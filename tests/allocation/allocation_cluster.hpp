#pragma once

/// The policy under test with a cluster around it: reports as a dag scheduler sends them, room as a backend sees it.

#include <algorithm>
#include <optional>
#include <set>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/runtime/allocation/allocation_policy.hpp>
#include <troupe/runtime/resources/carving.hpp>
#include <troupe/tests/support/builders.hpp>

namespace troupe::testing {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

inline const executor_shape plain{{1}, default_test_profile()};
inline const executor_shape gpu{{2}, make_profile({{"gpu", 1}}, {{"gpu", "1"}})};
inline const executor_shape wide{{3}, make_profile({{"cores", 2}}, {{"cpus", "1"}})};

inline carving hosts_of(std::vector<std::int64_t> cores) {
  std::vector<carving_host> hosts;
  for (const auto n : cores) hosts.push_back({"h" + std::to_string(hosts.size()), {}, n, std::int64_t{64} << 30, {}});
  return {std::move(hosts), "the test"};
}

/// The policy, a cluster with so much room, and the reports that a dag scheduler would send.
struct cluster {
  explicit cluster(allocation_policy::options opts = {}) : policy(std::move(opts)) { report.number = 0; }

  allocation_policy policy;
  time_point now{};
  std::uint32_t room = 100;     ///< executors of any shape; unless there are
  std::optional<carving> hosts; ///< out of which they are carved
  bool end_slowly = false;      ///< what is not wanted any more stays there
  std::set<request_id> held;    ///< by executors on those hosts
  load_report report;
  effects::allocation_list out;

  allocation_policy::room_function room_function() {
    return [this](const executor_shape& shape) {
      if (hosts) return converged().room_for(shape.profile);
      const auto all = wanted();
      const auto taken = static_cast<std::uint32_t>(
          std::count_if(all.begin(), all.end(), [](const executor_order& o) { return !o.parked; }));
      return room > taken ? room - taken : 0;
    };
  }
  allocation_policy::way_function way_function() {
    return [this](const way_question& q) -> std::optional<way_answer> {
      if (!hosts) return std::nullopt;
      return converged().who_makes_way(q.shape.profile, q.count, q.leaving, q.may_go);
    };
  }
  /// The hosts when everything that is wanted has been placed on them.
  carving& converged() {
    std::set<request_id> names;
    for (const auto& order : wanted()) {
      names.insert(order.request);
      if (held.insert(order.request).second) {
        EXPECT_TRUE(hosts->place(order.request, order.shape.profile)) << "more than there is room for";
      }
      if (order.parked) hosts->park(order.request);
    }
    if (!end_slowly)
      std::erase_if(held, [&](request_id request) { return !names.contains(request) && hosts->free(request); });
    return *hosts;
  }
  void start() { policy.on_start(now, room_function(), out); }
  void load(duration after = 100ms) {
    now += after;
    ++report.number;
    out.clear();
    policy.on_load(report, now, room_function(), way_function(), out);
    report.new_shapes.clear();
  }
  cluster& waiting(const executor_shape& shape, std::uint32_t executors, bool none = false) {
    report.new_shapes.push_back(shape);
    std::erase_if(report.loads, [&](const shape_load& l) { return l.shape == shape.shape; });
    if (executors > 0) report.loads.push_back({shape.shape, executors, executors, none});
    return *this;
  }
  void snapshot(std::vector<launch_status> statuses, duration after = 100ms) {
    now += after;
    out.clear();
    policy.on_snapshot(statuses, now, out);
  }
  /// Everything that is wanted has been admitted and idles for so long.
  void admit_all(duration idle = 0s, bool serving = false) {
    report.present.clear();
    report.idle.clear();
    for (const auto& order : wanted()) {
      report.present.push_back(order.request);
      report.idle.push_back(
          {{order.request.value + 100}, order.request, static_cast<std::uint64_t>(idle.count()), serving, false});
    }
  }
  void answer(executor_id executor, bool granted, bool serving = false) {
    policy.on_release_answer(executor, granted, serving, out);
  }
  std::vector<executor_order> wanted() { return policy.wanted(); }
  std::uint32_t count(const executor_shape& shape) {
    const auto all = wanted();
    return static_cast<std::uint32_t>(
        std::count_if(all.begin(), all.end(), [&](const executor_order& o) { return o.shape == shape; }));
  }
  std::vector<executor_id> asked() const {
    std::vector<executor_id> ids;
    for (const auto& e : out)
      if (const auto* ask = std::get_if<effects::ask_release>(&e)) ids.push_back(ask->executor);
    return ids;
  }
  template <class Effect>
  std::vector<Effect> effects_of() const {
    std::vector<Effect> found;
    for (const auto& e : out)
      if (const auto* match = std::get_if<Effect>(&e)) found.push_back(*match);
    return found;
  }
};

} // namespace troupe::testing
