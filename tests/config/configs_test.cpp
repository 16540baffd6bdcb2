#include "support.hpp"

#include <filesystem>
#include <set>

#include <troupe/runtime/config/cluster_file.hpp>
#include <troupe/runtime/config/job_file.hpp>
#include <troupe/runtime/config/node_file.hpp>
#include <troupe/runtime/config/profile_settings.hpp>

namespace troupe::testing {
namespace {

const std::filesystem::path configs = TROUPE_SOURCE_DIRECTORY "/configs";

yaml_document load(const std::string& name) {
  auto document = load_yaml((configs / name).string());
  EXPECT_TRUE(document) << document.error().message;
  return document ? *document : yaml_document{};
}

settings settings_in(const yaml_document& document) {
  settings_builder builder{"/"};
  const auto added = builder.add_file(document);
  EXPECT_TRUE(added) << added.error().message;
  auto built = builder.build();
  EXPECT_TRUE(built) << built.error().message;
  return built ? *built : settings{};
}

TEST(configs, driver_and_executors_meet) {
  const auto driver_file = load("driver.yaml");
  const auto driver = read_node(driver_file);
  ASSERT_TRUE(driver) << driver.error().message;
  EXPECT_EQ(driver->role, node_role::driver);
  const auto driver_settings = settings_in(driver_file);
  for (const auto* name : {"executor.yaml", "executor-gpu.yaml"}) {
    const auto file = load(name);
    const auto executor = read_node(file);
    ASSERT_TRUE(executor) << executor.error().message;
    EXPECT_EQ(executor->role, node_role::executor);
    EXPECT_EQ(executor->driver.host, driver_settings.get(keys::driver_bind_address));
    EXPECT_EQ(executor->driver.port, driver_settings.get(keys::driver_port));
    EXPECT_EQ(settings_in(file).get(keys::security_secret_file), driver_settings.get(keys::security_secret_file));
  }
}

TEST(configs, the_gpu_executor_runs_four_tasks_on_fake_addresses) {
  const auto s = settings_in(load("executor-gpu.yaml"));
  const auto profile = default_profile(s);
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(slots_of(capacity_of(*profile), *profile).slots, 4);
  EXPECT_THAT(executor_resources(s)->at("gpu").addresses, ::testing::ElementsAre("0", "1"));
}

TEST(configs, every_executor_of_the_cluster_fits_its_hosts) {
  const auto file = load("cluster.yaml");
  const auto cluster = read_cluster(file, configs.string());
  ASSERT_TRUE(cluster) << cluster.error().message;
  const auto defaults = default_profile(settings_in(file));
  const auto fit = check_room(*cluster, *defaults, overhead_rule_of(settings_in(file)), "cluster.yaml");
  EXPECT_TRUE(fit) << fit.error().message;
}

TEST(configs, job_files_become_jobs) {
  const auto reads = load_job((configs / "reads.yaml").string(), {4});
  ASSERT_TRUE(reads) << reads.error().message;
  ASSERT_EQ(reads->stages.size(), 3u);
  EXPECT_EQ(reads->stages[0].tasks, 2u);
  EXPECT_EQ(reads->stages[1].dependencies.at(0).kind, dependency_kind::one_to_one);
  EXPECT_EQ(reads->stages[2].dependencies.at(0).kind, dependency_kind::all);
  const auto gpu = load_job((configs / "gpu.yaml").string(), {4});
  ASSERT_TRUE(gpu) << gpu.error().message;
  EXPECT_EQ(gpu->stages.at(0).tasks, 4u);
}

TEST(configs, no_file_is_untested) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator{configs}) {
    if (entry.path().extension() == ".yaml") names.insert(entry.path().filename().string());
  }
  EXPECT_EQ(names, (std::set<std::string>{"cluster.yaml", "driver.yaml", "executor-gpu.yaml", "executor.yaml",
                                          "gpu.yaml", "reads.yaml"}));
}

} // namespace
} // namespace troupe::testing
