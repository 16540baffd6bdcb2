#pragma once

/// One reader's way through a list of blocks of several executors: page by page, in the order of the list. Every
/// executor is asked for all of its blocks at once and sends ahead what it has credit for, so that the next block is
/// often there when the one before it has been read. One thread; used by block_client.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <troupe/runtime/result.hpp>
#include <troupe/runtime/storage/page_buffer.hpp>
#include <troupe/runtime/transfer/block_connection.hpp>
#include <troupe/runtime/transfer/connection_pool.hpp>

namespace troupe {

class local_blocks;

/// One bucket that is wanted, and which of a list of endpoints has it.
struct wanted_block {
  std::uint32_t endpoint = 0;
  block_key key;
  std::uint32_t bucket = 0;
};

class block_reading {
public:
  struct environment {
    connection_pool& pool;
    const session_secret& secret;
    const local_blocks* local = nullptr; ///< stores of executors of this process; null: none
    const block_connection::options& connecting;
    std::uint32_t attempts = 3;               ///< to get on with a block
    std::uint64_t max_in_flight = 8ull << 20; ///< bytes that all servers together send ahead
    std::span<const block_endpoint> endpoints;
  };
  /// Called with the content of each page; valid during the call.
  using page_taker = std::function<void(std::string_view content)>;

  /// @param blocks each names an endpoint of `env`; all of `env` outlives the reading
  block_reading(const environment& env, std::vector<wanted_block> blocks);

  /// Reads them all. What `each` throws goes through. @returns the error, whose block is `failed_at()` then: not_found
  /// where the executor does not hold it, unauthenticated and version_mismatch where one side refuses the other,
  /// cancelled, overloaded without memory for a page, unreachable where nobody answers or the executor is known to be
  /// gone, io where a connection or a file breaks, malformed where bytes are not what was written. The last three were
  /// tried again before, from the last good page on.
  result<void> run(const page_taker& each);
  std::size_t failed_at() const noexcept { return at_; }

private:
  /// What is read from one executor.
  struct lane {
    std::vector<std::size_t> blocks; ///< numbers in the list
    std::size_t next = 0;            ///< of `blocks`, to be read
    std::size_t asked = 0;           ///< of `blocks`, that were asked for
    std::optional<block_connection> connection;
    bool kept = false; ///< the connection was not used for a while: its server may have closed it
  };

  void open_ahead();
  result<void> read_block(const page_taker& each);
  /// How far the reading of a block has come.
  struct progress {
    std::uint64_t offset = 0;         ///< behind the last good page
    std::optional<std::uint64_t> end; ///< of the block, as its server has said
  };
  result<void> read_once(lane& from, progress& so_far, const page_taker& each);
  result<void> open(lane& from, std::uint64_t offset);
  result<void> ask(lane& from, std::uint64_t offset);
  void close(lane& from);
  void give_back(lane& from);
  void make_room();
  const block_endpoint& endpoint_of(const lane& from) const;
  stream_socket::interrupted stop_of(const lane& from) const;
  error describe(error why) const;

  environment env_;
  std::vector<wanted_block> blocks_;
  std::vector<lane> lanes_; ///< by endpoint
  std::size_t at_ = 0;      ///< the block at hand
  std::size_t open_ = 0;    ///< connections
  std::uint64_t window_ = 0;
  page_buffer buffer_;
};

} // namespace troupe
