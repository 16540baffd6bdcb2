#include <filesystem>
#include <iostream>

#include <troupe/launcher/commands/commands.hpp>
#include <troupe/launcher/commands/json_output.hpp>
#include <troupe/launcher/text_table.hpp>
#include <troupe/runtime/config/profile_settings.hpp>
#include <troupe/runtime/config/profile_yaml.hpp>
#include <troupe/runtime/resources/capacity.hpp>
#include <troupe/runtime/resources/profile_notes.hpp>

namespace troupe::commands {
namespace {

struct checked_profile {
  std::string name;
  resource_profile content; ///< complete
  slot_count slots;
  std::vector<idle_amount> idle;
  std::vector<std::string> suspicions;
  std::string advice; ///< what to change so that less stays idle; "" when nothing does
};

/// What would let the idle amounts work.
std::string advise(const checked_profile& p) {
  if (p.idle.empty()) return {};
  std::string resources;
  for (const auto& i : p.idle) resources += (resources.empty() ? "" : " and ") + i.resource;
  const auto& limit = p.slots.limiting_resource;
  return "one task's " + limit + " " + task_amount_to_string(p.content, limit) + " allows " +
         std::to_string(p.slots.slots) + (p.slots.slots == 1 ? " slot" : " slots") +
         ": let the executor have less of " + resources + ", or the task take more of it, or less of " + limit;
}

result<checked_profile> check(const named_profile& named, const resource_profile& defaults,
                              const overhead_rule& overhead) {
  checked_profile out;
  out.name = named.name;
  out.content = complete(named.content, defaults, overhead);
  if (auto good = validate(out.content); !good)
    return make_error(good.error().code, "profile " + named.name +
                                             ", with what it takes from the default profile: " + good.error().message);
  out.slots = slots_of(out.content);
  out.idle = idle_amounts_of(out.content);
  out.suspicions = suspicions_about(named.content);
  out.advice = advise(out);
  return out;
}

nlohmann::ordered_json report_of(const checked_profile& p) {
  nlohmann::ordered_json out = {{"profile", p.name},
                                {"content", to_string(p.content)},
                                {"slots", p.slots.slots},
                                {"limited-by", p.slots.limiting_resource}};
  out["idle"] = nlohmann::ordered_json::array();
  for (const auto& i : p.idle)
    out["idle"].push_back({{"resource", i.resource}, {"total", to_string(i, i.total)}, {"idle", to_string(i, i.idle)}});
  out["warnings"] = p.suspicions;
  if (!p.advice.empty()) out["advice"] = p.advice;
  return out;
}

void print(const checked_profile& p) {
  std::cout << printable(p.name) << ": " << printable(to_string(p.content)) << "\n  " << p.slots.slots
            << (p.slots.slots == 1 ? " slot" : " slots") << " per executor, limited by " << p.slots.limiting_resource
            << '\n';
  for (const auto& i : p.idle) std::cout << "  " << to_string(i) << " while every slot runs a task\n";
  for (const auto& s : p.suspicions) std::cout << "  warning: " << printable(s) << '\n';
  if (!p.advice.empty()) std::cout << "  advice: " << p.advice << '\n';
}

} // namespace

int profile_check(const setting_flags& flags, const std::string& file, bool json) {
  auto source = flags.source();
  source.files.insert(source.files.begin(), file); // a cluster file may say what its default profile is
  const auto loaded = load_settings(source);
  if (!loaded) return complain(loaded.error());
  const auto defaults = default_profile(loaded->effective);
  if (!defaults) return complain(defaults.error());
  std::error_code unknown;
  const auto directory = std::filesystem::absolute(file, unknown).parent_path().string();
  const auto profiles = read_profiles(loaded->documents.front(), directory);
  if (!profiles) return complain(profiles.error());
  if (profiles->empty()) return complain(make_error(ec::invalid_configuration, file + ": the file has no `profiles`"));
  auto all = nlohmann::ordered_json::array();
  for (const auto& named : *profiles) {
    const auto checked = check(named, *defaults, overhead_rule_of(loaded->effective));
    if (!checked) return complain(checked.error());
    if (json)
      all.push_back(report_of(*checked));
    else
      print(*checked);
  }
  if (json) print_json(all);
  return 0;
}

} // namespace troupe::commands
