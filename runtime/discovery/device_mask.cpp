#include <troupe/runtime/discovery/device_mask.hpp>

#include <algorithm>
#include <set>

#include <troupe/runtime/resources/capacity.hpp>
#include <troupe/runtime/resources/quote.hpp>

namespace troupe {
namespace {

std::string_view without_blanks(std::string_view text) noexcept {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

bool is_index(std::string_view text) noexcept {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// The entry as it is compared: `007` is device 7. Nothing for what names no device.
std::optional<std::string> entry_of(std::string_view text) {
  if (is_index(text)) {
    text.remove_prefix(std::min(text.find_first_not_of('0'), text.size() - 1));
    // More devices than this no machine has; a number beyond is a slip.
    return text.size() <= 6 ? std::optional{std::string{text}} : std::nullopt;
  }
  const auto prefix = text.substr(0, 4);
  if ((prefix == "GPU-" || prefix == "MIG-") && text.size() > 4 && is_valid_address(text)) return std::string{text};
  return std::nullopt;
}

} // namespace

device_mask device_mask::parse(std::optional<std::string_view> inherited) {
  device_mask mask;
  if (!inherited) return mask;
  mask.restricted_ = true;
  std::set<std::string> seen;
  for (auto rest = *inherited;;) {
    const auto comma = rest.find(',');
    auto entry = entry_of(without_blanks(rest.substr(0, comma)));
    if (!entry || !seen.insert(*entry).second) break;
    mask.entries_.push_back(*std::move(entry));
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  return mask;
}

int device_mask::ordinal_of(std::string_view address) const noexcept {
  const auto found = std::find(entries_.begin(), entries_.end(), address);
  return found != entries_.end() ? static_cast<int>(found - entries_.begin()) : -1;
}

bool device_mask::hides(std::string_view address) const {
  const auto entry = entry_of(address);
  return restricted_ && entry && ordinal_of(*entry) < 0;
}

result<void> check_visible(const std::vector<std::string>& addresses, const device_mask& mask) {
  for (const auto& address : addresses) {
    if (!mask.hides(address)) continue;
    std::string entries;
    for (const auto& entry : mask.entries()) entries += (entries.empty() ? "" : ",") + entry;
    return make_error(ec::invalid_configuration,
                      "gpu address " + detail::quote(address) + " is hidden here by " + device_mask_variable + "=" +
                          entries +
                          ": give addresses that it lists, or made-up ones that name no device, such as fake-0");
  }
  return {};
}

std::vector<std::string> device_mask::order_of(const std::vector<std::string>& addresses) const {
  if (restricted_) {
    const bool any =
        std::any_of(addresses.begin(), addresses.end(), [this](const auto& a) { return ordinal_of(a) >= 0; });
    return any ? entries_ : std::vector<std::string>{};
  }
  // Without a mask a device's index is its ordinal.
  std::vector<std::string> order;
  for (const auto& address : addresses) {
    if (!is_index(address) || entry_of(address) != address) continue;
    for (auto next = order.size(); next <= std::stoul(address); ++next) order.push_back(std::to_string(next));
  }
  return order;
}

device_view device_mask::view_of(const std::vector<std::string>& addresses) const {
  device_view view;
  std::vector<std::string> chosen;
  for (const auto& address : addresses) {
    if (restricted_ ? ordinal_of(address) < 0 : entry_of(address) != address) {
      view.ordinals.push_back(-1);
      continue;
    }
    const auto place = std::find(chosen.begin(), chosen.end(), address);
    view.ordinals.push_back(static_cast<int>(place - chosen.begin()));
    if (place != chosen.end()) continue;
    view.text += (chosen.empty() ? "" : ",") + address;
    chosen.push_back(address);
  }
  return view;
}

} // namespace troupe
