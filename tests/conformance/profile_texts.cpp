#include <troupe/tests/conformance/profile_texts.hpp>

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include <troupe/runtime/api/resource_profile_builder.hpp>

namespace troupe::conformance {
namespace {

std::string_view without_blanks(std::string_view text) {
  const auto begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

std::int64_t number(const std::string& text) {
  std::int64_t n = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (status != std::errc{} || end != text.data() + text.size()) throw std::logic_error("no number: " + text);
  return n;
}

executor_resource_requests executor_half(std::string_view text) {
  executor_resource_requests all;
  for (const auto& clause : parts_of(text, ',')) {
    auto words = parts_of(clause, ' ');
    words.resize(4);
    const bool is_size = words[0] != resource_names::cores && is_builtin_executor_resource(words[0]);
    if (is_size || words[1].find_first_not_of("-0123456789") != std::string::npos)
      all.resource(words[0], std::string_view{words[1]}, words[2], words[3]);
    else
      all.resource(words[0], number(words[1]), words[2], words[3]); // below zero too, which no text says
  }
  return all;
}

task_resource_requests task_half(std::string_view text) {
  task_resource_requests all;
  for (const auto& clause : parts_of(text, ',')) {
    const auto words = parts_of(clause, ' ');
    all.resource(words.at(0), std::string_view{words.at(1)});
  }
  return all;
}

} // namespace

std::vector<std::string> parts_of(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!without_blanks(text).empty()) {
    const auto end = std::min(text.find(separator), text.size());
    if (const auto part = without_blanks(text.substr(0, end)); !part.empty()) parts.emplace_back(part);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

result<resource_profile> built(std::string_view text) {
  const auto border = text.find(';');
  if (border == std::string_view::npos) throw std::logic_error("a profile has two halves: " + std::string{text});
  return resource_profile_builder{}
      .require(executor_half(text.substr(0, border)))
      .require(task_half(text.substr(border + 1)))
      .try_build();
}

resource_profile profile_of(std::string_view text) {
  auto profile = built(text);
  if (!profile) throw std::invalid_argument(profile.error().message);
  return *std::move(profile);
}

executor_capacity capacity_of(std::string_view text) {
  auto capacity = troupe::capacity_of(profile_of(std::string{text} + ";"));
  capacity.memory = std::int64_t{64} << 30;
  for (auto& [name, pool] : capacity.custom)
    for (std::int64_t i = 0; i < pool.amount; ++i) pool.addresses.push_back(std::to_string(i));
  return capacity;
}

profile_registry registry_with(std::string_view text, const profile_rules& rules) {
  const bool whole_host = rules.is_exact() && rules.master == master_kind::local_cluster && !rules.cores_configured;
  const auto rest = profile_of(whole_host ? "memory 1g; cpus 1" : "cores 1, memory 1g; cpus 1");
  return profile_registry{complete(profile_of(text), rest), rules};
}

result<profile_registration> merge_all(profile_registry& registry, const std::vector<profile_id>& profiles) {
  std::vector<profile_use> uses;
  for (const auto id : profiles) {
    profile_use one;
    one.profile.profile = id;
    one.dataset = "dataset " + std::to_string(uses.size());
    uses.push_back(std::move(one));
  }
  return registry.profile_of_stage(uses, profile_change::merge);
}

std::string to_text(const std::optional<allotment>& holding) {
  if (!holding) return "does not fit";
  std::string text;
  for (const auto& [name, shares] : holding->resources)
    for (const auto& each : shares)
      text += (text.empty() ? "" : ", ") + name + " " + each.address + ":" + to_string(each.amount);
  return text.empty() ? "nothing" : text;
}

} // namespace troupe::conformance
