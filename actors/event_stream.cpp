#include <troupe/actors/event_stream.hpp>

#include <algorithm>

namespace troupe {

void event_stream::append(events::any content, std::int64_t unix_nanoseconds) {
  kept_.push_back({next_++, unix_nanoseconds, std::move(content)});
  if (kept_.size() > retained_) kept_.pop_front();
}

std::vector<events::record> event_stream::read(std::uint64_t from, std::size_t most) const {
  std::vector<events::record> out;
  if (kept_.empty()) return out;
  const auto first = std::max(from, kept_.front().number);
  for (auto i = first - kept_.front().number; i < kept_.size() && out.size() < most; ++i) out.push_back(kept_[i]);
  return out;
}

} // namespace troupe
