// How fast blocks move from one process to another: over TCP, as between machines, and as descriptors, as on one.
// Beside it what this machine gives at best: a plain loopback TCP stream whose bytes are read and dropped, and a copy
// in memory. Prints lines of JSON; the median of several rounds each.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <csignal>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <troupe/runtime/transfer/block_client.hpp>
#include <troupe/runtime/transfer/block_connection.hpp>
#include <troupe/runtime/transfer/block_server.hpp>

namespace {

using namespace troupe;
using steady = std::chrono::steady_clock;

constexpr int rounds = 7;
constexpr std::uint32_t sets = 16;
constexpr std::size_t set_size = 64 << 20;
constexpr incarnation epoch = 4711;

double seconds_since(steady::time_point start) { return std::chrono::duration<double>(steady::now() - start).count(); }

/// @param move moves this many bytes
void measure(const std::string& what, std::uint64_t bytes, const std::function<void()>& move) {
  move(); // pages are there, connections open
  std::vector<double> rates;
  for (int i = 0; i < rounds; ++i) {
    const auto start = steady::now();
    move();
    rates.push_back(static_cast<double>(bytes) / seconds_since(start) / 1e9);
  }
  std::sort(rates.begin(), rates.end());
  std::cout << "{\"what\": \"" << what << "\", \"gigabytes_per_second\": " << rates[rounds / 2]
            << ", \"least\": " << rates.front() << ", \"most\": " << rates.back() << "}" << std::endl;
}

void fill(block_store& store) {
  for (std::uint32_t set = 0; set < sets; ++set) {
    bucket_writer writer{{.buckets = 1, .memory = ~std::uint64_t{0}}};
    const std::string record(100, static_cast<char>('a' + set));
    for (std::size_t written = 0; written < set_size; written += record.size()) {
      writer.page(0).append(record);
      writer.wrote(0);
    }
    if (auto kept = store.put(output_key({1}, set, 0), writer.finish()); !kept) throw std::runtime_error("no room");
  }
}

/// Serves until it is killed; tells its ports through the pipe.
[[noreturn]] void serve(int to, const std::string& directory, const session_secret& secret) {
  block_store kept{{{directory}, 4ull << 30, 64 << 10}};
  fill(kept);
  block_server::options options;
  options.cluster_id = "bench";
  options.local_socket = local_socket_path(directory, epoch);
  auto server = block_server::start(options, secret, kept);
  const std::uint16_t port = (*server)->port();
  if (::write(to, &port, sizeof port) != sizeof port) ::_exit(1);
  for (;;) ::pause();
}

void plain_tcp() {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  if (::bind(listener, reinterpret_cast<sockaddr*>(&at), size) != 0 || ::listen(listener, 1) != 0 ||
      ::getsockname(listener, reinterpret_cast<sockaddr*>(&at), &size) != 0)
    throw std::runtime_error("cannot listen");
  const pid_t sender = ::fork();
  std::vector<char> buffer(512 << 10, 'x');
  if (sender == 0) {
    const int out = ::accept(listener, nullptr, nullptr);
    while (::send(out, buffer.data(), buffer.size(), MSG_NOSIGNAL) > 0) {}
    ::_exit(0);
  }
  const int in = ::socket(AF_INET, SOCK_STREAM, 0);
  if (::connect(in, reinterpret_cast<sockaddr*>(&at), size) != 0) throw std::runtime_error("cannot connect");
  constexpr std::uint64_t bytes = 1ull << 30;
  measure("loopback TCP, bytes dropped", bytes, [&] {
    for (std::uint64_t got = 0; got < bytes;) {
      const auto n = ::recv(in, buffer.data(), buffer.size(), 0);
      if (n <= 0) throw std::runtime_error("the stream broke");
      got += static_cast<std::uint64_t>(n);
    }
  });
  ::close(in);
  ::close(listener);
  ::kill(sender, SIGKILL);
  ::waitpid(sender, nullptr, 0);
}

void copy_in_memory() {
  std::vector<char> from(256 << 20, 'x');
  std::vector<char> to(256 << 20, 'y');
  measure("memcpy of 256 MiB", from.size(), [&] { std::memcpy(to.data(), from.data(), from.size()); });
}

void blocks(const char* what, const block_endpoint& from, const std::string& local_directory,
            const session_secret& secret) {
  block_client::options options;
  options.cluster_id = "bench";
  options.local_directory = local_directory;
  block_client client{options, secret, nullptr};
  shuffle_input input;
  input.shuffle = {1};
  input.endpoints = {from};
  input.endpoint_of_map.assign(sets, 0);
  input.attempt_of_map.assign(sets, 0);
  std::uint64_t bytes = 0;
  client.read(input, 0, [&](std::string_view content) { bytes += content.size(); });
  measure(what, bytes, [&] {
    std::uint64_t got = 0;
    client.read(input, 0, [&](std::string_view content) { got += content.size(); });
    if (got != bytes) throw std::runtime_error("something is missing");
  });
}

} // namespace

int main() try {
  std::string directory = (std::filesystem::temp_directory_path() / "troupe-stream-XXXXXX").string();
  if (!::mkdtemp(directory.data())) throw std::runtime_error("no temporary directory");
  const auto secret = session_secret::generate();
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
  const pid_t server = ::fork();
  if (server == 0) serve(ends[1], directory, secret);
  std::uint16_t port = 0;
  if (::read(ends[0], &port, sizeof port) != sizeof port) throw std::runtime_error("the server did not start");
  blocks("blocks over TCP, one stream", {{1}, epoch, "127.0.0.1", port}, "", secret);
  blocks("blocks as descriptors", {{1}, epoch, "127.0.0.1", port}, directory, secret);
  ::kill(server, SIGKILL);
  ::waitpid(server, nullptr, 0);
  std::filesystem::remove_all(directory);
  plain_tcp();
  copy_in_memory();
} catch (const std::exception& e) {
  std::cerr << "stream_rate: " << e.what() << '\n';
  return 1;
}
