#include <troupe/runtime/events/event_stream.hpp>

#include <algorithm>
#include <utility>

namespace troupe::events {

const record& event_stream::append(any content, std::int64_t unix_nanoseconds) {
  kept_.push_back({next_++, unix_nanoseconds, std::move(content)});
  if (kept_.size() > 2 * max_lag_ && kept_.size() > 1) kept_.pop_front();
  return kept_.back();
}

void event_stream::subscribe(std::uint64_t subscriber, std::uint64_t from, std::uint32_t credit) {
  auto& to = subscribers_.try_emplace(subscriber, window{next_, 0, 0}).first->second;
  if (from > 0) to.next = from;
  to.credit = credit;
  to.dry_since = last();
}

std::vector<event_stream::delivery> event_stream::deliver() {
  std::vector<delivery> out;
  for (auto it = subscribers_.begin(); it != subscribers_.end();) {
    auto& to = it->second;
    if (to.credit == 0 && last() - to.dry_since > max_lag_) {
      out.push_back({it->first, {}, 0, to.next - 1});
      it = subscribers_.erase(it);
      continue;
    }
    if (to.credit > 0 && to.next <= last()) {
      delivery one{it->first, {}, 0, 0};
      const auto first = std::max(to.next, kept_.front().number);
      const auto count = std::min<std::uint64_t>(to.credit, last() - first + 1);
      const auto begin = kept_.begin() + static_cast<std::ptrdiff_t>(first - kept_.front().number);
      one.records.assign(begin, begin + static_cast<std::ptrdiff_t>(count));
      one.skipped = first - to.next;
      one.last = first + count - 1;
      to.next = one.last + 1;
      to.credit -= static_cast<std::uint32_t>(count);
      to.dry_since = last();
      out.push_back(std::move(one));
    }
    ++it;
  }
  return out;
}

} // namespace troupe::events
