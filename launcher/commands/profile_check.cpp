#include <filesystem>
#include <iostream>

#include <troupe/launcher/commands/commands.hpp>
#include <troupe/launcher/commands/json_output.hpp>
#include <troupe/launcher/text_table.hpp>
#include <troupe/runtime/config/profile_settings.hpp>
#include <troupe/runtime/config/profile_yaml.hpp>
#include <troupe/runtime/resources/escalation.hpp>
#include <troupe/runtime/resources/exact_rules.hpp>
#include <troupe/runtime/resources/profile_notes.hpp>
#include <troupe/runtime/resources/profile_registry.hpp>

namespace troupe::commands {
namespace {

/// One choice of a profile.
struct checked_choice {
  resource_profile content; ///< complete
  slot_count slots;
  std::vector<std::string> idle_texts;
  std::vector<idle_amount> idle; ///< not under `exact`, which has texts of its own
  std::vector<std::string> suspicions;
  std::vector<std::string> retries; ///< memory of its tasks each time they are tried again for want of it
  std::string advice;               ///< what to change so that less stays idle; "" when nothing does
};

struct checked_profile {
  std::string name;
  checked_choice first;
  std::vector<checked_choice> alternatives;
};

/// What would let the idle amounts work.
std::string advise(const checked_choice& p) {
  if (p.idle.empty()) return {};
  std::string resources;
  for (const auto& i : p.idle) resources += (resources.empty() ? "" : " and ") + i.resource;
  const auto& limit = p.slots.limiting_resource;
  const auto slots = std::to_string(p.slots.slots) + (p.slots.slots == 1 ? " slot" : " slots");
  if (limit == max_tasks_name)
    return "the profile's own " + limit + " allows " + slots + ": let the executor have less of " + resources +
           ", or raise it";
  return "one task's " + limit + " " + task_amount_to_string(p.content, limit) + " allows " + slots +
         ": let the executor have less of " + resources + ", or the task take more of it, or less of " + limit;
}

checked_choice look_at(const profile_registration& registered, const profile_registry& registry,
                       const profile_rules& rules) {
  const auto& profile = *registry.find(registered.profile);
  checked_choice out;
  out.content = profile.content;
  for (const auto& more : registered.escalations)
    out.retries.push_back(memory_to_string(escalating_memory(more.content)));
  out.suspicions = suspicions_about(profile.written);
  for (auto& note : unused_scripts_of(profile.written, registry.find(default_profile_id)->content))
    out.suspicions.push_back(std::move(note));
  if (rules.is_exact()) {
    const auto limit = exact::limit_of(profile.content, rules);
    out.slots = {limit.tasks, limit.limiting_resource.empty() ? "nothing" : limit.limiting_resource};
    out.idle_texts = exact::waste_of(profile.content, limit);
    if (!limit.cores_known)
      out.suspicions.push_back("how many cores an executor has is not known before it runs (troupe.executor.cores is "
                               "not set): it may have fewer slots");
  } else {
    out.slots = profile.slots;
    out.idle = profile.idle;
    for (const auto& i : out.idle) out.idle_texts.push_back(to_string(i) + " while every slot runs a task");
    out.advice = advise(out);
  }
  return out;
}

/// What the profile manager of a session would say.
result<checked_profile> check(const named_profile& named, profile_registry& registry, const profile_rules& rules) {
  const auto registered = registry.register_profile(named.content);
  if (!registered)
    return make_error(registered.error().code, "profile " + named.name + ": " + registered.error().message);
  checked_profile out{named.name, look_at(*registered, registry, rules), {}};
  for (const auto& other : registered->alternatives) out.alternatives.push_back(look_at(other, registry, rules));
  return out;
}

nlohmann::ordered_json report_of(const checked_choice& p) {
  nlohmann::ordered_json out = {
      {"content", to_string(p.content)}, {"slots", p.slots.slots}, {"limited-by", p.slots.limiting_resource}};
  out["idle"] = nlohmann::ordered_json::array();
  for (const auto& i : p.idle)
    out["idle"].push_back({{"resource", i.resource}, {"total", to_string(i, i.total)}, {"idle", to_string(i, i.idle)}});
  out["retried-with"] = p.retries;
  out["warnings"] = p.suspicions;
  if (p.idle.empty())
    for (const auto& text : p.idle_texts) out["warnings"].push_back(text);
  if (!p.advice.empty()) out["advice"] = p.advice;
  return out;
}

nlohmann::ordered_json report_of(const checked_profile& p) {
  nlohmann::ordered_json out = {{"profile", p.name}};
  out.update(report_of(p.first));
  out["alternatives"] = nlohmann::ordered_json::array();
  for (const auto& other : p.alternatives) out["alternatives"].push_back(report_of(other));
  return out;
}

void print(const std::string& name, const checked_choice& p, const std::string& indent) {
  std::cout << indent << name << printable(to_string(p.content)) << '\n';
  const auto line = [&](const std::string& text) { std::cout << indent << "  " << printable(text) << '\n'; };
  line(std::to_string(p.slots.slots) + (p.slots.slots == 1 ? " slot" : " slots") + " per executor, limited by " +
       p.slots.limiting_resource);
  for (const auto& text : p.idle_texts) line(text);
  if (!p.retries.empty()) {
    std::string sizes;
    for (const auto& size : p.retries) sizes += (sizes.empty() ? "" : ", then ") + size;
    line("a task that runs out of memory is tried again with " + sizes);
  }
  for (const auto& text : p.suspicions) line("warning: " + text);
  if (!p.advice.empty()) line("advice: " + p.advice);
}

void print(const checked_profile& p) {
  print(printable(p.name) + ": ", p.first, "");
  for (const auto& other : p.alternatives) print("else ", other, "  ");
}

} // namespace

int profile_check(const setting_flags& flags, const std::string& file, bool json) {
  auto source = flags.source();
  source.files.insert(source.files.begin(), file); // a cluster file may say what its default profile is
  const auto loaded = load_settings(source);
  if (!loaded) return complain(loaded.error(), json);
  const bool of_cluster = loaded->documents.front().root.find("cluster") != nullptr;
  const auto rules =
      rules_of(loaded->effective, of_cluster ? master_kind::local_cluster : master_kind_of(loaded->effective));
  const auto defaults = default_profile(loaded->effective, rules);
  if (!defaults) return complain(defaults.error(), json);
  profile_registry registry{*defaults, rules, overhead_rule_of(loaded->effective)};
  std::error_code unknown;
  const auto directory = std::filesystem::absolute(file, unknown).parent_path().string();
  const auto profiles = read_profiles(loaded->documents.front(), directory);
  if (!profiles) return complain(profiles.error(), json);
  if (profiles->empty())
    return complain(make_error(ec::invalid_configuration, file + ": the file has no `profiles`"), json);
  auto all = nlohmann::ordered_json::array();
  for (const auto& named : *profiles) {
    const auto checked = check(named, registry, rules);
    if (!checked) return complain(checked.error(), json);
    if (json)
      all.push_back(report_of(*checked));
    else
      print(*checked);
  }
  if (json) print_json(all);
  return 0;
}

} // namespace troupe::commands
