#pragma once

/// Fetches blocks from executors: over a block server's socket, or straight from the store of an executor in this
/// process. Safe from any thread. A fetch on a task's thread gives up when its attempt is killed.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include <troupe/runtime/execution/task_context.hpp>
#include <troupe/runtime/result.hpp>
#include <troupe/runtime/scheduling/orders.hpp>
#include <troupe/runtime/storage/block_store.hpp>
#include <troupe/runtime/time.hpp>
#include <troupe/runtime/transfer/handshake.hpp>

namespace troupe {

/// The stores of executors that share this process, by executor id. One per application; passed in, not global.
class local_blocks {
public:
  void add(executor_id executor, std::shared_ptr<const block_store> store);
  void remove(executor_id executor);
  std::shared_ptr<const block_store> find(executor_id executor) const;

private:
  mutable std::mutex mutex_;
  std::map<executor_id, std::shared_ptr<const block_store>> stores_;
};

class block_client : public shuffle_source {
public:
  struct options {
    std::string cluster_id;
    duration connect_timeout = std::chrono::seconds{5};
    duration read_timeout = std::chrono::seconds{30}; ///< silence on an open fetch
    std::uint64_t max_block = 4ull << 30;             ///< larger announced sizes are malformed
    std::uint32_t attempts = 3;                       ///< of one fetch, with a growing pause between
  };
  block_client(options opts, const session_secret& secret, std::shared_ptr<const local_blocks> local);
  ~block_client() override;

  /// One bucket. Connections are kept and reused; checksums are verified. Errors: not_found where the executor does
  /// not hold it, unauthenticated and version_mismatch where one side refuses the other, malformed, cancelled after
  /// `interrupt` or when the attempt was killed, overloaded without memory for it, unreachable where nobody answers, io
  /// where a connection breaks. The last two and malformed are tried again.
  result<block_view> fetch(const block_endpoint& endpoint, const block_key& key, std::uint32_t bucket);
  /// The content of a block set of one bucket, such as a task's result. The same errors.
  result<std::string> fetch_value(const block_endpoint& endpoint, const block_key& key);

  /// Makes fetches, those under way and all later ones, fail within a fraction of a second.
  void interrupt() noexcept;

  void read(const shuffle_input& input, std::uint32_t bucket,
            const std::function<void(std::string_view)>& each) override;

private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

} // namespace troupe
