#pragma once

/// Fetches blocks from executors: straight from the store of one in this process, out of files that one on this machine
/// lends, else over the network. Safe from any thread. A fetch on a task's thread gives up when its attempt is killed.

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
    std::string
        local_directory; ///< where the block servers of this machine have their sockets; "": not to be looked for
    duration connect_timeout = std::chrono::seconds{5};
    duration read_timeout = std::chrono::seconds{30}; ///< silence on an open fetch
    std::uint32_t attempts = 3;                       ///< to get on with a block, with a growing pause between
    std::uint64_t max_in_flight = 8ull << 20;         ///< bytes that servers send ahead of one reader
  };
  block_client(const options& opts, const session_secret& secret, std::shared_ptr<const local_blocks> local);
  ~block_client() override;

  /// Calls `each` with the content of every page of one bucket. For the errors see block_reading.
  result<void> fetch(const block_endpoint& endpoint, const block_key& key, std::uint32_t bucket,
                     const std::function<void(std::string_view)>& each);
  /// The content of one bucket in one string, such as a task's result. The same errors.
  result<std::string> fetch_value(const block_endpoint& endpoint, const block_key& key, std::uint32_t bucket = 0);

  /// Makes fetches, those under way and all later ones, fail within a fraction of a second.
  void interrupt() noexcept;
  /// The same for those from an executor that is gone for good, and whose silence means nothing any more.
  void forget(executor_id executor) override;

  void read(const shuffle_input& input, std::uint32_t bucket,
            const std::function<void(std::string_view)>& each) override;
  void read_partition(const partition_place& what, std::uint32_t bucket,
                      const std::function<void(std::string_view)>& each) override;

private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

} // namespace troupe
