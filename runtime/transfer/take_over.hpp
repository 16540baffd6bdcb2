#pragma once

/// Keeps blocks of an executor that is to go, so that its output outlives it. On one machine nothing is copied but what
/// lies in memory: files change hands as descriptors, and so do the sockets at which they are asked for, so that
/// readers find them where they always were.

#include <vector>

#include <troupe/runtime/result.hpp>
#include <troupe/runtime/scheduling/orders.hpp>
#include <troupe/runtime/storage/block_store.hpp>
#include <troupe/runtime/transfer/block_connection.hpp>
#include <troupe/runtime/transfer/block_server.hpp>

namespace troupe {

/// Takes these blocks over from the server at `what.from`, a process of this user on this machine, into `into`, which
/// `server` serves; or else its sockets, where they are what is wanted. @returns the blocks that it has now: without
/// those that are not there any more, and fewer where something went wrong, which `why` says
std::vector<held_block> take_over(const block_takeover& what, block_store& into, block_server& server,
                                  const session_secret& secret, const block_connection::options& connecting,
                                  const stream_socket::interrupted& stop, error& why);

} // namespace troupe
