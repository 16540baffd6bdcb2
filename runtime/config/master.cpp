#include <troupe/runtime/config/master.hpp>

#include <algorithm>
#include <arpa/inet.h>
#include <cctype>
#include <vector>

#include <troupe/runtime/resources/amount.hpp>

namespace troupe {
namespace {

constexpr std::string_view forms =
    "; valid forms: local[4], local[*], local-cluster[2,4,8g] (hosts, cores and memory of each), host:port, "
    "troupe://host:port";
constexpr std::int64_t most_hosts = 10'000;
constexpr std::int64_t most_cores = 9'000'000;

error bad_master(std::string_view text, std::string_view why) {
  return make_error(ec::invalid_configuration, "`" + std::string{text} + "` " + std::string{why} + std::string{forms});
}

/// The text between `name[` and `]`, when `text` has that form.
bool inside_brackets(std::string_view text, std::string_view name, std::string_view& inside) {
  if (!text.starts_with(name) || text.size() < name.size() + 2) return false;
  if (text[name.size()] != '[' || text.back() != ']') return false;
  inside = text.substr(name.size() + 1, text.size() - name.size() - 2);
  return true;
}

std::vector<std::string_view> split_commas(std::string_view text) {
  std::vector<std::string_view> out;
  while (true) {
    const auto comma = text.find(',');
    out.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return out;
    text.remove_prefix(comma + 1);
  }
}

bool count_between(std::string_view text, std::int64_t most, std::int64_t& out) {
  const auto number = parse_count(text);
  if (!number || *number < 1 || *number > most) return false;
  out = *number;
  return true;
}

result<master_address> parse_local_cluster(std::string_view text, std::string_view inside) {
  const auto parts = split_commas(inside);
  if (parts.size() != 3) return bad_master(text, "must have three parts: hosts, cores and memory of each");
  std::int64_t hosts = 0;
  std::int64_t cores = 0;
  if (!count_between(parts[0], most_hosts, hosts)) return bad_master(text, "must have from 1 to 10000 hosts");
  if (!count_between(parts[1], most_cores, cores)) return bad_master(text, "must have at least 1 core on each host");
  const auto memory = parse_memory(parts[2]);
  if (!memory || *memory < 1) return bad_master(text, "must have a memory size such as 8g as its third part");
  if (const auto fault = fault_of_memory_without_unit(parts[2], *memory); !fault.empty())
    return bad_master(text, "has hosts of " + fault);
  return master_address{local_cluster_master{static_cast<std::uint32_t>(hosts), cores, *memory}};
}

} // namespace

bool is_host(std::string_view text) {
  if (text.empty() || text.size() > 253) return false;
  unsigned char bytes[16];
  const std::string copy{text};
  if (::inet_pton(AF_INET, copy.c_str(), bytes) == 1 || ::inet_pton(AF_INET6, copy.c_str(), bytes) == 1) return true;
  // What looks like a mistyped address is not taken for a name.
  if (text.find_first_not_of("0123456789.") == std::string_view::npos) return false;
  if (text.front() == '-' || text.front() == '.' || text.back() == '-') return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' || c == '_';
  });
}

bool is_loopback(std::string_view host) {
  const std::string copy{host};
  in_addr v4{};
  if (::inet_pton(AF_INET, copy.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6{};
  if (::inet_pton(AF_INET6, copy.c_str(), &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6);
  return host == "localhost";
}

result<endpoint> parse_endpoint(std::string_view text) {
  const auto fault = [&](std::string_view why) {
    return make_error(ec::invalid_configuration,
                      "`" + std::string{text} + "` " + std::string{why} + "; write host:port, such as 127.0.0.1:7077");
  };
  std::string_view rest = text;
  if (rest.starts_with("troupe://")) rest.remove_prefix(9);
  const auto colon = rest.rfind(':');
  if (colon == std::string_view::npos) return fault("has no port");
  std::string_view host = rest.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return fault("holds an IPv6 address without brackets");
  }
  if (!is_host(host)) return fault("does not begin with an address or a host name");
  std::int64_t port = 0;
  if (!count_between(rest.substr(colon + 1), 65535, port)) return fault("must end with a port from 1 to 65535");
  return endpoint{std::string{host}, static_cast<std::uint16_t>(port)};
}

result<master_address> parse_master(std::string_view text) {
  std::string_view inside;
  if (inside_brackets(text, "local", inside)) {
    if (inside == "*") return master_address{local_master{}};
    std::int64_t cores = 0;
    if (!count_between(inside, 100'000, cores)) return bad_master(text, "must name from 1 to 100000 cores, or *");
    return master_address{local_master{static_cast<std::uint32_t>(cores)}};
  }
  if (inside_brackets(text, "local-cluster", inside)) return parse_local_cluster(text, inside);
  if (const auto where = parse_endpoint(text)) return master_address{*where};
  return bad_master(text, "is not a master");
}

std::string to_string(const endpoint& where) {
  const bool brackets = where.host.find(':') != std::string::npos;
  return (brackets ? "[" + where.host + "]" : where.host) + ":" + std::to_string(where.port);
}

std::string to_string(const master_address& master) {
  if (const auto* local = std::get_if<local_master>(&master))
    return "local[" + (local->cores == 0 ? std::string{"*"} : std::to_string(local->cores)) + "]";
  if (const auto* cluster = std::get_if<local_cluster_master>(&master))
    return "local-cluster[" + std::to_string(cluster->hosts) + "," + std::to_string(cluster->cores) + "," +
           memory_to_string(cluster->memory) + "]";
  return "troupe://" + to_string(std::get<endpoint>(master));
}

} // namespace troupe
