// What the rules for profiles change for jobs, on every shape of cluster.

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include <unistd.h>

#include <troupe/runtime/api/job_error.hpp>
#include <troupe/runtime/api/resource_profile_builder.hpp>
#include <troupe/tests/system/background.hpp>
#include <troupe/tests/system/rendezvous.hpp>
#include <troupe/tests/system/shapes.hpp>

namespace troupe::system_tests {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSubsetOf;

class profiles_on_clusters : public ::testing::TestWithParam<cluster_shape> {
protected:
  static resource_profile small(std::string_view memory = "64m") {
    return resource_profile_builder{}
        .require(executor_resource_requests{}.cores(1).memory(memory))
        .require(task_resource_requests{}.cpus(1))
        .build();
  }
  /// The job's error, or "" where it succeeded with both profiles on datasets of one stage.
  /// @param memory gets how much each stage asks for, as its profile says it
  static std::string error_where_they_meet(test_cluster& cluster, const resource_profile& a, const resource_profile& b,
                                           std::vector<std::string>* memory = nullptr) {
    auto session = cluster.make_session();
    try {
      const auto count = session.range(0, 4, 2)
                             .with_resources(a)
                             .named("readers")
                             .filter([](const std::int64_t&) { return true; })
                             .with_resources(b)
                             .count();
      EXPECT_EQ(count, 4u);
      if (memory)
        for (const auto& stage : session.last_job().stages) memory->push_back(stage.profile);
      return {};
    } catch (const job_error& e) {
      EXPECT_EQ(e.code(), ec::invalid_profile) << e.what();
      return e.what();
    }
  }
};

INSTANTIATE_TEST_SUITE_P(shapes, profiles_on_clusters, ::testing::ValuesIn(all_shapes()),
                         [](const auto& shape) { return shape.param.name; });

TEST_P(profiles_on_clusters, that_meet_in_one_stage_cut_it_are_an_error_or_merged) {
  const auto sizes_of = [](test_cluster& cluster) {
    std::set<std::int64_t> sizes;
    for (const auto& e : cluster.executors())
      if (!e.status.info.shuffle_service) sizes.insert(e.status.info.capacity.memory);
    return sizes;
  };
  {
    test_cluster cluster{GetParam().options()};
    std::vector<std::string> asked;
    EXPECT_THAT(error_where_they_meet(cluster, small("64m"), small("96m"), &asked), IsEmpty());
    EXPECT_THAT(asked, ElementsAre(HasSubstr("memory 64m"), HasSubstr("memory 96m")));
    // The smaller ones may have made room for the larger ones meanwhile.
    EXPECT_THAT(sizes_of(cluster), AllOf(Contains(96 << 20), IsSubsetOf({64 << 20, 96 << 20})))
        << "each part has what it asks for";
    cluster.check_clean();
  }
  {
    test_cluster cluster{GetParam().options({"troupe.scheduler.profile-change=error"})};
    EXPECT_THAT(error_where_they_meet(cluster, small("64m"), small("96m")),
                AllOf(HasSubstr("two resource profiles meet in one stage: 'readers' has"), HasSubstr("memory 64m"),
                      HasSubstr("memory 96m"), HasSubstr("troupe.scheduler.profile-change = merge")));
    EXPECT_THAT(error_where_they_meet(cluster, small(), small()), IsEmpty()) << "equal contents are one profile";
    cluster.check_clean();
  }
  test_cluster cluster{GetParam().options({"troupe.scheduler.profile-change=merge"})};
  EXPECT_THAT(error_where_they_meet(cluster, small("64m"), small("96m")), IsEmpty());
  EXPECT_EQ(sizes_of(cluster), std::set<std::int64_t>{96 << 20}) << "the larger amount of each";
  cluster.check_clean();
}

TEST_P(profiles_on_clusters, are_told_apart_by_their_build_under_exact_matching) {
  test_cluster cluster{GetParam().options({"troupe.scheduler.profile-matching=exact"})};
  EXPECT_THAT(error_where_they_meet(cluster, small(), small()),
              HasSubstr("Multiple ResourceProfiles specified in the RDDs for this stage"));
  const auto one = small();
  EXPECT_THAT(error_where_they_meet(cluster, one, one), IsEmpty());
  const auto uneven = resource_profile_builder{}
                          .require(executor_resource_requests{}.cores(1).memory("64m").resource("gpu", 1))
                          .require(task_resource_requests{}.cpus(1).resource("gpu", "0.7"))
                          .build();
  EXPECT_THAT(error_where_they_meet(cluster, uneven, uneven), HasSubstr("must be either <= 0.5"));
  cluster.check_clean();
}

TEST_P(profiles_on_clusters, share_executors_by_what_they_need_or_by_who_they_are) {
  // Room for two such executors at once, one after the other or beside each other.
  for (const bool exact : {false, true}) {
    test_cluster cluster{
        GetParam().options({"troupe.scheduler.profile-matching=" + std::string{exact ? "exact" : "compatible"}})};
    auto session = cluster.make_session();
    const auto pairs = session.range(0, 4, 1).with_resources(small()).map([](std::int64_t n) {
      return std::pair{n % 2, n};
    });
    EXPECT_EQ(pairs.reduce_by_key(std::plus<>{}, 1).with_resources(small()).count(), 2u);
    std::set<executor_id> used;
    for (const auto& p : session.last_placements()) used.insert(p.executor);
    EXPECT_EQ(used.size(), exact ? 2u : 1u) << (exact ? "exact" : "compatible");
    cluster.check_clean();
  }
}

std::int64_t meet(const std::string& directory, std::int64_t n) {
  arrive(directory, "choices");
  return n;
}

TEST(alternatives, are_asked_for_one_after_the_other) {
  const auto cpus = resource_profile_builder{}
                        .require(executor_resource_requests{}.cores(1).memory("64m"))
                        .require(task_resource_requests{}.cpus(1))
                        .build();
  const auto gpu_else_cpus = resource_profile_builder{}
                                 .require(executor_resource_requests{}.cores(1).memory("64m").resource("gpu", 1))
                                 .require(task_resource_requests{}.cpus(1).resource("gpu", 1))
                                 .or_else(cpus)
                                 .build();
  for (const bool patient : {true, false}) {
    const rendezvous meeting;
    test_cluster cluster{{.master = "local-cluster[1,2,1g]",
                          .fake_gpus = 1,
                          .conf = {"troupe.scheduler.alternative-wait=" + std::string{patient ? "1h" : "50ms"}}}};
    auto session = cluster.make_session();
    background<std::vector<std::int64_t>> job{cluster, [&] {
                                                return session.range(0, 2, 2)
                                                    .map(with(meeting.directory()), fn<meet>)
                                                    .with_resources(gpu_else_cpus)
                                                    .collect();
                                              }};
    meeting.await("choices", patient ? 1 : 2); // both at once: there is one GPU
    meeting.open("choices");
    EXPECT_EQ(job.get().size(), 2u);
    std::size_t with_gpu = 0;
    for (const auto& p : session.last_placements()) with_gpu += p.holding.resources.contains("gpu") ? p.count : 0;
    EXPECT_EQ(with_gpu, patient ? 2u : 1u);
    cluster.check_clean();
  }
}

TEST(alternatives, stand_in_for_what_can_never_be_had) {
  const auto wide = resource_profile_builder{}
                        .require(executor_resource_requests{}.cores(64).memory("64m"))
                        .require(task_resource_requests{}.cpus(64))
                        .or_else(resource_profile{})
                        .build();
  for (const auto* master : {"local[2]", "local-cluster[2,1,1g]"}) {
    test_cluster cluster{{.master = master, .conf = {"troupe.scheduler.alternative-wait=1h"}}};
    auto session = cluster.make_session();
    EXPECT_EQ(session.range(0, 4, 2).with_resources(wide).count(), 4u) << master;
    cluster.check_clean();
  }
}

std::int64_t meet_first(const std::string& directory, std::int64_t n) {
  arrive(directory, "first");
  return n;
}
std::int64_t meet_second(const std::string& directory, std::int64_t n) {
  arrive(directory, "second");
  return n;
}

/// Executors of two cores, one task each.
resource_profile_builder two_cores() {
  resource_profile_builder builder;
  return builder.require(executor_resource_requests{}.cores(2).memory("64m")).require(task_resource_requests{}.cpus(1));
}

TEST(tenancy, so_many_tasks_of_a_profile_run_on_an_executor) {
  for (const bool bounded : {false, true}) {
    const rendezvous meeting;
    test_cluster cluster{{.master = "local-cluster[2,2,1g]"}};
    auto session = cluster.make_session();
    const auto profile = bounded ? two_cores().max_tasks_per_executor(1).build() : two_cores().build();
    background<std::vector<std::int64_t>> job{cluster, [&] {
                                                return session.range(0, 2, 2)
                                                    .map(with(meeting.directory()), fn<meet_first>)
                                                    .with_resources(profile)
                                                    .collect();
                                              }};
    meeting.await("first", 2);
    EXPECT_EQ(cluster.executors().size(), bounded ? 2u : 1u);
    meeting.open("first");
    EXPECT_EQ(job.get().size(), 2u);
    cluster.check_clean();
  }
}

TEST(tenancy, beside_an_exclusive_task_nothing_else_runs) {
  for (const bool exclusive : {false, true}) {
    const rendezvous meeting;
    test_cluster cluster{{.master = "local-cluster[2,2,1g]"}};
    auto session = cluster.make_session();
    const auto first = exclusive ? two_cores().exclusive().build() : two_cores().build();
    const auto run = [&](auto dataset, const resource_profile& profile) {
      return dataset.with_resources(profile).collect();
    };
    background<std::vector<std::int64_t>> alone{
        cluster, [&] { return run(session.range(0, 1, 1).map(with(meeting.directory()), fn<meet_first>), first); }};
    const auto process = meeting.await("first").front();
    executor_id holder;
    for (const auto& e : cluster.executors())
      if (static_cast<pid_t>(e.status.info.pid) == process) holder = e.status.info.executor;
    auto other_session = cluster.make_session();
    background<std::vector<std::int64_t>> others{
        cluster, [&] {
          return run(other_session.range(0, 3, 3).map(with(meeting.directory()), fn<meet_second>), two_cores().build());
        }};
    meeting.await("second", exclusive ? 2 : 3);
    meeting.open("second");
    EXPECT_EQ(others.get().size(), 3u) << "they need not wait for it";
    bool beside = false;
    for (const auto& p : other_session.last_placements()) beside = beside || p.executor == holder;
    EXPECT_EQ(beside, !exclusive);
    meeting.open("first");
    EXPECT_EQ(alone.get().size(), 1u);
    cluster.check_clean();
  }
}

TEST(executors, have_the_cores_of_one_task_unless_told_otherwise) {
  for (const auto* master : {"local[4]", "local-cluster[2,2,2g]"}) {
    const rendezvous meeting;
    test_cluster cluster{{.master = master, .conf = {"troupe.task.cpus=2"}}};
    auto session = cluster.make_session();
    background<std::vector<std::int64_t>> job{
        cluster, [&] { return session.range(0, 3, 3).map(with(meeting.directory()), fn<meet_first>).collect(); }};
    meeting.await("first", 2);
    EXPECT_EQ(meeting.arrivals("first").size(), 2u) << "four cores, two for each";
    EXPECT_EQ(cluster.executors().size(), 2u);
    for (const auto& e : cluster.executors()) EXPECT_EQ(e.status.info.capacity.cores, 2);
    meeting.open("first");
    EXPECT_EQ(job.get().size(), 3u);
    cluster.check_clean();
  }
}

TEST(executors, that_are_idle_give_their_room_at_once_to_a_profile_that_waits_for_it) {
  const auto wide = resource_profile_builder{}
                        .require(executor_resource_requests{}.cores(4).memory("64m"))
                        .require(task_resource_requests{}.cpus(4))
                        .build();
  const auto half_gpu = resource_profile_builder{}.require(task_resource_requests{}.resource("gpu", "0.5")).build();
  for (const auto* master : {"local[4]", "local-cluster[1,4,4g]"}) {
    test_cluster cluster{{.master = master,
                          .fake_gpus = 1,
                          .conf = {"troupe.dynamic-allocation.executor-idle-timeout=1h",
                                   "troupe.executor.resource.gpu.amount=1", "troupe.scheduler.infeasible-timeout=1h"}}};
    auto session = cluster.make_session();
    EXPECT_EQ(session.range(0, 8, 4).with_resources(half_gpu).count(), 8u) << "a task-only profile";
    EXPECT_EQ(session.range(0, 8, 4).with_resources(wide).count(), 8u) << "all four cores";
    EXPECT_EQ(session.range(0, 8, 4).with_resources(half_gpu).count(), 8u) << "and back";
    cluster.check_clean();
  }
}

// -- locality

std::int64_t work_somewhere(const std::string& directory) {
  arrive(directory, "work");
  return ::getpid();
}
constexpr auto work_somewhere_task = task<"profiles-work-somewhere", work_somewhere>;

struct preference {
  const char* name;
  const char* master; ///< with room for two executors of one core
  bool of_executor;
};

class locality : public ::testing::TestWithParam<preference> {};
INSTANTIATE_TEST_SUITE_P(levels, locality,
                         ::testing::Values(preference{"host", "local-cluster[2,1,1g]", false},
                                           preference{"executor", "local-cluster[1,2,2g]", true}),
                         [](const auto& param) { return param.param.name; });

TEST_P(locality, tasks_wait_for_where_they_would_rather_run) {
  const std::string key = GetParam().of_executor ? "troupe.locality.executor-wait" : "troupe.locality.host-wait";
  for (const std::string wait : {"never", "0"}) {
    const rendezvous meeting;
    test_cluster cluster{{.master = GetParam().master, .conf = {key + "=" + wait}}};
    auto session = cluster.make_session();
    background<std::vector<std::int64_t>> warm{
        cluster, [&] { return session.range(0, 2, 2).map(with(meeting.directory()), fn<meet_first>).collect(); }};
    meeting.await("first", 2); // both executors are there
    meeting.open("first");
    warm.get();
    const auto home = cluster.executors().at(0);
    const auto where =
        home.status.info.host + (GetParam().of_executor ? "/" + std::to_string(home.id.value) : std::string{});
    job j{"near"};
    const auto stage = j.stage("work")
                           .run(work_somewhere_task)
                           .arguments(std::vector<std::string>(3, meeting.directory()))
                           .prefer({{where}});
    background<std::vector<std::int64_t>> run{cluster, [&] { return session.run(j, stage); }};
    const std::size_t at_once = wait == "0" ? 2 : 1;
    EXPECT_EQ(meeting.await("work", at_once).size(), at_once);
    meeting.open("work");
    const auto pids = run.get();
    EXPECT_EQ(std::set<std::int64_t>(pids.begin(), pids.end()).size(), at_once) << wait;
    if (wait == "never") {
      EXPECT_EQ(pids.front(), home.pid);
    }
    cluster.check_clean();
  }
}

TEST(scarce_resources, are_kept_for_those_who_ask_for_them) {
  const auto gpu = resource_profile_builder{}
                       .require(executor_resource_requests{}.cores(2).memory("64m").resource("gpu", 1))
                       .require(task_resource_requests{}.cpus(1).resource("gpu", 1))
                       .build();
  const auto plain = resource_profile_builder{}
                         .require(executor_resource_requests{}.cores(1).memory("64m"))
                         .require(task_resource_requests{}.cpus(1))
                         .build();
  for (const std::string wait : {"0", "never"}) {
    const rendezvous meeting;
    test_cluster cluster{
        {.master = "local-cluster[1,2,1g]", .fake_gpus = 1, .conf = {"troupe.scheduler.scarce-resource-wait=" + wait}}};
    auto session = cluster.make_session();
    background<std::vector<std::int64_t>> scores{
        cluster, [&] {
          return session.range(0, 1, 1).map(with(meeting.directory()), fn<meet_first>).with_resources(gpu).collect();
        }};
    meeting.await("first");
    auto other = cluster.make_session();
    background<std::uint64_t> count{cluster, [&] { return other.range(0, 2, 1).with_resources(plain).count(); }};
    if (wait == "0") {
      EXPECT_EQ(count.get(), 2u) << "on the core that is free beside the gpu task";
    } else {
      const auto kept = [&] {
        const auto status = cluster.jobs().status();
        if (!status) return false;
        return std::any_of(status->jobs.begin(), status->jobs.end(), [](const job_progress& job) {
          return job.waiting_for.find("1 of the 1 executor that fit is kept for stages that ask for gpu") !=
                 std::string::npos;
        });
      };
      EXPECT_TRUE(testing::wait_until(kept));
      EXPECT_FALSE(count.is_over());
    }
    meeting.open("first");
    EXPECT_EQ(scores.get().size(), 1u);
    if (wait != "0") {
      EXPECT_EQ(count.get(), 2u) << "nobody asks any more";
    }
    cluster.check_clean();
  }
}

std::int64_t meet_in_two_waves(const std::string& directory, std::int64_t n) {
  arrive(directory, n < 4 ? "first" : "third");
  return n;
}

TEST(pools, share_the_slots_of_a_cluster_by_weight) {
  for (const std::string mode : {"fifo", "fair"}) {
    const rendezvous meeting;
    test_cluster cluster{
        {.master = "local-cluster[2,2,2g]",
         .conf = {"troupe.scheduler.mode=" + mode, "troupe.scheduler.pool=bulk", "troupe.scheduler.pools.web.weight=3",
                  "troupe.scheduler.pools.web.min-share=1", "troupe.scheduler.pools.web.mode=fair"}}};
    auto session = cluster.make_session();
    auto web = session.in_pool("web");
    const auto run = [&](troupe::session& in, auto function, std::uint32_t tasks) {
      return in.range(0, tasks, tasks).map(with(meeting.directory()), function).collect().size();
    };
    background<std::size_t> bulk{cluster, [&] { return run(session, fn<meet_in_two_waves>, 8); }};
    meeting.await("first", 4);
    background<std::size_t> pages{cluster, [&] { return run(web, fn<meet_second>, 8); }};
    const auto is_known = [&] {
      const auto status = cluster.jobs().status();
      return status && status->jobs.size() == 2 && !status->jobs[1].stages.empty();
    };
    EXPECT_TRUE(testing::wait_until(is_known));
    // All slots come back: three of the four are due to the pages, who have none yet.
    meeting.open("first");
    const bool fair = mode == "fair";
    meeting.await("second", fair ? 3 : 0);
    meeting.await("third", fair ? 1 : 4);
    EXPECT_EQ(meeting.arrivals("second").size(), fair ? 3u : 0u);
    EXPECT_EQ(meeting.arrivals("third").size(), fair ? 1u : 4u);
    meeting.open("second");
    meeting.open("third");
    EXPECT_EQ(pages.get(), 8u);
    EXPECT_EQ(bulk.get(), 8u);
    cluster.check_clean();
  }
}

TEST(support_matrix, refuses_what_spark_refuses_on_a_master) {
  const auto profile = resource_profile_builder{}.require(task_resource_requests{}.cpus(1)).build();
  for (const auto* matrix : {"all", "spark"}) {
    test_cluster cluster{{.master = "local[2]", .conf = {"troupe.scheduler.support-matrix=" + std::string{matrix}}}};
    auto session = cluster.make_session();
    std::string refusal;
    try {
      session.range(0, 4, 2).with_resources(profile).count();
    } catch (const job_error& e) {
      refusal = e.what();
    }
    if (std::string_view{matrix} == "all") {
      EXPECT_THAT(refusal, IsEmpty());
    } else {
      EXPECT_THAT(refusal, HasSubstr("TaskResourceProfiles are only supported for Standalone, Yarn and Kubernetes"));
    }
    EXPECT_EQ(session.range(0, 4, 2).count(), 4u) << "the default profile is always supported";
    cluster.check_clean();
  }
}

TEST(exact_default_profile, takes_all_cores_of_a_host_where_none_are_configured) {
  for (const bool configured : {false, true}) {
    std::vector<std::string> conf{"troupe.scheduler.profile-matching=exact"};
    if (configured) conf.push_back("troupe.executor.cores=1");
    test_cluster cluster{{.master = "local-cluster[1,2,1g]", .conf = conf}};
    auto session = cluster.make_session();
    EXPECT_EQ(session.range(0, 4, 2).count(), 4u);
    const auto executors = cluster.executors();
    ASSERT_FALSE(executors.empty());
    EXPECT_EQ(executors.front().status.info.capacity.cores, configured ? 1 : 2);
    cluster.check_clean();
  }
}

} // namespace
} // namespace troupe::system_tests
