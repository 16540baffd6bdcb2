#include <troupe/runtime/transfer/take_over.hpp>

#include <algorithm>
#include <utility>

#include <fcntl.h>

namespace troupe {

namespace {

/// Descriptors on their way at once.
constexpr std::uint64_t window = 16 * block_protocol::lend_cost;

/// @param has whether `into` has it now
result<void> take(block_connection& from, const block_key& key, block_store& into, bool& has,
                  const stream_socket::interrupted& stop) {
  auto answer = from.next_answer(stop);
  if (!answer) return answer.error();
  if (!answer->piece.file) return make_error(ec::malformed, "a whole set was sent instead of lent");
  // The piece is the last one to hold the descriptor, which is shared for the sake of readers.
  descriptor own{::fcntl(answer->piece.file->get(), F_DUPFD_CLOEXEC, 3)};
  if (!own) return make_error(ec::overloaded, "no file descriptor is left");
  auto file = block_file::adopt(std::move(own));
  if (!file) return file.error();
  if (auto stored = into.adopt(key, std::move(*file)); !stored && stored.error().code != ec::invalid_argument)
    return stored;
  has = true;
  return from.lent_was_read(stop);
}

} // namespace

std::vector<held_block> take_over(const block_takeover& what, block_store& into, block_server& server,
                                  const session_secret& secret, const block_connection::options& connecting,
                                  const stream_socket::interrupted& stop, error& why) {
  std::vector<held_block> taken;
  auto near = what.from;
  near.host.clear(); // descriptors come over the local socket or not at all
  auto connection = block_connection::open(near, secret, connecting, stop);
  if (!connection) {
    why = connection.error();
    return taken;
  }
  if (what.sockets) {
    auto sockets = connection->take_sockets(stop);
    if (sockets)
      server.inherit(std::move(sockets->first), std::move(sockets->second));
    else
      why = sockets.error(); // who reads at the old place finds nobody there, and has what it misses made again
    return taken;
  }
  for (std::size_t at = 0; at < what.blocks.size();) {
    const auto end = std::min(what.blocks.size(), at + block_protocol::max_blocks);
    std::vector<block_protocol::block_request> requests;
    for (auto i = at; i < end; ++i) {
      const auto& block = what.blocks[i];
      requests.push_back({output_key(block.stage, block.partition, block.attempt), block_protocol::whole_set, 0});
    }
    if (auto asked = connection->ask(requests, window, stop); !asked) {
      why = asked.error();
      return taken;
    }
    for (const auto& request : requests) {
      bool has = false;
      const auto got = take(*connection, request.key, into, has, stop);
      if (has) taken.push_back(what.blocks[at]);
      ++at;
      if (got) continue;
      if (got.error().code == ec::not_found) break; // its job is over; that ended the request: the next one goes on
      why = got.error();
      return taken;
    }
  }
  return taken;
}

} // namespace troupe
