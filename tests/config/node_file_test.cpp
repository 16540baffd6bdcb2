#include "support.hpp"

#include <troupe/runtime/config/node_file.hpp>

namespace troupe::testing::node_file_tests {
namespace {

using ::testing::HasSubstr;

std::string fault(std::string_view text) { return message_of(read_node(document(text))); }

TEST(node_file, names_the_role_and_the_driver) {
  EXPECT_EQ(*read_node(document("node: {role: driver}\ntroupe: {}\ncaf.x: 1\n")),
            (node_description{node_role::driver, {}}));
  EXPECT_EQ(*read_node(document("node: {role: executor, driver: 'troupe://h:1'}\ntroupe.executor.cores: 2\n")),
            (node_description{node_role::executor, {"h", 1}}));
}

TEST(node_file, errors_say_what_to_write) {
  EXPECT_EQ(fault("troupe: {}\n"), "x.yaml:1: the file has no `node`; write node: {role: driver}, or node: {role: "
                                   "executor, driver: host:port}");
  EXPECT_EQ(fault("node: {}\n"), "x.yaml:1: node has no role; it is driver or executor");
  EXPECT_EQ(fault("node:\n  role: drivr\n"),
            "x.yaml:2: node.role = drivr: must be one of driver, executor; did you mean driver?");
  EXPECT_EQ(fault("node: {role: executor}\n"),
            "x.yaml:1: an executor needs its driver's address; write driver: host:port");
  EXPECT_EQ(fault("node:\n  role: executor\n  driver: h\n"),
            "x.yaml:3: node.driver: `h` has no port; write host:port, such as 127.0.0.1:7077");
  EXPECT_THAT(fault("node: {role: driver, driver: 'h:1'}\n"), HasSubstr("node.driver belongs to executors"));
  EXPECT_EQ(fault("node: {rol: driver}\n"), "x.yaml:1: node has no field `rol`; did you mean role?");
  EXPECT_THAT(fault("node: executor\n"), HasSubstr("node must be a map, not the text `executor`"));
  EXPECT_EQ(fault("node: {role: driver}\ntruope: {}\n"),
            "x.yaml:2: the file has no field `truope`; did you mean troupe?");
}

} // namespace
} // namespace troupe::testing::node_file_tests
