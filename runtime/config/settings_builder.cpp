#include <troupe/runtime/config/settings.hpp>

#include <filesystem>

#include <troupe/runtime/config/amount_text.hpp>
#include <troupe/runtime/config/master.hpp>
#include <troupe/runtime/config/path_text.hpp>
#include <troupe/runtime/config/profile_settings.hpp>
#include <troupe/runtime/spelling.hpp>

namespace troupe {
namespace {

/// A value of a file's section, flattened.
struct flat_entry {
  std::string name;
  const yaml_node* node;
};

error fault(const setting_origin& origin, std::string_view message) {
  return make_error(ec::invalid_configuration, to_string(origin) + ": " + std::string{message});
}

/// Appends the values below `node`, whose own name is `prefix`. Depth is bounded by max_yaml_depth.
void flatten(const std::string& prefix, const yaml_node& node, std::vector<flat_entry>& out) {
  if (!node.is_map() || node.children.empty()) {
    out.push_back({prefix, &node});
    return;
  }
  for (const auto& child : node.children) flatten(prefix + "." + child.key, child, out);
}

bool belongs_to(std::string_view key, std::string_view section) {
  return key.starts_with(section) && (key.size() == section.size() || key[section.size()] == '.');
}

/// All values of one section, in the file's order; equal keys in different spellings are an error.
result<std::vector<flat_entry>> section_entries(const yaml_document& document, std::string_view section) {
  std::vector<flat_entry> out;
  for (const auto& child : document.root.children) {
    if (!belongs_to(child.key, section)) continue;
    if (child.key == section) {
      // A section whose lines are all commented out reads as null.
      if (child.is_null() || (child.is_map() && child.children.empty())) continue;
      if (!child.is_map())
        return yaml_error(document.file, child.line, std::string{section} + " must be a map of keys to values");
    }
    flatten(child.key, child, out);
  }
  std::map<std::string_view, int> lines;
  for (const auto& [name, node] : out) {
    const auto [first, fresh] = lines.emplace(name, node->key_line);
    if (!fresh)
      return yaml_error(document.file, node->key_line,
                        name + " is given twice; the first one is in line " + std::to_string(first->second));
  }
  return out;
}

/// An empty map sets nothing, which is right for a group of keys and wrong for a key or a typo.
result<void> check_empty_map(const std::string& name) {
  for (const auto& entry : schema()) {
    if (entry.name.starts_with(name + ".")) return {};
  }
  if (const auto match = find_key(name); !match)
    return make_error(match.error().code, name + ": " + match.error().message);
  return make_error(ec::invalid_configuration, name + " has no value");
}

result<void> check_bind_address(const settings& s, key<std::string> which) {
  const auto& address = s.get(which);
  const auto complain = [&](std::string_view text) {
    return fault(s.origin_of(which.name), std::string{which.name} + " = " + address + ": " + std::string{text});
  };
  if (!is_host(address)) return complain("must be an address or a host name");
  if (!is_loopback(address) && !s.get(keys::security_insecure))
    return complain("is not a loopback address, and the traffic is not encrypted; use 127.0.0.1, or set "
                    "troupe.security.insecure = true if everybody on that network may be trusted");
  return {};
}

} // namespace

result<void> check_root(const yaml_document& document, std::initializer_list<std::string_view> fields) {
  for (const auto& child : document.root.children) {
    bool known = belongs_to(child.key, "troupe") || belongs_to(child.key, "caf");
    for (const auto field : fields) known = known || child.key == field;
    if (known) continue;
    std::vector<std::string> valid(fields.begin(), fields.end());
    valid.insert(valid.end(), {"troupe", "caf"});
    return yaml_error(document.file, child.key_line,
                      "the file has no field `" + child.key + "`" + spelling_hint(child.key, valid));
  }
  return {};
}

settings_builder::settings_builder(std::string working_directory, path_expansion expand)
  : working_directory_(std::move(working_directory)), expand_(std::move(expand)) {}

path_expansion expand_as_written() {
  return [](std::string_view path) { return expand_path(path); };
}

path_expansion expand_nothing() {
  return [](std::string_view path) -> result<std::string> { return std::string{path}; };
}

result<void> settings_builder::put(std::string_view name, std::string_view text, setting_origin origin,
                                   std::string_view directory) {
  auto match = find_key(name);
  if (!match) return fault(origin, show_value(name) + " = " + show_value(text) + ": " + match.error().message);
  auto value = parse_setting(*match->entry, text);
  if (!value) return fault(origin, std::string{name} + " = " + show_value(text) + ": " + value.error().message);
  const auto find_path = [&](std::string& path) -> result<void> {
    auto expanded = expand_(path);
    if (!expanded) return fault(origin, std::string{name} + " = " + show_value(text) + ": " + expanded.error().message);
    path = plain_path(std::filesystem::path{directory} / *expanded);
    return {};
  };
  if (match->entry->type == setting_type::path && !text.empty())
    if (auto found = find_path(std::get<std::string>(*value)); !found) return found;
  if (match->entry->type == setting_type::paths)
    for (auto& path : std::get<std::vector<std::string>>(*value))
      if (auto found = find_path(path); !found) return found;
  const auto kept = settings_.values_.find(name);
  if (kept != settings_.values_.end() && kept->second.origin.kind > origin.kind) return {};
  settings_.values_.insert_or_assign(std::string{name}, settings::stored{match->entry, std::move(match->member),
                                                                         std::move(*value), std::move(origin)});
  return {};
}

result<void> settings_builder::put_node(const std::string& name, const yaml_node& node, std::string_view file,
                                        std::string_view directory) {
  const auto complain = [&](const std::string& text) { return yaml_error(file, node.key_line, text); };
  const setting_origin origin{origin_kind::file, std::string{file} + ":" + std::to_string(node.key_line)};
  if (node.is_text()) return put(name, node.text, origin, directory);
  if (node.is_map()) {
    if (auto checked = check_empty_map(name); !checked) return complain(checked.error().message);
    return {};
  }
  const auto match = find_key(name);
  if (!match) return complain(name + ": " + match.error().message);
  if (node.is_null()) return complain(name + " has no value; it must be " + describe_values(*match->entry));
  if (match->entry->type != setting_type::list && match->entry->type != setting_type::paths)
    return complain(name + " is a list; it must be " + describe_values(*match->entry));
  std::string text;
  for (const auto& element : node.children) {
    if (!element.is_text() || element.text.find(',') != std::string::npos)
      return yaml_error(file, element.line, name + ": an element must be a text without a comma");
    if (element.text.empty()) return yaml_error(file, element.line, name + ": an element is empty");
    if (!text.empty()) text += ',';
    text += element.text;
  }
  return put(name, text, origin, directory);
}

result<void> settings_builder::add_file(const yaml_document& document) {
  const auto path = std::filesystem::path{working_directory_} / document.file;
  const auto directory = path.parent_path().string();
  const auto entries = section_entries(document, "troupe");
  if (!entries) return entries.error();
  for (const auto& [name, node] : *entries) {
    if (auto taken = put_node(name, *node, document.file, directory); !taken) return taken.error();
  }
  const auto caf = section_entries(document, "caf");
  if (!caf) return caf.error();
  for (const auto& [name, node] : *caf) {
    if (!node->is_text()) return yaml_error(document.file, node->key_line, name + " must have one text as its value");
    settings_.caf_[name.substr(std::string_view{"caf."}.size())] = {
        node->text, {origin_kind::file, document.file + ":" + std::to_string(node->key_line)}};
  }
  return {};
}

result<void> settings_builder::add_environment(const char* const* environment) {
  for (; *environment; ++environment) {
    const std::string_view line{*environment};
    if (!line.starts_with(environment_prefix)) continue;
    const auto variable = line.substr(0, line.find('='));
    const setting_origin origin{origin_kind::environment, std::string{variable}};
    const auto name = key_of_environment(variable);
    if (!name) return name.error();
    const auto text = variable.size() < line.size() ? line.substr(variable.size() + 1) : std::string_view{};
    if (auto taken = put(*name, text, origin, working_directory_); !taken) return taken.error();
  }
  return {};
}

result<void> settings_builder::add_default(std::string_view assignment) {
  return add_assignment(assignment, {origin_kind::default_value, "the program"});
}

result<void> settings_builder::add_argument(std::string_view assignment) {
  return add_assignment(assignment, {origin_kind::argument, {}});
}

result<void> settings_builder::add_assignment(std::string_view assignment, const setting_origin& origin) {
  const auto equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0)
    return fault(origin, "`" + std::string{assignment} + "` must be key=value");
  return put(assignment.substr(0, equals), assignment.substr(equals + 1), origin, working_directory_);
}

