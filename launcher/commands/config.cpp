#include <iostream>

#include <troupe/launcher/commands/commands.hpp>
#include <troupe/launcher/commands/json_output.hpp>
#include <troupe/launcher/text_table.hpp>
#include <troupe/messages/caf_compat.hpp>
#include <troupe/messages/session.hpp>

namespace troupe::commands {

int version(bool json) {
  const auto caf = caf_version();
  if (json)
    print_json({{"troupe", TROUPE_VERSION}, {"protocol", protocol_version}, {"caf", caf}});
  else
    std::cout << "troupe " << TROUPE_VERSION << " (protocol " << protocol_version << ", CAF " << caf << ")\n";
  return 0;
}

int config_show(const setting_flags& flags, bool json) {
  const auto loaded = load_settings(flags.source());
  if (!loaded) return complain(loaded.error(), json);
  // Any of Troupe's files may be shown, so that its settings can be checked before it is used.
  for (const auto& document : loaded->documents)
    if (auto good = check_root(document, {"node", "cluster", "profiles"}); !good) return complain(good.error(), json);
  const auto all = loaded->effective.explain();
  if (json) {
    auto out = nlohmann::ordered_json::array();
    for (const auto& s : all) out.push_back({{"key", s.name}, {"value", s.value}, {"origin", to_string(s.origin)}});
    print_json(out);
    return 0;
  }
  text_table table{{{"KEY"}, {"VALUE"}, {"ORIGIN"}}};
  for (const auto& s : all) table.add({s.name, printable(s.value), to_string(s.origin)});
  std::cout << table.text();
  return 0;
}

} // namespace troupe::commands
