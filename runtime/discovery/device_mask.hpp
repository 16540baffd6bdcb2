#pragma once

/// CUDA_VISIBLE_DEVICES as it was inherited, and the part of it that an executor or a command gets. An executor sets
/// its variable once, at its start, to entries of the mask that it inherited, so nobody ever sees a device that the
/// process above had hidden. Pure values; any thread.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/runtime/result.hpp>

namespace troupe {

/// The variable that holds the mask.
inline constexpr const char* device_mask_variable = "CUDA_VISIBLE_DEVICES";

/// What some addresses are under a mask.
struct device_view {
  std::string text;          ///< value for the variable: the devices among the addresses, in their order
  std::vector<int> ordinals; ///< for each address its place under `text`; -1: it names no device of the mask

  bool operator==(const device_view&) const = default;
};

/// A list of devices, or no restriction at all.
class device_mask {
public:
  /// Every device is visible: the variable is not set.
  device_mask() = default;

  /// The mask of an inherited variable; nothing: not set. Entries are indices and `GPU-…` or `MIG-…` identifiers,
  /// blanks around them do not count. As in CUDA, the list ends before the first entry that is none of these (`-1`, an
  /// empty one, anything else) or that repeats an earlier one; the empty text hides every device.
  static device_mask parse(std::optional<std::string_view> inherited);

  bool is_restricted() const noexcept { return restricted_; }
  /// The visible devices in the order of their ordinals; empty where nothing is restricted.
  const std::vector<std::string>& entries() const noexcept { return entries_; }

  /// The ordinal of a device under this mask; -1 where it is not listed (always, without a restriction).
  int ordinal_of(std::string_view address) const noexcept;

  /// Whether `address` is spelled like a device and this mask does not list it.
  bool hides(std::string_view address) const;

  /// What `addresses` are under this mask. An address is a device when it is spelled like an entry of the mask or,
  /// where nothing is restricted, like a possible entry. Others (invented ones, hidden ones) are left out of the text.
  device_view view_of(const std::vector<std::string>& addresses) const;

  /// The devices in the order of their ordinals in a process that keeps this mask, as far as `addresses` reach; empty
  /// where none of them is a device.
  std::vector<std::string> order_of(const std::vector<std::string>& addresses) const;

private:
  bool restricted_ = false;
  std::vector<std::string> entries_;
};

/// Error (invalid_configuration) that names the first of `addresses` that `mask` hides, and the cures: whoever got such
/// an address would use a device that the process above has kept for others.
result<void> check_visible(const std::vector<std::string>& addresses, const device_mask& mask);

} // namespace troupe
