#include <troupe/runtime/config/settings.hpp>

#include <algorithm>
#include <stdexcept>

namespace troupe {
namespace {

/// Single quotes take every one-line text as it is.
std::string in_quotes(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out.append(c == '\'' ? 2 : 1, c);
  return out + "'";
}

} // namespace

std::string to_string(const setting_origin& origin) {
  switch (origin.kind) {
  case origin_kind::default_value: return "default";
  case origin_kind::file: return origin.place;
  case origin_kind::environment: return "environment variable " + origin.place;
  case origin_kind::argument: return "--conf";
  }
  return {};
}

settings::settings() {
  for (const auto& entry : schema()) {
    if (entry.is_family()) continue;
    auto value = parse_setting(entry, entry.default_text);
    if (!value) throw std::logic_error("the default of " + std::string{entry.name} + " " + value.error().message);
    values_.emplace(entry.name, stored{&entry, {}, std::move(*value), {}});
  }
}

const setting_value& settings::value_of(std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) throw std::logic_error("there is no setting " + std::string{name});
  return found->second.value;
}

std::vector<std::pair<std::string, const setting_value*>> settings::members_of(std::string_view family) const {
  std::vector<std::pair<std::string, const setting_value*>> out;
  for (const auto& [name, kept] : values_) {
    if (kept.entry->name == family) out.emplace_back(kept.member, &kept.value);
  }
  return out;
}

setting_origin settings::origin_of(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? setting_origin{} : found->second.origin;
}

std::vector<explained_setting> settings::explain() const {
  std::vector<explained_setting> out;
  for (const auto& [name, kept] : values_) out.push_back({name, to_text(*kept.entry, kept.value), kept.origin});
  for (const auto& [name, set] : caf_) out.push_back({"caf." + name, set.text, set.origin});
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return out;
}

std::string settings::to_yaml() const {
  std::string out = "troupe: {}\n";
  for (const auto& line : explain()) {
    if (line.origin != setting_origin{}) out += line.name + ": " + in_quotes(line.value) + "\n";
  }
  return out;
}

} // namespace troupe