result<settings> settings_builder::build() const {
  const auto& s = settings_;
  const auto& master_text = s.get(keys::master);
  if (const auto m = parse_master(master_text); !m)
    return fault(s.origin_of(keys::master.name), "troupe.master = " + master_text + ": " + m.error().message);
  for (const auto& which : {keys::driver_bind_address, keys::executor_bind_address}) {
    if (auto checked = check_bind_address(s, which); !checked) return checked.error();
  }
  const auto interval = s.get(keys::executor_heartbeat_interval);
  const auto timeout = s.get(keys::executor_heartbeat_timeout);
  // One late heartbeat is neither a loss nor a pause.
  if (timeout < 3 * interval) {
    const auto& interval_origin = s.origin_of(keys::executor_heartbeat_interval.name);
    const auto& timeout_origin = s.origin_of(keys::executor_heartbeat_timeout.name);
    return fault(timeout_origin.kind == origin_kind::default_value ? interval_origin : timeout_origin,
                 "troupe.executor.heartbeat-timeout = " + time_to_string(timeout) +
                     ": must be at least three times troupe.executor.heartbeat-interval = " + time_to_string(interval));
  }
  if (auto profile = default_profile(s, rules_of(s, master_kind::local)); !profile) return profile.error();
  return s;
}

} // namespace troupe
