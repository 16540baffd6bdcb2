#include <troupe/runtime/config/node_file.hpp>

#include <troupe/runtime/config/sections.hpp>
#include <troupe/runtime/config/settings.hpp>
#include <troupe/runtime/spelling.hpp>

namespace troupe {

result<node_description> read_node(const yaml_document& document) {
  const auto& file = document.file;
  if (auto ok = check_root(document, {"node"}); !ok) return ok.error();
  const auto* node = document.root.find("node");
  if (!node)
    return yaml_error(file, document.root.line,
                      "the file has no `node`; write node: {role: driver}, or "
                      "node: {role: executor, driver: host:port}");
  if (auto ok = check_fields(file, *node, "node", node_fields); !ok) return ok.error();
  const auto* role_node = node->find("role");
  if (!role_node) return yaml_error(file, node->line, "node has no role; it is driver or executor");
  const auto role = read_text(file, *role_node, "node.role");
  if (!role) return role.error();
  const auto* driver_node = node->find("driver");
  if (*role == "driver") {
    if (driver_node)
      return yaml_error(file, driver_node->key_line,
                        "node.driver belongs to executors; a driver listens on troupe.driver.bind-address and "
                        "troupe.driver.port");
    return node_description{};
  }
  if (*role != "executor")
    return yaml_error(file, role_node->line,
                      "node.role = " + *role + ": must be one of driver, executor" +
                          spelling_hint(*role, {"driver", "executor"}));
  if (!driver_node)
    return yaml_error(file, node->line, "an executor needs its driver's address; write driver: host:port");
  const auto address = read_text(file, *driver_node, "node.driver");
  if (!address) return address.error();
  auto where = parse_endpoint(*address);
  if (!where) return yaml_error(file, driver_node->line, "node.driver: " + where.error().message);
  return node_description{node_role::executor, std::move(*where)};
}

} // namespace troupe
