#include <troupe/launcher/transfer_settings.hpp>

#include <troupe/runtime/transfer/block_connection.hpp>

namespace troupe {

namespace {

/// Below, sending the bytes costs less than a descriptor does.
constexpr std::uint64_t worth_a_descriptor = 64 << 10;

bool same_host(const settings& s) { return s.get(keys::transfer_same_host) == "auto"; }

} // namespace

block_client::options reading_options(const settings& s, const std::string& cluster_id, const std::string& sockets) {
  block_client::options reading;
  reading.cluster_id = cluster_id;
  reading.local_directory = sockets;
  reading.connect_timeout = s.get(keys::transfer_connect_timeout);
  reading.read_timeout = s.get(keys::transfer_read_timeout);
  reading.attempts = static_cast<std::uint32_t>(s.get(keys::transfer_attempts));
  reading.max_in_flight = static_cast<std::uint64_t>(s.get(keys::reducer_max_size_in_flight));
  return reading;
}

block_server::options serving_options(const settings& s, const std::string& cluster_id, const std::string& sockets,
                                      incarnation epoch) {
  block_server::options serving;
  serving.address = s.get(keys::executor_bind_address);
  serving.cluster_id = cluster_id;
  if (!sockets.empty()) serving.local_socket = local_socket_path(sockets, epoch);
  return serving;
}

std::uint64_t shared_from(const settings& s) { return same_host(s) ? worth_a_descriptor : block_store::never_shared; }

} // namespace troupe
