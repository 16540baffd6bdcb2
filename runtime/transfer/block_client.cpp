#include <troupe/runtime/transfer/block_client.hpp>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include <troupe/runtime/scheduling/bucket_sizes.hpp>
#include <troupe/runtime/transfer/block_protocol.hpp>
#include <troupe/runtime/transfer/tcp_stream.hpp>

namespace troupe {

namespace {

namespace protocol = block_protocol;

/// Idle connections kept for one block server: as many as tasks commonly read from it at once.
constexpr std::size_t max_idle_per_server = 4;
/// Idle connections altogether.
constexpr std::size_t max_idle = 128;
constexpr duration first_pause = std::chrono::milliseconds{50};
constexpr duration longest_pause = std::chrono::seconds{2};
constexpr duration pause_slice = std::chrono::milliseconds{50};
/// Memory that a peer can make us take before it has sent as much itself.
constexpr std::size_t first_growth = 4 << 20;

/// Bytes that grow without being zeroed first: blocks are large.
class growing_buffer {
public:
  growing_buffer() = default;
  growing_buffer(const growing_buffer&) = delete;
  growing_buffer& operator=(const growing_buffer&) = delete;
  ~growing_buffer() { std::free(data_); }

  bool grow_to(std::size_t size) noexcept {
    auto* const moved = static_cast<char*>(std::realloc(data_, size));
    if (!moved) return false;
    data_ = moved;
    return true;
  }
  char* data() const noexcept { return data_; }

private:
  char* data_ = nullptr;
};

std::string where(const block_endpoint& endpoint) {
  return "executor " + std::to_string(endpoint.executor.value) + " at " + endpoint.host + ":" +
         std::to_string(endpoint.port);
}

} // namespace

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
  impl(options given, const session_secret& shared, std::shared_ptr<const local_blocks> stores)
    : opts(std::move(given)), secret(shared), local(std::move(stores)) {}

  bool stopped() const {
    if (interrupted.load(std::memory_order_relaxed)) return true;
    const auto* const task = task_context::find_current();
    return task && task->cancelled();
  }

  /// An idle connection, newest first: it is the least likely to have been closed.
  std::optional<tcp_stream> take_idle(const block_endpoint& endpoint) {
    const std::lock_guard lock{mutex};
    const auto i = idle.find(endpoint);
    if (i == idle.end()) return std::nullopt;
    auto stream = std::move(i->second.back());
    i->second.pop_back();
    --idle_count;
    if (i->second.empty()) idle.erase(i);
    return stream;
  }

  void keep(const block_endpoint& endpoint, tcp_stream stream) {
    const std::lock_guard lock{mutex};
    auto& list = idle[endpoint];
    if (list.size() >= max_idle_per_server) {
      list.erase(list.begin());
      --idle_count;
    } else if (idle_count >= max_idle) {
      // Endpoints of executors that are gone would stay for ever: any other one makes room.
      const auto victim = idle.begin()->first == endpoint ? std::next(idle.begin()) : idle.begin();
      if (victim != idle.end() && !victim->second.empty()) {
        idle_count -= victim->second.size();
        idle.erase(victim);
      }
    }
    idle[endpoint].push_back(std::move(stream));
    ++idle_count;
  }

  result<std::string> receive_frame(tcp_stream& stream, const tcp_stream::interrupted& stop) const {
    std::array<char, protocol::length_size> length{};
    if (auto got = stream.receive(length.data(), length.size(), opts.read_timeout, stop); !got) return got.error();
    const auto size = protocol::read_length(length);
    if (size == 0 || size > protocol::max_server_frame)
      return make_error(ec::malformed, "a frame of " + std::to_string(size) + " bytes");
    std::string frame(size, '\0');
    if (auto got = stream.receive(frame.data(), size, opts.read_timeout, stop); !got) return got.error();
    return frame;
  }

