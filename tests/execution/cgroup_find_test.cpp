#include <troupe/runtime/execution/cgroup_find.hpp>

#include "cgroup_fixture.hpp"

namespace troupe::cgroup_find_tests {
namespace {

using namespace testing_execution;
using enum cgroup_controller;

/// A machine of plain files.
class cgroup_places_test : public ::testing::Test {
protected:
  cgroup_places places() const {
    return {tree.path() + "/self", tree.path() + "/mounts", {make_like_v2, remove_like_v2}};
  }
  found_cgroups find(const std::vector<cgroup_controller>& wanted = {memory}) const {
    return find_cgroups(wanted, places());
  }
  /// As mountinfo shows a mount of the tree's directory `at`.
  std::string mount(const std::string& at, const std::string& type, const std::string& options,
                    const std::string& root = "/") const {
    return "31 23 0:28 " + root + " " + tree.path() + "/" + at + " rw,nosuid shared:9 - " + type + " " + type + " rw," +
           options + "\n";
  }
  /// A group of v2 with what it has and what it gives.
  void v2(const std::string& at, const std::string& has, const std::string& gives, const std::string& members = "") {
    tree.write(at + "/cgroup.controllers", has + "\n");
    tree.write(at + "/cgroup.subtree_control", gives + "\n");
    tree.write(at + "/cgroup.procs", members);
  }
  std::string directory_of(const found_cgroups& found) const {
    return found.base.empty() ? "" : found.base.parts().front().directory.substr(tree.path().size());
  }
  scratch_tree tree;
};

TEST_F(cgroup_places_test, v1_is_used_where_this_process_is_in_it) {
  tree.write("mounts", mount("memory", "cgroup", "memory") + mount("cpu", "cgroup", "cpu,cpuacct"));
  tree.write("self", "9:name=systemd:/\n4:memory:/a/b\n2:cpu,cpuacct:/c\n0::/\n");
  tree.write("memory/a/b/x", "");
  tree.write("cpu/c/x", "");
  const auto found = find({memory, cpu, pids});
  ASSERT_EQ(found.base.parts().size(), 2u);
  EXPECT_EQ(found.base.parts()[0], (cgroup_part{1, tree.path() + "/memory/a/b", {memory}}));
  EXPECT_EQ(found.base.parts()[1], (cgroup_part{1, tree.path() + "/cpu/c", {cpu}}));
  EXPECT_EQ(found.missing.at(pids), "no cgroup hierarchy with the controller pids is mounted");
}

TEST_F(cgroup_places_test, controllers_of_one_v1_hierarchy_share_a_directory) {
  tree.write("mounts", mount("both", "cgroup", "memory,pids"));
  tree.write("self", "4:memory,pids:/\n");
  tree.write("both/x", "");
  const auto found = find({memory, pids});
  ASSERT_EQ(found.base.parts().size(), 1u);
  EXPECT_EQ(found.base.parts()[0], (cgroup_part{1, tree.path() + "/both", {memory, pids}}));
}

TEST_F(cgroup_places_test, a_container_sees_only_what_is_mounted_from_its_own_group_on) {
  tree.write("mounts", mount("memory", "cgroup", "memory", "/docker/12"));
  tree.write("memory/in/x", "");
  tree.write("self", "4:memory:/docker/12/in\n");
  EXPECT_EQ(directory_of(find()), "/memory/in");
  tree.write("self", "4:memory:/docker/12\n");
  EXPECT_EQ(directory_of(find()), "/memory");
  tree.write("self", "4:memory:/docker/123\n");
  EXPECT_EQ(directory_of(find()), "");
  tree.write("self", "4:memory:/elsewhere\n");
  EXPECT_EQ(directory_of(find()), "");
}

TEST_F(cgroup_places_test, what_is_not_there_or_not_writable_is_missing_with_the_reason) {
  tree.write("mounts", mount("gone", "cgroup", "memory"));
  tree.write("self", "4:memory:/\n");
  const auto found = find();
  EXPECT_TRUE(found.base.empty());
  EXPECT_EQ(found.missing.at(memory), tree.path() + "/gone is not writable");
}

TEST_F(cgroup_places_test, of_v2_the_nearest_group_that_gives_the_controller_is_used) {
  tree.write("mounts", mount("v2", "cgroup2", "nsdelegate"));
  tree.write("self", "0::/user/app/scope\n");
  v2("v2", "cpu memory pids", "cpu memory pids");
  v2("v2/user", "cpu memory pids", "memory pids");
  v2("v2/user/app", "memory pids", "memory");
  v2("v2/user/app/scope", "memory", "", "1\n");
  const auto found = find({memory, cpu, pids});
  ASSERT_EQ(found.base.parts().size(), 1u);
  EXPECT_EQ(found.base.parts()[0], (cgroup_part{2, tree.path() + "/v2/user/app", {memory}}));
  EXPECT_TRUE(found.own_v2_group.empty());
  EXPECT_NE(found.missing.at(cpu).find("the controller cpu is not given to"), std::string::npos);
}

TEST_F(cgroup_places_test, all_controllers_of_v2_come_from_one_group) {
  tree.write("mounts", mount("v2", "cgroup2", "nsdelegate"));
  tree.write("self", "0::/a/b\n");
  v2("v2", "memory pids", "memory pids");
  v2("v2/a", "memory pids", "memory");
  v2("v2/a/b", "memory pids", "", "1\n");
  const auto found = find({memory, pids});
  ASSERT_EQ(found.base.parts().size(), 1u);
  EXPECT_EQ(found.base.parts()[0], (cgroup_part{2, tree.path() + "/v2/a", {memory}}));
  EXPECT_EQ(found.missing.at(pids), tree.path() + "/v2/a does not give the controller to groups below");
}

TEST_F(cgroup_places_test, in_a_hybrid_a_controller_of_v1_is_used_there) {
  tree.write("mounts", mount("unified", "cgroup2", "nsdelegate") + mount("memory", "cgroup", "memory"));
  tree.write("self", "4:memory:/\n0::/\n");
  tree.write("memory/x", "");
  v2("unified", "hugetlb", "");
  EXPECT_EQ(directory_of(find()), "/memory");
}

TEST_F(cgroup_places_test, a_group_of_v2_that_others_are_in_is_left_alone) {
  tree.write("mounts", mount("v2", "cgroup2", "nsdelegate"));
  tree.write("self", "0::/\n");
  v2("v2", "memory", "", "1\n" + std::to_string(::getpid()) + "\n");
  const auto found = find();
  EXPECT_TRUE(found.base.empty());
  EXPECT_NE(found.missing.at(memory).find("systemd-run --user --scope -p Delegate=yes"), std::string::npos);
}

TEST_F(cgroup_places_test, a_delegated_group_of_v2_is_split_and_put_together_again) {
  tree.write("mounts", mount("v2", "cgroup2", "nsdelegate"));
  tree.write("self", "0::/scope\n");
  const auto self = std::to_string(::getpid());
  v2("v2", "memory", "");
  v2("v2/scope", "memory pids", "", self + "\n");
  const auto found = find({memory, pids});
  EXPECT_EQ(found.own_v2_group, tree.path() + "/v2/scope");
  const auto session = make_session_group(found, "troupe-x");
  ASSERT_TRUE(session) << session.error().message;
  EXPECT_EQ(tree.read("v2/scope/troupe-x/members/cgroup.procs"), self);
  EXPECT_EQ(tree.read("v2/scope/cgroup.subtree_control"), "+memory +pids");
  ASSERT_TRUE(session->child("executor-1").make());
  EXPECT_EQ(tree.read("v2/scope/troupe-x/cgroup.subtree_control"), "+memory +pids");
  tree.write("v2/scope/cgroup.procs", "");
  remove_session_group(found, *session);
  EXPECT_EQ(tree.read("v2/scope/cgroup.subtree_control"), "-memory -pids");
  EXPECT_EQ(tree.read("v2/scope/cgroup.procs"), self);
  EXPECT_FALSE(std::filesystem::exists(tree.path() + "/v2/scope/troupe-x"));
}

TEST_F(cgroup_places_test, nothing_to_read_is_nothing_found) {
  const auto found = find();
  EXPECT_TRUE(found.base.empty());
  EXPECT_EQ(found.missing.size(), 1u);
}

} // namespace
} // namespace troupe::cgroup_find_tests
