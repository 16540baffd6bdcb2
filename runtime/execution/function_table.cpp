#include <troupe/runtime/execution/function_table.hpp>

#include <algorithm>
#include <stdexcept>
#include <tuple>

namespace troupe {

function_table& function_table::instance() {
  // Never destroyed: tasks may still run while static objects end.
  static auto* const table = new function_table;
  return *table;
}

std::size_t function_table::add(std::string_view key, any_function function, std::string_view place) {
  const std::lock_guard guard{mutex_};
  if (closed_.load(std::memory_order_relaxed)) {
    // A library that was loaded after the table had been read. Its indices could not agree with those of a peer.
    if (late_key_.empty()) late_key_ = key;
    return late_handle;
  }
  entries_.push_back({std::string{key}, std::string{place}, function, entries_.size()});
  return entries_.size() - 1;
}

void function_table::close() const {
  if (closed_.load(std::memory_order_acquire)) return;
  const std::lock_guard guard{mutex_};
  if (closed_.load(std::memory_order_relaxed)) return;
  // Handles break ties so that the order does not depend on the sort; equal keys are an error that `check` reports.
  std::sort(entries_.begin(), entries_.end(), [](const entry& a, const entry& b) {
    return std::tie(a.key, a.place, a.handle) < std::tie(b.key, b.place, b.handle);
  });
  index_.resize(entries_.size());
  for (std::size_t i = 0; i < entries_.size(); ++i) index_[entries_[i].handle] = static_cast<std::uint32_t>(i);
  closed_.store(true, std::memory_order_release);
}

result<void> function_table::check() const {
  close();
  const auto same = std::adjacent_find(entries_.begin(), entries_.end(), [](const entry& a, const entry& b) {
    return a.key == b.key && a.place == b.place;
  });
  if (same != entries_.end() && same->place.empty())
    return make_error(ec::invalid_argument, "two functions are registered under the key '" + same->key +
                                                "'; give each registered function a key of its own");
  if (same != entries_.end())
    return make_error(
        ec::invalid_argument,
        "two functions of one name, '" + same->key + "', come from sources that are both called '" + same->place +
            "': a function that is known in its file alone (in an unnamed namespace, or "
            "static, with lambdas in it) is told from others by the path that the compiler was given; give "
            "one of the two functions or files another name, or compile them by different paths");
  const std::lock_guard guard{mutex_};
  if (!late_key_.empty())
    return make_error(ec::invalid_argument, "function '" + late_key_ +
                                                "' was registered after main had begun; link its library instead of "
                                                "loading it at run time");
  return {};
}

std::uint32_t function_table::index_of(std::size_t handle) const {
  close();
  if (handle >= index_.size()) throw std::logic_error("a function was registered after main had begun");
  return index_[handle];
}

const any_function* function_table::find(std::uint32_t index) const noexcept {
  close();
  return index < entries_.size() ? &entries_[index].function : nullptr;
}

result<std::uint32_t> function_table::find_key(std::string_view key) const {
  close();
  const auto i = std::lower_bound(entries_.begin(), entries_.end(), key,
                                  [](const entry& e, std::string_view wanted) { return e.key < wanted; });
  if (i == entries_.end() || i->key != key)
    return make_error(ec::not_found, "no function is registered under the key '" + std::string{key} + "'");
  return static_cast<std::uint32_t>(i - entries_.begin());
}

std::size_t function_table::size() const noexcept {
  close();
  return entries_.size();
}

} // namespace troupe
