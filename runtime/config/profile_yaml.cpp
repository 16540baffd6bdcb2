#include <troupe/runtime/config/profile_yaml.hpp>

#include <array>
#include <filesystem>
#include <utility>

#include <troupe/runtime/api/resource_profile_builder.hpp>
#include <troupe/runtime/config/keys.hpp>
#include <troupe/runtime/config/path_text.hpp>
#include <troupe/runtime/config/setting_node.hpp>
#include <troupe/runtime/spelling.hpp>

namespace troupe {
namespace {

struct executor_field {
  std::string_view field;
  std::string_view resource;
  std::string_view key_name; ///< whose range the field has
};
constexpr std::array<executor_field, 5> executor_fields{{
    {"cores", resource_names::cores, keys::executor_cores.name},
    {"memory", resource_names::memory, keys::executor_memory.name},
    {"memory-overhead", resource_names::memory_overhead, keys::executor_memory_overhead.name},
    {"off-heap", resource_names::off_heap, keys::executor_off_heap.name},
    {"pyspark-memory", resource_names::pyspark_memory, keys::executor_pyspark_memory.name},
}};

/// One profile; `what` names it in errors.
class profile_reader {
public:
  profile_reader(std::string_view file, std::string_view directory) : file_(file), directory_(directory) {}

  result<resource_profile> read(const yaml_node& node, const std::string& what) {
    if (auto ok =
            check_fields(file_, node, what,
                         {"executor", "task", "max-tasks-per-executor", "exclusive", "memory-ceiling", "alternatives"});
        !ok)
      return ok.error();
    if (const auto* executor = node.find("executor")) {
      if (auto ok = read_executor(*executor, what + ": executor"); !ok) return ok.error();
    }
    if (const auto* task = node.find("task")) {
      if (auto ok = read_task(*task, what + ": task"); !ok) return ok.error();
    }
    if (auto ok = read_terms(node, what); !ok) return ok.error();
    if (out_ == resource_profile{})
      return yaml_error(file_, node.line, what + " asks for nothing; remove it and use the profile default");
    if (auto valid = validate(out_); !valid) return yaml_error(file_, node.line, what + ": " + valid.error().message);
    out_.build = next_profile_build();
    return std::move(out_);
  }

private:
  result<void> read_terms(const yaml_node& node, const std::string& what) {
    if (const auto* most = node.find("max-tasks-per-executor")) {
      const auto count =
          read_setting(file_, *most, what + ": max-tasks-per-executor", schema_entry(keys::executor_cores.name));
      if (!count) return count.error();
      out_.max_tasks_per_executor = std::get<std::int64_t>(*count);
    }
    if (const auto* exclusive = node.find("exclusive")) {
      const auto yes =
          read_setting(file_, *exclusive, what + ": exclusive", schema_entry(keys::dynamic_allocation_enabled.name));
      if (!yes) return yes.error();
      out_.exclusive = std::get<bool>(*yes);
    }
    if (const auto* ceiling = node.find("memory-ceiling")) {
      const auto size =
          read_setting(file_, *ceiling, what + ": memory-ceiling", schema_entry(keys::task_memory_ceiling.name));
      if (!size) return size.error();
      out_.memory_ceiling = std::get<std::int64_t>(*size);
    }
    return {};
  }

  result<void> read_executor(const yaml_node& node, const std::string& what) {
    if (auto ok = check_fields(file_, node, what,
                               {"cores", "memory", "memory-overhead", "off-heap", "pyspark-memory", "resource"});
        !ok)
      return ok;
    for (const auto& [field, resource, key_name] : executor_fields) {
      const auto* child = node.find(field);
      if (!child) continue;
      const auto amount = read_setting(file_, *child, what + "." + std::string{field}, schema_entry(key_name));
      if (!amount) return amount.error();
      out_.executor[std::string{resource}].amount = std::get<std::int64_t>(*amount);
    }
    return each_resource(
        node, what, {"amount", "discovery-script", "vendor"},
        [this](const yaml_node& resource, const std::string& name) { return read_executor_resource(resource, name); });
  }

  result<void> read_executor_resource(const yaml_node& node, const std::string& what) {
    const auto amount =
        read_setting(file_, *node.find("amount"), what + ".amount", schema_entry(keys::executor_resource_amount.name));
    if (!amount) return amount.error();
    auto& request = out_.executor[node.key];
    const auto& written = std::get<resource_amount>(*amount);
    request.amount = written.amount;
    request.counted = written.counted;
    if (const auto* script = node.find("discovery-script")) {
      auto path = read_text(file_, *script, what + ".discovery-script");
      if (!path) return path.error();
      const auto expanded = expand_path(*path);
      if (!expanded)
        return yaml_error(file_, script->line,
                          what + ".discovery-script = " + show_value(*path) + ": " + expanded.error().message);
      request.discovery_script = plain_path(std::filesystem::path{directory_} / *expanded);
    }
    if (const auto* vendor = node.find("vendor")) {
      auto text = read_text(file_, *vendor, what + ".vendor");
      if (!text) return text.error();
      request.vendor = *text;
    }
    return {};
  }

