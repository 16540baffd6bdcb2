#include <troupe/runtime/transfer/broadcast_reader.hpp>

#include <stdexcept>
#include <vector>

#include <troupe/runtime/execution/task_context.hpp>
#include <troupe/runtime/transfer/broadcast_file.hpp>

namespace troupe {

namespace {

/// After which a task that waits looks whether it was killed.
constexpr duration look_again = std::chrono::milliseconds{50};

bool attempt_is_over() {
  const auto* const task = task_context::find_current();
  return task && task->cancelled();
}

[[noreturn]] void fail(broadcast_id id, const std::string& why) {
  throw std::runtime_error("broadcast " + std::to_string(id.number) + ": " + why);
}

} // namespace

broadcast_reader::broadcast_reader() : broadcast_reader(options{}, nullptr) {}

broadcast_reader::broadcast_reader(options opts, block_client* client) : options_(std::move(opts)), client_(client) {}

void broadcast_reader::keep(broadcast_id id, std::type_index type, std::shared_ptr<const void> value) {
  const std::lock_guard lock{mutex_};
  entries_.insert_or_assign(id, std::make_shared<entry>(entry{std::move(value), type, false}));
}

std::shared_ptr<const void> broadcast_reader::get(const broadcast_reference& which, std::type_index type,
                                                  const decoder& decode) {
  std::unique_lock lock{mutex_};
  auto& place = entries_[which.id];
  if (!place) place = std::make_shared<entry>();
  const auto e = place;
  while (e->reading) {
    if (attempt_is_over()) fail(which.id, "the attempt was cancelled");
    changed_.wait_for(lock, look_again);
  }
  if (e->value) {
    if (e->type != type) throw std::logic_error("a broadcast is read as another type than it was made with");
    return e->value;
  }
  e->reading = true;
  lock.unlock();
  std::shared_ptr<const void> value;
  try {
    value = decode(read(which));
  } catch (...) {
    lock.lock();
    e->reading = false;
    if (const auto now = entries_.find(which.id); now != entries_.end() && now->second == e) entries_.erase(now);
    changed_.notify_all();
    throw;
  }
  lock.lock();
  e->reading = false;
  e->value = value;
  e->type = type;
  changed_.notify_all();
  const auto now = entries_.find(which.id);
  const bool dropped = now == entries_.end() || now->second != e;
  lock.unlock();
  // The host's copy may have been made after it was removed.
  if (dropped && !options_.directory.empty()) remove_broadcast(broadcast_path(options_.directory, which.id));
  return value;
}

std::string broadcast_reader::read(const broadcast_reference& which) {
  if (!client_) fail(which.id, "its program has withdrawn it, or is in another process and has no block server");
  block_endpoint server;
  server.epoch = which.id.program;
  server.host = which.host.empty() ? options_.driver_host : which.host;
  server.port = which.port;
  const block_key key{block_kind::broadcast, which.id.number, 0, 0};
  const auto fetch = [&](const std::function<void(std::string_view)>& each) {
    return client_->fetch(server, key, 0, each);
  };
  if (!options_.directory.empty()) {
    auto content = read_broadcast(broadcast_path(options_.directory, which.id), fetch, options_.patience,
                                  [] { return attempt_is_over(); });
    if (content) return *std::move(content);
    // Without the host's copy, as on a disk that is full, it makes do with its own.
    const auto code = content.error().code;
    if (code == ec::cancelled || code == ec::not_found) fail(which.id, content.error().message);
  }
  std::string content;
  if (auto fetched = fetch([&](std::string_view part) { content.append(part); }); !fetched)
    fail(which.id, fetched.error().message);
  return content;
}

void broadcast_reader::drop(broadcast_id id) {
  std::vector<broadcast_id> dropped;
  {
    const std::lock_guard lock{mutex_};
    const auto first = entries_.lower_bound(id);
    auto last = first;
    while (last != entries_.end() && (last->first == id || (id.number == 0 && last->first.program == id.program))) {
      dropped.push_back(last->first);
      ++last;
    }
    entries_.erase(first, last);
  }
  if (!options_.directory.empty())
    for (const auto& each : dropped) remove_broadcast(broadcast_path(options_.directory, each));
}

} // namespace troupe
