#include <troupe/runtime/transfer/block_reading.hpp>

#include <algorithm>
#include <string>
#include <utility>

#include <troupe/runtime/storage/block_pages.hpp>
#include <troupe/runtime/transfer/block_client.hpp>
#include <troupe/runtime/transfer/retry_schedule.hpp>

namespace troupe {

namespace {

/// Connections of one reader at a time; beyond, the one that is needed last makes room.
constexpr std::size_t max_open = 64;
constexpr std::uint64_t smallest_window = 128 << 10;
constexpr std::uint64_t largest_window = 4 << 20;

bool may_pass(ec code) { return code == ec::unreachable || code == ec::malformed || code == ec::io; }

} // namespace

block_reading::block_reading(const environment& env, std::vector<wanted_block> blocks)
  : env_(env), blocks_(std::move(blocks)), lanes_(env.endpoints.size()) {
  for (std::size_t i = 0; i < blocks_.size(); ++i) lanes_.at(blocks_[i].endpoint).blocks.push_back(i);
  const auto busy = std::count_if(lanes_.begin(), lanes_.end(), [](const lane& l) { return !l.blocks.empty(); });
  const auto at_once = std::clamp<std::size_t>(static_cast<std::size_t>(busy), 1, max_open);
  window_ = std::clamp(env_.max_in_flight / at_once, smallest_window, largest_window);
}

result<void> block_reading::run(const page_taker& each) {
  open_ahead();
  for (at_ = 0; at_ < blocks_.size(); ++at_) {
    if (auto read = read_block(each); !read) return describe(read.error());
    auto& from = lanes_[blocks_[at_].endpoint];
    if (++from.next == from.blocks.size()) give_back(from);
  }
  return {};
}

/// Who is asked early has sent something by the time when its block is the next one. Whatever goes wrong goes wrong
/// again, and counts, when the block is needed.
void block_reading::open_ahead() {
  const auto end = std::chrono::steady_clock::now() + env_.connecting.connect_timeout;
  for (const auto& block : blocks_) {
    // Nobody waits for several who do not answer, one after another, before the first page is read.
    if (open_ == max_open || std::chrono::steady_clock::now() > end) return;
    auto& from = lanes_[block.endpoint];
    if (from.connection || from.asked > 0 || from.blocks.size() == blocks_.size()) continue;
    if (env_.local && env_.local->find(endpoint_of(from).executor)) continue;
    if (env_.pool.is_forgotten(endpoint_of(from).executor)) continue;
    if (!open(from, 0)) close(from);
    from.kept = true;                                  // its server may give up before it is read
    from.asked = std::max<std::size_t>(from.asked, 1); // tried
  }
}

result<void> block_reading::read_block(const page_taker& each) {
  auto& from = lanes_[blocks_[at_].endpoint];
  const auto& block = blocks_[at_];
  const auto executor = endpoint_of(from).executor;
  if (env_.local) {
    if (const auto store = env_.local->find(executor)) {
      const auto view = store->get(block.key, block.bucket);
      return view ? read_pages(*view, buffer_, each) : view.error();
    }
  }
  progress so_far;
  for (retry_schedule schedule{env_.attempts};;) {
    if (env_.pool.stopped()) return make_error(ec::cancelled, "interrupted");
    if (env_.pool.is_forgotten(executor)) return make_error(ec::unreachable, "the executor is gone");
    const auto before = so_far.offset;
    auto read = read_once(from, so_far, each);
    if (read) return {};
    const bool stale = from.kept && from.connection && !from.connection->answered() && read.error().code == ec::io;
    close(from);
    if (stale) continue;
    if (read.error().code == ec::cancelled && !env_.pool.stopped())
      return make_error(ec::unreachable, "the executor is gone");
    if (!may_pass(read.error().code)) return read;
    const auto pause = schedule.failed(so_far.offset > before);
    if (!pause) return read;
    env_.pool.pause(*pause);
  }
}

/// The rest of the block at hand, which follows the pages that were given out.
result<void> block_reading::read_once(lane& from, progress& so_far, const page_taker& each) {
  auto& offset = so_far.offset;
  if (!from.connection) {
    make_room();
    if (auto opened = open(from, offset); !opened) return opened;
  } else if (from.asked == from.next) {
    if (auto asked = ask(from, offset); !asked) return asked;
  }
  auto& connection = *from.connection;
  const auto stop = stop_of(from);
  const auto answer = connection.next_answer(stop);
  if (!answer) {
    if (connection.reusable()) give_back(from);
    return answer.error();
  }
  // Else one who sends the same again and again would be read for ever.
  if (const auto end = offset + answer->size; so_far.end.value_or(end) != end)
    return make_error(ec::malformed, "the block ends at another place than it did before");
  else
    so_far.end = end;
  const bool lent = answer->piece.file != nullptr;
  const auto source =
      lent ? bytes_of(answer->piece)
           : page_buffer::source{[&](char* to, std::size_t room) { return connection.receive_some(to, room, stop); }};
  const auto begin = offset;
  for (buffer_.begin(answer->size); !buffer_.at_end();) {
    const auto content = buffer_.next(source);
    if (!content) return content.error();
    each(*content);
    offset = begin + buffer_.taken();
  }
  return lent ? connection.lent_was_read(stop) : result<void>{};
}

result<void> block_reading::open(lane& from, std::uint64_t offset) {
  from.connection = env_.pool.take(endpoint_of(from));
  from.kept = from.connection.has_value();
  if (!from.connection) {
    auto opened = block_connection::open(endpoint_of(from), env_.secret, env_.connecting, stop_of(from));
    if (!opened) return opened.error();
    from.connection = std::move(*opened);
  }
  ++open_;
  from.asked = from.next;
  return ask(from, offset);
}

result<void> block_reading::ask(lane& from, std::uint64_t offset) {
  std::vector<block_protocol::block_request> requests;
  for (; from.asked < from.blocks.size() && requests.size() < block_protocol::max_blocks; ++from.asked) {
    const auto& block = blocks_[from.blocks[from.asked]];
    requests.push_back({block.key, block.bucket, std::exchange(offset, 0)});
  }
  return from.connection->ask(requests, window_, stop_of(from));
}

void block_reading::close(lane& from) {
  if (!from.connection) return;
  from.connection.reset();
  --open_;
}

void block_reading::give_back(lane& from) {
  if (!from.connection) return;
  if (from.connection->reusable()) env_.pool.keep(endpoint_of(from), std::move(*from.connection));
  close(from);
}

void block_reading::make_room() {
  if (open_ < max_open) return;
  lane* last = nullptr;
  for (auto& l : lanes_)
    if (l.connection && (!last || l.blocks[l.next] > last->blocks[last->next])) last = &l;
  if (last) close(*last);
}

const block_endpoint& block_reading::endpoint_of(const lane& from) const {
  return env_.endpoints[static_cast<std::size_t>(&from - lanes_.data())];
}

stream_socket::interrupted block_reading::stop_of(const lane& from) const {
  return [&pool = env_.pool, executor = endpoint_of(from).executor] {
    return pool.stopped() || pool.is_forgotten(executor);
  };
}

error block_reading::describe(error why) const {
  const auto& block = blocks_[at_];
  const auto& endpoint = env_.endpoints[block.endpoint];
  auto where = "executor " + std::to_string(endpoint.executor.value);
  if (!endpoint.host.empty()) where += " at " + endpoint.host + ":" + std::to_string(endpoint.port);
  why.message = "block of " + to_string(block.key) + " bucket " + std::to_string(block.bucket) + " from " + where +
                ": " + why.message;
  return why;
}

} // namespace troupe