  result<void> read_task(const yaml_node& node, const std::string& what) {
    if (auto ok = check_fields(file_, node, what, {"cpus", "memory", "resource"}); !ok) return ok;
    if (const auto* cpus = node.find("cpus")) {
      const auto amount = read_setting(file_, *cpus, what + ".cpus", schema_entry(keys::task_cpus.name));
      if (!amount) return amount.error();
      out_.task[std::string{resource_names::cpus}] = std::get<share>(*amount);
    }
    if (const auto* memory = node.find("memory")) {
      const auto amount = read_setting(file_, *memory, what + ".memory", schema_entry(keys::task_memory.name));
      if (!amount) return amount.error();
      out_.task[std::string{resource_names::memory}] = share::whole(std::get<std::int64_t>(*amount));
    }
    return each_resource(node, what, {"amount"}, [this](const yaml_node& resource, const std::string& name) {
      return read_task_resource(resource, name);
    });
  }

  result<void> read_task_resource(const yaml_node& node, const std::string& what) {
    const auto amount =
        read_setting(file_, *node.find("amount"), what + ".amount", schema_entry(keys::task_resource_amount.name));
    if (!amount) return amount.error();
    out_.task[node.key] = std::get<share>(*amount);
    return {};
  }

  /// Calls `read(node, what)` for each child of the `resource` map; every one has an amount.
  template <class Read>
  result<void> each_resource(const yaml_node& half, const std::string& what,
                             std::initializer_list<std::string_view> fields, Read read) {
    const auto* all = half.find("resource");
    if (!all) return {};
    const auto path = what + ".resource";
    if (!all->is_map())
      return yaml_error(file_, all->line, path + " must be a map of names, such as {gpu: {amount: 1}}");
    for (const auto& child : all->children) {
      if (auto hint = builtin_resource_hint(child.key); !hint.empty())
        return yaml_error(file_, child.key_line, path + "." + child.key + ": " + hint);
      if (!child.is_map())
        return yaml_error(file_, child.line,
                          path + "." + child.key +
                              " must be a map such as {amount: " + (child.is_text() ? child.text : "1") + "}");
      if (auto ok = check_fields(file_, child, path + "." + child.key, fields); !ok) return ok;
      if (!child.find("amount")) return yaml_error(file_, child.line, path + "." + child.key + " has no amount");
      if (auto ok = read(child, path + "." + child.key); !ok) return ok;
    }
    return {};
  }

  std::string_view file_;
  std::string_view directory_;
  resource_profile out_;
};

/// The profiles that `alternatives` names, which may stand anywhere in the file; without alternatives of their own,
/// which are no choice of the one that names them.
result<std::vector<resource_profile>> read_alternatives(std::string_view file, const yaml_node& profile,
                                                        const std::vector<named_profile>& all) {
  std::vector<resource_profile> out;
  const auto* list = profile.find("alternatives");
  if (!list) return out;
  const auto add = [&](const yaml_node& entry) -> result<void> {
    if (!entry.is_text())
      return yaml_error(file, entry.line,
                        "profile " + profile.key +
                            ": alternatives must be a name or a list of names of profiles, such as [wide-cpu]");
    auto found = find_profile(all, entry.text, file, entry.line);
    if (!found) return found.error();
    out.push_back(*std::move(found));
    return {};
  };
  if (!list->is_list()) {
    if (auto ok = add(*list); !ok) return ok.error();
    return out;
  }
  for (const auto& entry : list->children)
    if (auto ok = add(entry); !ok) return ok.error();
  return out;
}

} // namespace

result<std::vector<named_profile>> read_profiles(std::string_view file, std::string_view directory,
                                                 const yaml_node& node) {
  std::vector<named_profile> out;
  if (!node.is_map()) return yaml_error(file, node.line, "profiles must be a map of names to profiles");
  for (const auto& child : node.children) {
    if (child.key == "default")
      return yaml_error(file, child.key_line,
                        "profile default: the name stands for the cluster's own profile; choose another one");
    auto content = profile_reader{file, directory}.read(child, "profile " + child.key);
    if (!content) return content.error();
    out.push_back({child.key, std::move(*content), child.key_line});
  }
  std::vector<std::vector<resource_profile>> alternatives;
  for (const auto& child : node.children) {
    auto some = read_alternatives(file, child, out);
    if (!some) return some.error();
    alternatives.push_back(*std::move(some));
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i].content.alternatives = std::move(alternatives[i]);
    if (auto valid = validate(out[i].content); !valid)
      return yaml_error(file, out[i].line, "profile " + out[i].name + ": " + valid.error().message);
  }
  return out;
}

result<std::vector<named_profile>> read_profiles(const yaml_document& document, std::string_view directory) {
  const auto* node = document.root.find("profiles");
  if (const auto* cluster = document.root.find("cluster"); !node && cluster) node = cluster->find("profiles");
  if (!node) return yaml_error(document.file, document.root.line, "the file has no `profiles`");
  return read_profiles(document.file, directory, *node);
}

result<resource_profile> find_profile(const std::vector<named_profile>& profiles, const std::string& name,
                                      std::string_view file, int line) {
  if (name == "default") return resource_profile{};
  std::vector<std::string> names{"default"};
  for (const auto& profile : profiles) {
    if (profile.name == name) return profile.content;
    names.push_back(profile.name);
  }
  return yaml_error(file, line, "there is no profile `" + name + "`" + spelling_hint(name, names));
}

std::string builtin_resource_hint(std::string_view name) {
  if (name == "cpus" || name == "cpu") return "is built in: tasks take cpus, executors have cores";
  for (const auto& [field, resource, key_name] : executor_fields) {
    if (name == field || name == resource) return "is built in: write " + std::string{field} + " beside `resource`";
  }
  return {};
}

} // namespace troupe
