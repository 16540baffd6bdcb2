#pragma once

/// Where jobs run, as `troupe.master` and `--master` say it. Pure.

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include <troupe/runtime/result.hpp>

namespace troupe {

/// `local[N]`: executors in the submitting process.
struct local_master {
  std::uint32_t cores = 0; ///< 0 for `local[*]`: all of this machine

  auto operator<=>(const local_master&) const = default;
};

/// `local-cluster[N,cores,memory]`: processes on this machine, carved out of N hosts' worth of room.
struct local_cluster_master {
  std::uint32_t hosts = 0;
  std::int64_t cores = 0;  ///< of each host
  std::int64_t memory = 0; ///< bytes, of each host

  auto operator<=>(const local_cluster_master&) const = default;
};

/// `troupe://host:port` or `host:port`: a driver that is already there.
struct endpoint {
  std::string host; ///< name or address, an IPv6 one without brackets
  std::uint16_t port = 0;

  auto operator<=>(const endpoint&) const = default;
};

using master_address = std::variant<local_master, local_cluster_master, endpoint>;

/// The error names what is wrong and shows the valid forms.
result<master_address> parse_master(std::string_view text);
std::string to_string(const master_address& master);

/// Reads `host:port` or `troupe://host:port`; an IPv6 address stands in brackets.
result<endpoint> parse_endpoint(std::string_view text);
/// `host:port`, with brackets where they are needed.
std::string to_string(const endpoint& where);

/// True for an IPv4 or IPv6 address or a host name.
bool is_host(std::string_view text);
/// True for 127.0.0.0/8, ::1 and `localhost`. Other names are not looked up and count as foreign.
bool is_loopback(std::string_view host);

} // namespace troupe
