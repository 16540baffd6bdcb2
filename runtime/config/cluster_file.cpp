#include <troupe/runtime/config/cluster_file.hpp>

#include <set>

#include <troupe/runtime/config/keys.hpp>
#include <troupe/runtime/config/sections.hpp>
#include <troupe/runtime/config/setting_node.hpp>
#include <troupe/runtime/config/settings.hpp>

namespace troupe {
namespace {

// All hosts of such a cluster stand on one machine: an address is one device, whichever host lists it.
constexpr std::string_view this_machine = "this machine";
constexpr std::int64_t most_executors = 10'000;
constexpr std::int64_t most_fake_addresses = 1024;

class cluster_reader {
public:
  cluster_reader(const yaml_document& document, std::string_view directory)
    : file_(document.file), directory_(directory) {}

  result<cluster_description> read(const yaml_node& node) {
    if (auto ok = check_fields(file_, node, "cluster", cluster_fields); !ok) return ok.error();
    if (const auto* elastic = node.find("elastic")) {
      const auto value = read_setting(file_, *elastic, "cluster.elastic", schema_entry(keys::security_insecure.name));
      if (!value) return value.error();
      out_.elastic = std::get<bool>(*value);
    }
    if (auto ok = read_hosts(node); !ok) return ok.error();
    if (const auto* profiles = node.find("profiles")) {
      auto read = read_profiles(file_, directory_, *profiles);
      if (!read) return read.error();
      out_.profiles = std::move(*read);
    }
    if (const auto* executors = node.find("executors")) {
      if (auto ok = read_executors(*executors); !ok) return ok.error();
    }
    if (out_.executors.empty() && !out_.elastic)
      return yaml_error(file_, node.line,
                        "the cluster could run nothing: it has no executors and elastic is false; list executors, or "
                        "set elastic: true");
    return std::move(out_);
  }

private:
  result<void> read_hosts(const yaml_node& node) {
    const auto* hosts = node.find("hosts");
    if (!hosts) return yaml_error(file_, node.line, "cluster has no hosts");
    if (!hosts->is_list() || hosts->children.empty())
      return yaml_error(file_, hosts->line,
                        "cluster.hosts must be a list such as [{name: left, cores: 4, memory: 8g}]");
    std::set<std::string> names;
    for (const auto& child : hosts->children) {
      auto host = read_host(child);
      if (!host) return host.error();
      if (!names.insert(host->name).second)
        return yaml_error(file_, child.line, "there are two hosts of the name " + host->name);
      out_.hosts.push_back(std::move(*host));
    }
    return {};
  }

  result<carving_host> read_host(const yaml_node& node) {
    const std::string what = "cluster.hosts";
    if (auto ok = check_fields(file_, node, what, cluster_host_fields); !ok) return ok.error();
    for (const auto& field : cluster_host_fields) {
      if (field.required && !node.find(field.name))
        return yaml_error(file_, node.line, what + ": a host has no " + std::string{field.name});
    }
    auto name = read_text(file_, *node.find("name"), what + ".name");
    if (!name) return name.error();
    const auto cores =
        read_setting(file_, *node.find("cores"), what + ".cores", schema_entry(keys::executor_cores.name));
    if (!cores) return cores.error();
    const auto memory =
        read_setting(file_, *node.find("memory"), what + ".memory", schema_entry(keys::executor_memory.name));
    if (!memory) return memory.error();
    carving_host out{std::move(*name),
                     std::string{this_machine},
                     std::get<std::int64_t>(*cores),
                     std::get<std::int64_t>(*memory),
                     {}};
    if (const auto* resources = node.find("resources")) {
      if (!resources->is_map())
        return yaml_error(file_, resources->line, what + ".resources must be a map such as {gpu: [0, 1]}");
      for (const auto& child : resources->children) {
        auto pool = read_pool(child, what + ".resources." + child.key);
        if (!pool) return pool.error();
        out.custom.emplace(child.key, std::move(*pool));
      }
    }
    if (auto valid = validate(out); !valid) return yaml_error(file_, node.line, valid.error().message);
    return out;
  }

