#include <troupe/tests/support/network_namespaces.hpp>

#include <sstream>
#include <stdexcept>
#include <vector>

#include <unistd.h>

#include <troupe/runtime/discovery/run_program.hpp>

namespace troupe::testing {
namespace {

/// `ip`, "" where there is none.
const std::string& ip_program() {
  static const std::string found = [] {
    for (const auto* path : {"/usr/sbin/ip", "/sbin/ip", "/usr/bin/ip", "/bin/ip"})
      if (access(path, X_OK) == 0) return std::string{path};
    return std::string{};
  }();
  return found;
}

/// What went wrong, "" where nothing did.
std::string try_ip(const std::vector<std::string>& words) {
  program_call call;
  call.words = {ip_program()};
  call.words.insert(call.words.end(), words.begin(), words.end());
  const auto done = run_program(call);
  std::string what = "ip";
  for (const auto& word : words) what += " " + word;
  if (!done) return what + ": " + done.error().message;
  return done->exit_code == 0 ? std::string{} : what + ": " + done->error_output;
}

void ip(const std::vector<std::string>& words) {
  if (const auto fault = try_ip(words); !fault.empty()) throw std::runtime_error(fault);
}

} // namespace

bool test_network::is_possible(std::string& why) {
  if (geteuid() != 0)
    why = "network namespaces need root";
  else if (ip_program().empty())
    why = "network namespaces need the program ip (Debian: iproute2)";
  else {
    const auto probe = "troupe-probe-" + std::to_string(getpid());
    why = try_ip({"netns", "add", probe});
    if (why.empty()) why = try_ip({"netns", "del", probe});
  }
  return why.empty();
}

std::string test_network::host(std::size_t i) const { return tag_ + "-" + std::to_string(i); }
std::string test_network::switch_name() const { return tag_ + "-switch"; }
std::string test_network::address(std::size_t i) const { return "10.77.0." + std::to_string(i + 1); }

test_network::test_network(std::size_t hosts) : tag_("troupe-" + std::to_string(getpid())) {
  try {
    const auto make = [&](const std::string& name) {
      ip({"netns", "add", name});
      made_.push_back(name);
      ip({"-n", name, "link", "set", "lo", "up"});
    };
    make(switch_name());
    ip({"-n", switch_name(), "link", "add", "bridge", "type", "bridge", "forward_delay", "0"});
    ip({"-n", switch_name(), "link", "set", "bridge", "up"});
    for (std::size_t i = 0; i < hosts; ++i) {
      make(host(i));
      const auto port = "port" + std::to_string(i);
      ip({"-n", switch_name(), "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", host(i)});
      ip({"-n", switch_name(), "link", "set", port, "master", "bridge", "up"});
      ip({"-n", host(i), "address", "add", address(i) + "/24", "dev", "eth0"});
      ip({"-n", host(i), "link", "set", "eth0", "up"});
    }
  } catch (...) {
    for (const auto& name : made_) try_ip({"netns", "del", name});
    throw;
  }
}

test_network::~test_network() {
  for (const auto& name : made_) try_ip({"netns", "del", name});
}

std::vector<std::string> test_network::on(std::size_t i) const { return {ip_program(), "netns", "exec", host(i)}; }

test_network::traffic test_network::traffic_of(std::size_t i) const {
  program_call call;
  call.words = on(i);
  for (const auto* word : {"cat", "/sys/class/net/eth0/statistics/tx_bytes", "/sys/class/net/eth0/statistics/rx_bytes"})
    call.words.emplace_back(word);
  const auto done = run_program(call);
  if (!done || done->exit_code != 0) throw std::runtime_error("the counters of " + host(i) + " cannot be read");
  std::istringstream words{done->output};
  traffic so_far;
  words >> so_far.sent >> so_far.received;
  return so_far;
}

void test_network::cut(std::size_t i) const {
  ip({"-n", switch_name(), "link", "set", "port" + std::to_string(i), "nomaster"});
}

void test_network::heal(std::size_t i) const {
  ip({"-n", switch_name(), "link", "set", "port" + std::to_string(i), "master", "bridge"});
}

} // namespace troupe::testing
