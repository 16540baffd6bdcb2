// What the reference says of the sections of files is what their readers do.

#include "support.hpp"

#include <functional>
#include <map>
#include <span>
#include <string>

#include <troupe/runtime/config/cluster_file.hpp>
#include <troupe/runtime/config/node_file.hpp>
#include <troupe/runtime/config/sections.hpp>

namespace troupe::testing::sections_tests {
namespace {

using values = std::map<std::string_view, std::string>;

/// A map of all fields but one, in YAML.
std::string map_of(const values& all, std::string_view but = {}) {
  std::string out;
  for (const auto& [name, value] : all)
    if (name != but) out += (out.empty() ? "" : ", ") + std::string{name} + ": " + value;
  return "{" + out + "}";
}

const values host{{"name", "left"}, {"cores", "4"}, {"memory", "8g"}, {"resources", "{gpu: 2}"}};
const values executor{{"profile", "default"}, {"count", "2"}};
const values cluster{{"hosts", "[" + map_of(host) + "]"},
                     {"profiles", "{small: {task: {cpus: 1}}}"},
                     {"executors", "[" + map_of(executor) + "]"},
                     {"elastic", "true"}};
const values node{{"role", "executor"}, {"driver", "127.0.0.1:1"}};

result<void> read(const std::string& text) {
  const auto parsed = parse_yaml(text, "x.yaml");
  if (!parsed) return parsed.error();
  if (parsed->root.find("node")) {
    const auto described = read_node(*parsed);
    return described ? result<void>{} : described.error();
  }
  const auto described = read_cluster(*parsed, "/");
  return described ? result<void>{} : described.error();
}

/// Each field can be read, and can be left out where it is not needed.
void expect_as_said(std::span<const section_field> fields, const values& all,
                    const std::function<std::string(const std::string&)>& file) {
  ASSERT_EQ(fields.size(), all.size());
  EXPECT_EQ(message_of(read(file(map_of(all)))), "(no error)");
  for (const auto& field : fields) {
    ASSERT_TRUE(all.contains(field.name)) << field.name;
    EXPECT_EQ(read(file(map_of(all, field.name))).has_value(), !field.required) << field.name;
  }
}

TEST(sections, have_the_fields_that_their_readers_know) {
  expect_as_said(cluster_fields, cluster, [](const std::string& text) { return "cluster: " + text; });
  expect_as_said(cluster_host_fields, host, [](const std::string& text) { return "cluster: {hosts: [" + text + "]}"; });
  expect_as_said(cluster_executor_fields, executor, [](const std::string& text) {
    return "cluster: {hosts: [" + map_of(host) + "], executors: [" + text + "]}";
  });
  // The address is needed by executors alone.
  EXPECT_EQ(node_fields.size(), node.size());
  EXPECT_TRUE(read("node: " + map_of(node)));
  EXPECT_FALSE(read("node: " + map_of(node, "role")));
  EXPECT_FALSE(read("node: " + map_of(node, "driver")));
  EXPECT_TRUE(read("node: {role: driver}"));
}

} // namespace
} // namespace troupe::testing::sections_tests