  result<resource_pool> read_pool(const yaml_node& node, const std::string& what) {
    if (auto hint = builtin_resource_hint(node.key); !hint.empty())
      return yaml_error(file_, node.key_line, what + ": is built in: write cores or memory beside `resources`");
    resource_pool out;
    if (node.is_text()) {
      const auto number = parse_resource_amount(node.text);
      if (!number || number->amount < 1 || (!number->counted && number->amount > most_fake_addresses))
        return yaml_error(file_, node.line,
                          what + " = " + node.text + ": must be a list of addresses, a number of fake ones from 1 to " +
                              std::to_string(most_fake_addresses) + ", or a size such as 80g");
      if (number->counted) return resource_pool{number->amount, {}, true};
      for (std::int64_t i = 0; i < number->amount; ++i) out.addresses.push_back(std::to_string(i));
    } else {
      auto addresses = read_texts(file_, node, what);
      if (!addresses) return addresses.error();
      out.addresses = std::move(*addresses);
    }
    out.amount = static_cast<std::int64_t>(out.addresses.size());
    return out;
  }

  result<void> read_executors(const yaml_node& node) {
    const std::string what = "cluster.executors";
    if (!node.is_list())
      return yaml_error(file_, node.line, what + " must be a list such as [{profile: gpu, count: 2}]");
    std::int64_t total = 0;
    for (const auto& child : node.children) {
      if (auto ok = check_fields(file_, child, what, cluster_executor_fields); !ok) return ok;
      const auto* name_node = child.find("profile");
      if (!name_node) return yaml_error(file_, child.line, what + ": an entry has no profile");
      auto name = read_text(file_, *name_node, what + ".profile");
      if (!name) return name.error();
      auto profile = find_profile(out_.profiles, *name, file_, name_node->line);
      if (!profile) return profile.error();
      std::int64_t count = 1;
      if (const auto* count_node = child.find("count")) {
        const auto number = count_node->is_text() ? parse_count(count_node->text) : result<std::int64_t>{0};
        if (!number || *number < 1 || *number > most_executors)
          return yaml_error(file_, count_node->line,
                            what + ".count = " + count_node->text + ": must be a whole number from 1 to " +
                                std::to_string(most_executors));
        count = *number;
      }
      total += count;
      if (total > most_executors)
        return yaml_error(file_, child.line, what + ": more than " + std::to_string(most_executors) + " in all");
      out_.executors.push_back({std::move(*name), std::move(*profile), static_cast<std::uint32_t>(count), child.line});
    }
    return {};
  }

  std::string_view file_;
  std::string_view directory_;
  cluster_description out_;
};

} // namespace

result<cluster_description> read_cluster(const yaml_document& document, std::string_view directory) {
  if (auto ok = check_root(document, {"cluster"}); !ok) return ok.error();
  const auto* node = document.root.find("cluster");
  if (!node)
    return yaml_error(document.file, document.root.line,
                      "the file has no `cluster`; write cluster: {hosts: [{name: left, cores: 4, memory: 8g}]}");
  return cluster_reader{document, directory}.read(*node);
}

result<void> check_room(const cluster_description& cluster, const resource_profile& defaults,
                        const overhead_rule& overhead, std::string_view file) {
  carving hosts{cluster.hosts, "cluster.hosts"};
  request_id request;
  for (const auto& e : cluster.executors) {
    const auto shape = complete(e.profile, defaults, overhead);
    if (const auto lack = hosts.lack_for(shape, e.count); !lack.empty()) {
      auto why =
          yaml_error(file, e.line,
                     "cluster.executors: " + std::to_string(e.count) + (e.count == 1 ? " executor" : " executors") +
                         " of profile " + e.profile_name + " " + lack);
      why.code = ec::infeasible;
      return why;
    }
    for (std::uint32_t i = 0; i < e.count; ++i) {
      ++request.value;
      static_cast<void>(hosts.place(request, shape));
    }
  }
  return {};
}

cluster_description cluster_of(const local_cluster_master& master,
                               const std::map<std::string, resource_pool>& resources) {
  cluster_description out;
  for (std::uint32_t i = 1; i <= master.hosts; ++i)
    out.hosts.push_back(
        {"host-" + std::to_string(i), std::string{this_machine}, master.cores, master.memory, resources});
  return out;
}

} // namespace troupe