  result<tcp_stream> connect(const block_endpoint& endpoint, const tcp_stream::interrupted& stop) const {
    auto stream = tcp_stream::connect(endpoint.host, endpoint.port, opts.connect_timeout, stop);
    if (!stream) return stream;
    const auto nonce = make_nonce();
    const auto hello = protocol::encode(protocol::hello{protocol::version, opts.cluster_id, nonce});
    if (auto sent = stream->send(hello, opts.read_timeout, stop); !sent) return sent.error();
    const auto frame = receive_frame(*stream, stop);
    if (!frame) return frame.error();
    if (protocol::is(protocol::kind::failure, *frame)) return protocol::read_failure(*frame);
    const auto challenge = protocol::read_challenge(*frame);
    if (!challenge) return challenge.error();
    if (!protocol::is_server_proof(secret, challenge->proof, opts.cluster_id, nonce, challenge->nonce))
      return make_error(ec::unauthenticated, "the block server did not prove the session's secret");
    const auto proof = protocol::client_proof(secret, opts.cluster_id, nonce, challenge->nonce);
    if (auto sent = stream->send(protocol::encode_proof(proof), opts.read_timeout, stop); !sent) return sent.error();
    return stream;
  }

  /// One request on an open connection. `answered` tells whether the peer said anything.
  result<block_view> ask(tcp_stream& stream, const block_key& key, std::uint32_t bucket, bool& answered,
                         const tcp_stream::interrupted& stop) const {
    if (auto sent = stream.send(protocol::encode(protocol::get{key, bucket}), opts.read_timeout, stop); !sent)
      return sent.error();
    const auto frame = receive_frame(stream, stop);
    if (!frame) return frame.error();
    answered = true;
    if (protocol::is(protocol::kind::failure, *frame)) return protocol::read_failure(*frame);
    const auto announced = protocol::read_data(*frame);
    if (!announced) return announced.error();
    if (announced->size > opts.max_block)
      return make_error(ec::malformed, "a block of " + std::to_string(announced->size) +
                                           " bytes was announced; at most " + std::to_string(opts.max_block) +
                                           " are taken");
    auto buffer = std::make_shared<growing_buffer>();
    std::size_t received = 0;
    for (std::size_t room = first_growth; received < announced->size; room *= 2) {
      room = std::min<std::uint64_t>(room, announced->size);
      if (!buffer->grow_to(room))
        return make_error(ec::overloaded, "no memory for a block of " + std::to_string(announced->size) + " bytes");
      if (auto got = stream.receive(buffer->data() + received, room - received, opts.read_timeout, stop); !got)
        return got.error();
      received = room;
    }
    const std::string_view bytes{buffer->data(), received};
    if (auto whole = check_pages(bytes); !whole) return whole.error();
    return block_view{std::move(buffer), bytes, {}};
  }

  /// One attempt. A kept connection may have been closed by its server at any time; then a new one is tried at once.
  result<block_view> fetch_once(const block_endpoint& endpoint, const block_key& key, std::uint32_t bucket,
                                const tcp_stream::interrupted& stop) {
    for (auto kept = take_idle(endpoint); kept; kept = take_idle(endpoint)) {
      bool answered = false;
      auto view = ask(*kept, key, bucket, answered, stop);
      if (view || (answered && view.error().code == ec::not_found)) keep(endpoint, std::move(*kept));
      if (answered || view.error().code != ec::io) return view;
    }
    auto stream = connect(endpoint, stop);
    if (!stream) return stream.error();
    bool answered = false;
    auto view = ask(*stream, key, bucket, answered, stop);
    if (view || (answered && view.error().code == ec::not_found)) keep(endpoint, std::move(*stream));
    return view;
  }

  void pause(duration length) {
    const auto end = std::chrono::steady_clock::now() + length;
    std::unique_lock lock{mutex};
    for (auto rest = length; rest > duration::zero() && !stopped(); rest = end - std::chrono::steady_clock::now())
      wake.wait_for(lock, std::min(rest, pause_slice));
  }

