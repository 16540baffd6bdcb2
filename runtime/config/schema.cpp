#include <troupe/runtime/config/schema.hpp>

#include <algorithm>
#include <cctype>
#include <stdexcept>

#include <troupe/runtime/config/amount_text.hpp>
#include <troupe/runtime/config/keys.hpp>
#include <troupe/runtime/resources/amount.hpp>
#include <troupe/runtime/resources/quote.hpp>
#include <troupe/runtime/spelling.hpp>

namespace troupe {
namespace {

constexpr std::size_t longest_shown_value = 1024;

struct split_family {
  std::string_view head;
  std::string_view tail;
};
/// `troupe.a.<name>.b` to `troupe.a.` and `.b`.
split_family split(std::string_view family_name) {
  const auto open = family_name.find('<');
  const auto close = family_name.find('>');
  return {family_name.substr(0, open), family_name.substr(close + 1)};
}

bool is_member_name(std::string_view name) {
  if (name.empty() || name.size() > 64) return false;
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_'; });
}

/// The part of `name` that stands for `<…>`, "" where the name is not of this form.
std::string member_of(std::string_view family_name, std::string_view name) {
  const auto [head, tail] = split(family_name);
  if (name.size() <= head.size() + tail.size() || !name.starts_with(head) || !name.ends_with(tail)) return {};
  const auto member = name.substr(head.size(), name.size() - head.size() - tail.size());
  return is_member_name(member) ? std::string{member} : std::string{};
}

/// Names to suggest from: every key, and every family with the member that the user wrote.
std::vector<std::string> suggestions_for(std::string_view name) {
  std::vector<std::string> out;
  for (const auto& entry : schema()) {
    if (!entry.is_family()) {
      out.emplace_back(entry.name);
      continue;
    }
    const auto [head, tail] = split(entry.name);
    if (!entry.members.empty()) {
      for (const auto& member : split_choices(entry.members))
        out.push_back(std::string{head} + member + std::string{tail});
      continue;
    }
    // The member is the part at the family's own position, whatever the parts around it look like.
    const auto depth = std::count(head.begin(), head.end(), '.');
    std::size_t begin = 0;
    for (std::ptrdiff_t i = 0; i < depth && begin != std::string_view::npos; ++i) {
      const auto dot = name.find('.', begin);
      begin = dot == std::string_view::npos ? dot : dot + 1;
    }
    if (begin == std::string_view::npos) continue;
    const auto member = name.substr(begin, name.find('.', begin) - begin);
    if (is_member_name(member)) out.push_back(std::string{head} + std::string{member} + std::string{tail});
  }
  return out;
}

std::string limit_text(const setting_schema& entry, std::int64_t limit) {
  switch (entry.type) {
  case setting_type::memory: return limit == 0 ? "0" : memory_to_string(limit);
  case setting_type::time:
  case setting_type::time_or_never: return limit == 0 ? "0" : time_to_string(duration{limit});
  default: return std::to_string(limit);
  }
}

error bad_value(const setting_schema& entry) {
  return make_error(ec::invalid_configuration, "must be " + describe_values(entry));
}

} // namespace

std::string_view to_string(setting_type type) noexcept {
  switch (type) {
  case setting_type::flag: return "flag";
  case setting_type::count: return "count";
  case setting_type::memory: return "memory";
  case setting_type::time: return "time";
  case setting_type::time_or_never: return "time";
  case setting_type::share: return "share";
  case setting_type::count_or_size: return "count or size";
  case setting_type::share_or_size: return "share or size";
  case setting_type::text: return "text";
  case setting_type::choice: return "choice";
  case setting_type::path: return "path";
  case setting_type::paths: return "paths";
  case setting_type::list: return "list";
  }
  return "unknown";
}

std::string_view to_string(setting_reader reader) noexcept {
  switch (reader) {
  case setting_reader::driver: return "driver";
  case setting_reader::executor: return "executor";
  case setting_reader::client: return "client";
  case setting_reader::all: return "all";
  }
  return "unknown";
}

const setting_schema& schema_entry(std::string_view name) {
  for (const auto& entry : schema()) {
    if (entry.name == name) return entry;
  }
  throw std::logic_error("the schema has no entry " + std::string{name});
}

result<schema_match> find_key(std::string_view name) {
  for (const auto& entry : schema()) {
    if (!entry.is_family()) {
      if (entry.name == name) return schema_match{&entry, {}};
      continue;
    }
    auto member = member_of(entry.name, name);
    if (member.empty()) continue;
    const auto allowed = split_choices(entry.members);
    if (allowed.empty() || std::find(allowed.begin(), allowed.end(), member) != allowed.end())
      return schema_match{&entry, std::move(member)};
  }
  // The whole list of keys would bury the message, so only a near one is named.
  constexpr std::string_view common = "troupe.";
  auto nearest = nearest_name(name, suggestions_for(name));
  if (nearest.empty() && !name.starts_with(common)) {
    // All keys begin alike, which is easily forgotten.
    auto shorter = suggestions_for(std::string{common} + std::string{name});
    for (auto& candidate : shorter) candidate.erase(0, common.size());
    if (const auto found = nearest_name(name, shorter); !found.empty()) nearest = std::string{common} + found;
  }
  return make_error(ec::invalid_configuration,
                    "there is no such key" + (nearest.empty() ? "; `troupe config show` lists all keys"
                                                              : "; did you mean " + nearest + "?"));
}

result<setting_value> parse_setting(const setting_schema& entry, std::string_view text) {
  const auto within = [&](std::int64_t value) { return value >= entry.least && value <= entry.most; };
  switch (entry.type) {
  case setting_type::flag:
    if (text == "true") return setting_value{true};
    if (text == "false") return setting_value{false};
    return bad_value(entry);
  case setting_type::count:
    if (const auto n = parse_count(text); n && within(*n)) return setting_value{*n};
    return bad_value(entry);
  case setting_type::memory:
    if (const auto n = parse_memory(text); n && within(*n)) {
      const auto fault =
          entry.name == keys::executor_memory.name ? fault_of_memory_without_unit(text, *n) : std::string{};
      return fault.empty() ? result<setting_value>{setting_value{*n}}
                           : make_error(ec::invalid_configuration, "is " + fault);
    }
    return bad_value(entry);
  case setting_type::time_or_never:
    if (text == "never") return setting_value{never};
    [[fallthrough]];
  case setting_type::time:
    if (const auto t = parse_time(text); t && within(t->count())) return setting_value{*t};
    return bad_value(entry);
  case setting_type::share:
    if (entry.least == 0 && text == "0") return setting_value{share{}};
    if (const auto s = parse_share(text); s && (entry.most == INT64_MAX || *s <= share::whole(entry.most)))
      return setting_value{*s};
    return bad_value(entry);
  case setting_type::count_or_size:
    if (const auto a = parse_resource_amount(text); a && (a->counted || within(a->amount))) return setting_value{*a};
    return bad_value(entry);
  case setting_type::share_or_size:
    if (text == "0") return setting_value{share{}};
    if (const auto s = parse_task_amount(text)) return setting_value{*s};
    return bad_value(entry);
  case setting_type::choice: {
    const auto choices = split_choices(entry.choices);
    if (std::find(choices.begin(), choices.end(), text) != choices.end()) return setting_value{std::string{text}};
    return bad_value(entry);
  }
  case setting_type::list:
    if (auto list = parse_list(text); list && !list->empty()) return setting_value{std::move(*list)};
    return bad_value(entry);
  case setting_type::paths:
    if (text.empty()) return setting_value{std::vector<std::string>{}};
    if (auto list = parse_list(text); list && !list->empty() && text.find('\n') == std::string_view::npos)
      return setting_value{std::move(*list)};
    return bad_value(entry);
  case setting_type::text:
  case setting_type::path:
    // What has a default cannot be emptied; what has none is switched off by an empty text.
    if (text.empty() && (!entry.default_text.empty() || entry.is_family())) return bad_value(entry);
    if (text.find('\n') != std::string_view::npos) return bad_value(entry);
    return setting_value{std::string{text}};
  }
  return bad_value(entry);
}

std::string show_value(std::string_view text) {
  const auto is_plain = [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; };
  const bool plain = !text.empty() && text.front() != ' ' && text.back() != ' ' &&
                     std::all_of(text.begin(), text.end(), is_plain) && text.size() <= longest_shown_value;
  return plain ? std::string{text} : detail::quote(text);
}

std::string describe_values(const setting_schema& entry) {
  const auto least = limit_text(entry, entry.least);
  switch (entry.type) {
  case setting_type::flag: return "true or false";
  case setting_type::count:
    return "a whole number from " + least + " to " + limit_text(entry, entry.most) + ", without leading zeros";
  case setting_type::memory:
    return "a memory size such as 512m or 2g" + (entry.least > 0 ? ", at least " + least : std::string{}) +
           ", at most " + limit_text(entry, entry.most);
  case setting_type::time:
  case setting_type::time_or_never:
    return "a time such as 500ms, 10s or 5min, " + (entry.least > 0 ? "from " + least : std::string{"0"}) + " to " +
           limit_text(entry, entry.most) + (entry.type == setting_type::time ? "" : ", or never");
  case setting_type::share:
    return "an amount " + std::string{entry.least > 0 ? "above 0 such as 2" : "such as 0"} +
           ", 0.5 or 1/3, of at most 12 digits after the point" +
           (entry.most < INT64_MAX ? ", at most " + std::to_string(entry.most) : std::string{});
  case setting_type::count_or_size:
    return "a whole number up to " + limit_text(entry, entry.most) +
           " without leading zeros, or a size such as 40g; only tasks support fractional resources";
  case setting_type::share_or_size:
    return "an amount such as 2, 0.5 or 1/3, of at most 12 digits after the point, or a size such as 10g";
  case setting_type::choice: return "one of " + join(split_choices(entry.choices));
  case setting_type::list: return "a list of texts, such as 0,1";
  case setting_type::text: return "a text of one line";
  case setting_type::path: return "a path, in which ~, $NAME and ${NAME} are expanded";
  case setting_type::paths: return "paths with commas between, in which ~, $NAME and ${NAME} are expanded";
  }
  return {};
}

std::string to_text(const setting_schema& entry, const setting_value& value) {
  switch (entry.type) {
  case setting_type::flag: return std::get<bool>(value) ? "true" : "false";
  case setting_type::count: return std::to_string(std::get<std::int64_t>(value));
  case setting_type::memory: return limit_text(entry, std::get<std::int64_t>(value));
  case setting_type::time:
  case setting_type::time_or_never: {
    const auto time = std::get<duration>(value);
    return time == never ? "never" : time_to_string(time);
  }
  case setting_type::share:
  case setting_type::share_or_size: return to_string(std::get<share>(value));
  case setting_type::count_or_size: {
    const auto& amount = std::get<resource_amount>(value);
    return amount_to_string(amount.amount, amount.counted);
  }
  case setting_type::paths:
  case setting_type::list: return join(std::get<std::vector<std::string>>(value), ",");
  case setting_type::text:
  case setting_type::choice:
  case setting_type::path: return std::get<std::string>(value);
  }
  return {};
}

std::string environment_name(std::string_view key_name) {
  std::string out{environment_prefix};
  key_name.remove_prefix(std::string_view{"troupe."}.size());
  for (const char c : key_name)
    out += c == '.' || c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

result<std::string> key_of_environment(std::string_view variable) {
  std::vector<std::string> known;
  for (const auto& entry : schema()) {
    if (entry.is_family()) continue;
    known.push_back(environment_name(entry.name));
    if (known.back() == variable) return std::string{entry.name};
  }
  for (const auto& entry : schema()) {
    if (!entry.is_family()) continue;
    const auto [head, tail] = split(entry.name);
    const auto begin = environment_name(head);
    const auto end = tail.empty() ? std::string{}
                                  : environment_name("troupe." + std::string{tail}).substr(environment_prefix.size());
    known.push_back(begin + "NAME" + end);
    if (variable.size() <= begin.size() + end.size() || !variable.starts_with(begin) || !variable.ends_with(end))
      continue;
    std::string member{variable.substr(begin.size(), variable.size() - begin.size() - end.size())};
    for (char& c : member) c = c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    auto name = std::string{head} + member + std::string{tail};
    if (find_key(name)) return name;
  }
  std::string upper{variable};
  // Every variable shares the prefix; without it the distance tells typos apart.
  std::string nearest;
  std::size_t best = 4;
  for (const auto& name : known) {
    if (const auto distance = edit_distance(upper, name); distance < best) {
      best = distance;
      nearest = name;
    }
  }
  return make_error(ec::invalid_configuration, "there is no key for the environment variable " + std::string{variable} +
                                                   (nearest.empty() ? "; `troupe config show` lists all keys"
                                                                    : "; did you mean " + nearest + "?"));
}

std::vector<std::string> split_choices(std::string_view choices) {
  std::vector<std::string> out;
  while (!choices.empty()) {
    const auto bar = choices.find('|');
    out.emplace_back(choices.substr(0, bar));
    choices = bar == std::string_view::npos ? std::string_view{} : choices.substr(bar + 1);
  }
  return out;
}

} // namespace troupe
