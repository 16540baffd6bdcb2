#include <troupe/runtime/transfer/block_client.hpp>

#include <utility>
#include <vector>

#include <troupe/runtime/scheduling/bucket_sizes.hpp>
#include <troupe/runtime/transfer/block_reading.hpp>
#include <troupe/runtime/transfer/connection_pool.hpp>

namespace troupe {

void local_blocks::add(executor_id executor, std::shared_ptr<const block_store> store) {
  const std::lock_guard lock{mutex_};
  stores_[executor] = std::move(store);
}

void local_blocks::remove(executor_id executor) {
  const std::lock_guard lock{mutex_};
  stores_.erase(executor);
}

std::shared_ptr<const block_store> local_blocks::find(executor_id executor) const {
  const std::lock_guard lock{mutex_};
  const auto i = stores_.find(executor);
  return i == stores_.end() ? nullptr : i->second;
}

struct block_client::impl {
  impl(const options& opts, const session_secret& shared, std::shared_ptr<const local_blocks> stores)
    : connecting{opts.cluster_id, opts.local_directory, opts.connect_timeout, opts.read_timeout},
      attempts(opts.attempts), max_in_flight(opts.max_in_flight), secret(shared), local(std::move(stores)) {}

  block_reading::environment environment(std::span<const block_endpoint> endpoints) {
    return {pool, secret, local.get(), connecting, attempts, max_in_flight, endpoints};
  }

  const block_connection::options connecting;
  const std::uint32_t attempts;
  const std::uint64_t max_in_flight;
  const session_secret secret;
  const std::shared_ptr<const local_blocks> local;
  connection_pool pool;
};

block_client::block_client(const options& opts, const session_secret& secret, std::shared_ptr<const local_blocks> local)
  : impl_(std::make_unique<impl>(opts, secret, std::move(local))) {}

block_client::~block_client() = default;

void block_client::interrupt() noexcept { impl_->pool.interrupt(); }

void block_client::forget(executor_id executor) { impl_->pool.forget(executor); }

result<void> block_client::fetch(const block_endpoint& endpoint, const block_key& key, std::uint32_t bucket,
                                 const std::function<void(std::string_view)>& each) {
  return block_reading{impl_->environment({&endpoint, 1}), {{0, key, bucket}}}.run(each);
}

result<std::string> block_client::fetch_value(const block_endpoint& endpoint, const block_key& key,
                                              std::uint32_t bucket) {
  std::string value;
  auto read = fetch(endpoint, key, bucket, [&](std::string_view content) { value.append(content); });
  if (!read) return read.error();
  return value;
}

/// What the reader itself lacks is no fault of what it reads.
static void spare_what_is_read(const error& why) {
  if (why.code == ec::overloaded) throw std::runtime_error(why.message);
}

void block_client::read(const shuffle_input& input, std::uint32_t bucket,
                        const std::function<void(std::string_view)>& each) {
  if (input.endpoint_of_map.size() != input.attempt_of_map.size())
    throw std::runtime_error("the shuffle input's columns differ in length");
  std::vector<wanted_block> blocks;
  for (std::size_t i = 0; i < input.endpoint_of_map.size(); ++i) {
    const auto endpoint = input.endpoint_of_map[i];
    if (endpoint >= input.endpoints.size())
      throw std::runtime_error("the shuffle input names block server " + std::to_string(endpoint) + " of " +
                               std::to_string(input.endpoints.size()));
    if (input.empty_of_map && i < input.empty_of_map->size() && is_empty_bucket((*input.empty_of_map)[i], bucket))
      continue;
    blocks.push_back(
        {endpoint, output_key(input.shuffle, static_cast<partition_index>(i), input.attempt_of_map[i]), bucket});
  }
  block_reading reading{impl_->environment(input.endpoints), blocks};
  const auto read = reading.run(each);
  if (read) return;
  spare_what_is_read(read.error());
  const auto& lost = blocks[reading.failed_at()];
  throw fetch_failure(read.error().message, input.shuffle, lost.key.partition, lost.key.attempt,
                      input.endpoints[lost.endpoint].executor);
}

void block_client::read_partition(const partition_place& what, std::uint32_t bucket,
                                  const std::function<void(std::string_view)>& each) {
  const auto read = fetch(what.from, what.key(), bucket, each);
  if (read) return;
  spare_what_is_read(read.error());
  throw fetch_failure(read.error().message, what.stage, what.partition, what.attempt, what.from.executor);
}

} // namespace troupe