  const options opts;
  const session_secret secret;
  const std::shared_ptr<const local_blocks> local;
  std::atomic<bool> interrupted = false;
  std::mutex mutex;
  std::condition_variable wake;
  std::map<block_endpoint, std::vector<tcp_stream>> idle; ///< no empty list stays
  std::size_t idle_count = 0;
};

block_client::block_client(options opts, const session_secret& secret, std::shared_ptr<const local_blocks> local)
  : impl_(std::make_unique<impl>(std::move(opts), secret, std::move(local))) {}

block_client::~block_client() = default;

void block_client::interrupt() noexcept {
  impl_->interrupted.store(true, std::memory_order_relaxed);
  impl_->wake.notify_all();
}

result<block_view> block_client::fetch(const block_endpoint& endpoint, const block_key& key, std::uint32_t bucket) {
  auto& d = *impl_;
  if (d.local) {
    if (const auto store = d.local->find(endpoint.executor)) return store->get(key, bucket);
  }
  if (endpoint.host.empty())
    return make_error(ec::unreachable, "executor " + std::to_string(endpoint.executor.value) +
                                           " is not in this process and has no block server");
  const tcp_stream::interrupted stop = [&d] { return d.stopped(); };
  error last;
  auto pause = first_pause;
  for (std::uint32_t attempt = 0; attempt < std::max(1u, d.opts.attempts); ++attempt) {
    if (attempt > 0) {
      d.pause(pause);
      pause = std::min(2 * pause, longest_pause);
    }
    if (d.stopped()) return make_error(ec::cancelled, "the fetch of " + to_string(key) + " was interrupted");
    auto view = d.fetch_once(endpoint, key, bucket, stop);
    if (view) return view;
    last = make_error(view.error().code, "block of " + to_string(key) + " bucket " + std::to_string(bucket) + " from " +
                                             where(endpoint) + ": " + view.error().message);
    if (last.code != ec::unreachable && last.code != ec::malformed && last.code != ec::io) break;
  }
  return last;
}

result<std::string> block_client::fetch_value(const block_endpoint& endpoint, const block_key& key) {
  const auto view = fetch(endpoint, key, 0);
  if (!view) return view.error();
  return join_pages(view->parts());
}

void block_client::read(const shuffle_input& input, std::uint32_t bucket,
                        const std::function<void(std::string_view)>& each) {
  if (input.endpoint_of_map.size() != input.attempt_of_map.size())
    throw std::runtime_error("the shuffle input's columns differ in length");
  for (std::size_t i = 0; i < input.endpoint_of_map.size(); ++i) {
    const auto partition = static_cast<partition_index>(i);
    if (input.endpoint_of_map[i] >= input.endpoints.size())
      throw std::runtime_error("the shuffle input names block server " + std::to_string(input.endpoint_of_map[i]) +
                               " of " + std::to_string(input.endpoints.size()));
    const auto& endpoint = input.endpoints[input.endpoint_of_map[i]];
    if (input.sizes_of_map && i < input.sizes_of_map->size() && bucket < input.buckets) {
      const auto sizes = bucket_sizes::parse((*input.sizes_of_map)[i], input.buckets);
      if (sizes && !sizes->may_hold(bucket)) continue;
    }
    const auto attempt = input.attempt_of_map[i];
    const auto lost = [&](const error& why) {
      return fetch_failure(why.message, input.shuffle, partition, attempt, endpoint.executor);
    };
    const auto key = output_key(input.shuffle, partition, attempt);
    const auto view = fetch(endpoint, key, bucket);
    if (!view) throw lost(view.error());
    for (const auto part : view->parts())
      for (page_reader pages{part}; !pages.at_end();) {
        const auto content = pages.next();
        if (!content)
          throw lost(make_error(ec::malformed, "block of " + to_string(key) + " bucket " + std::to_string(bucket) +
                                                   " from " + where(endpoint) + ": " + content.error().message));
        each(*content);
      }
  }
}

} // namespace troupe
