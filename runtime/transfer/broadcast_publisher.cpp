#include <troupe/runtime/transfer/broadcast_publisher.hpp>

#include <utility>

#include <troupe/runtime/transfer/broadcast_file.hpp>

namespace troupe {

namespace {

block_key key_of(broadcast_id id) { return {block_kind::broadcast, id.number, 0, 0}; }

} // namespace

broadcast_publisher::broadcast_publisher(options opts, const session_secret& secret)
  : options_(std::move(opts)), secret_(secret), blocks_({{options_.directory}, 0}) {}

broadcast_publisher::~broadcast_publisher() = default;

result<broadcast_reference> broadcast_publisher::publish(std::string_view encoded) {
  broadcast_reference made;
  {
    const std::lock_guard lock{mutex_};
    if (!server_) {
      auto started = block_server::start(options_.serving, secret_, blocks_);
      if (!started) return started.error();
      server_ = std::move(*started);
    }
    made = {{options_.program, ++last_}, options_.host, server_->port()};
  }
  auto file = write_broadcast(broadcast_path(options_.directory, made.id), encoded, options_.compression);
  if (!file) return file.error();
  if (auto kept = blocks_.adopt(key_of(made.id), std::move(*file)); !kept) return kept.error();
  return made;
}

void broadcast_publisher::withdraw(broadcast_id id) {
  if (id.program != options_.program) return;
  blocks_.remove(key_of(id)); // and its file
  remove_broadcast(broadcast_path(options_.directory, id));
}

} // namespace troupe
