#include <troupe/runtime/allocation/exit_book.hpp>

namespace troupe {

void exit_book::on_snapshot(const std::vector<launch_status>& statuses) {
  present_.clear();
  for (const auto& s : statuses) {
    if (s.state == launch_state::gone)
      ended_.insert_or_assign(s.request, s.exit);
    else if (s.state != launch_state::refused)
      present_.insert(s.request);
  }
  while (ended_.size() > most_remembered) ended_.erase(ended_.begin());
}

std::optional<executor_exit> exit_book::find(request_id request) const {
  if (const auto it = ended_.find(request); it != ended_.end()) return it->second;
  if (present_.contains(request)) return std::nullopt;
  return executor_exit{};
}

} // namespace troupe
