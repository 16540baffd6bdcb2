#include <troupe/runtime/transfer/take_over.hpp>

#include <algorithm>
#include <utility>

#include <fcntl.h>

namespace troupe {

namespace {

/// Descriptors on their way at once.
constexpr std::uint64_t window = 16 * block_protocol::lend_cost;

result<void> take(block_connection& from, const block_key& key, block_store& into,
                  const stream_socket::interrupted& stop) {
  auto answer = from.next_answer(stop);
  if (!answer) return answer.error();
  if (!answer->piece.file) return make_error(ec::malformed, "a whole set was sent instead of lent");
  // The piece is the last one to hold the descriptor, which is shared for the sake of readers.
  auto file = block_file::adopt(descriptor{::fcntl(answer->piece.file->get(), F_DUPFD_CLOEXEC, 3)});
  if (!file) return file.error();
  if (auto stored = into.adopt(key, std::move(*file)); !stored && stored.error().code != ec::invalid_argument)
    return stored;
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
  for (std::size_t begin = 0; begin < what.blocks.size(); begin += block_protocol::max_blocks) {
    const auto end = std::min(what.blocks.size(), begin + block_protocol::max_blocks);
    std::vector<block_protocol::block_request> requests;
    for (auto i = begin; i < end; ++i) {
      const auto& block = what.blocks[i];
      requests.push_back({output_key(block.stage, block.partition, block.attempt), block_protocol::whole_set, 0});
    }
    if (auto asked = connection->ask(requests, window, stop); !asked) {
      why = asked.error();
      return taken;
    }
    for (auto i = begin; i < end; ++i) {
      if (auto got = take(*connection, requests[i - begin].key, into, stop); !got) {
        why = got.error();
        return taken;
      }
      taken.push_back(what.blocks[i]);
    }
  }
  auto sockets = connection->take_sockets(stop);
  if (sockets)
    server.inherit(std::move(sockets->first), std::move(sockets->second));
  else
    why = sockets.error(); // who reads at the old place will ask again at the new one
  return taken;
}

} // namespace troupe
