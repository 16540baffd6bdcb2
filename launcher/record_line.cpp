#include <troupe/launcher/record_line.hpp>

#include <ctime>

#include <nlohmann/json.hpp>

#include <troupe/runtime/scheduling/command_arguments.hpp>

namespace troupe {
namespace {

/// How deep the lines of a record are nested.
constexpr int deepest = 4;
constexpr const char* time_format = "%Y-%m-%dT%H:%M:%SZ";

std::string text_in(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

} // namespace

std::string time_text(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts{};
  char text[32] = "";
  if (::gmtime_r(&time, &parts) != nullptr) std::strftime(text, sizeof text, time_format, &parts);
  return text;
}

std::int64_t seconds_of(const std::string& text) {
  std::tm parts{};
  const char* const end = ::strptime(text.c_str(), time_format, &parts);
  return end != nullptr && *end == '\0' ? std::int64_t{::timegm(&parts)} : 0;
}

std::optional<recorded_line> parse_line(const std::string& text) {
  const auto shallow = [](int depth, nlohmann::json::parse_event_t, nlohmann::json&) { return depth <= deepest; };
  const auto line = nlohmann::json::parse(text, shallow, false);
  if (!line.is_object()) return {};
  recorded_line out{text_in(line, "run"), text_in(line, "job"), text_in(line, "file"), text_in(line, "ended"), {}};
  if (out.run.empty()) return {};
  if (const auto outputs = line.find("outputs"); outputs != line.end() && outputs->is_array()) {
    out.outputs.emplace();
    for (const auto& name : *outputs)
      if (name.is_string() && is_output_name(name.get_ref<const std::string&>())) out.outputs->push_back(name);
  }
  return out;
}

} // namespace troupe
