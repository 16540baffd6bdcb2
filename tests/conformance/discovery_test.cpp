// Custom resources in the configuration, and how their addresses are found (RD).

#include <troupe/runtime/config/profile_settings.hpp>
#include <troupe/runtime/discovery/discover.hpp>
#include <troupe/runtime/resources/carving.hpp>
#include <troupe/tests/conformance/profile_texts.hpp>
#include <troupe/tests/conformance/rule.hpp>

namespace troupe::conformance {
namespace {

/// The custom resources that these settings describe, and what a task takes of them.
std::string configured(const std::string& text, const profile_rules&) {
  settings_builder builder{"/base"};
  for (const auto& line : parts_of(text, ';'))
    if (auto ok = builder.add_argument("troupe." + line); !ok) return refused(ok.error());
  const auto s = builder.build();
  if (!s) return refused(s.error());
  const auto resources = executor_resources(*s);
  if (!resources) return refused(resources.error());
  std::string out;
  for (const auto& [name, r] : *resources) {
    out += name + " " + std::to_string(r.amount) + " script=" + r.discovery_script + " vendor=" + r.vendor + " at";
    for (const auto& address : r.addresses) out += " " + address;
  }
  for (const auto& [name, amount] : s->get(keys::task_resource_amount)) out += ", task " + to_string(amount);
  return out;
}

const table configured_resources_rows{
    "configured_resources",
    configured,
    {
        {"RD-1",
         "executor.resource.gpu.amount=2; executor.resource.gpu.discovery-script=/find; "
         "executor.resource.gpu.vendor=nvidia; task.resource.gpu.amount=0.5",
         same("gpu 2 script=/find vendor=nvidia at, task 0.5")},
        {"RD-1", "executor.resource.gpu.addresses=3,f1", same("gpu 2 script= vendor= at 3 f1")},
        {"RD-2", "executor.resource.gpu.vendor=nvidia", same("refused: …amount is missing…gpu.amount")},
        {"RD-2", "executor.resource.gpu=2", same("refused: …troupe.executor.resource.gpu…")},
        {"RD-3", "executor.resource.gpu.amount=0.5", same("refused: …troupe.executor.resource.gpu.amount…0.5…")},
        {"RD-3", "executor.resource.gpu.amount=1; task.resource.gpu.amount=1.5", same("refused: …gpu…1.5…")},
    }};

/// A machine whose programs answer as told. Counts what was run.
struct fake_machine {
  std::string answer = R"({"name": "gpu", "addresses": ["0", "1", "2"]})";
  bool has_nvidia_smi = false;
  int runs = 0;

  std::string find(const discovery_request& request) {
    const discovery_io io{[this](const program_call& call) -> result<program_output> {
                            ++runs;
                            if (call.words[0] == "/absent") return make_error(ec::not_found, "/absent: no such file");
                            return program_output{0, call.words[0] == "/nvidia-smi" ? "7\n" : answer, {}};
                          },
                          [](const std::string&) { return std::nullopt; },
                          [this](const std::string&) {
                            return has_nvidia_smi ? std::optional<std::string>{"/nvidia-smi"} : std::nullopt;
                          }};
    const auto found = discover(request, io);
    if (!found) return refused(found.error());
    std::string out;
    for (const auto& address : found->addresses) out += address + " ";
    out += "from " + found->origin;
    for (const auto& note : found->notes) out += "; " + note;
    return out;
  }
};

discovery_request wanting(std::int64_t amount, std::string script = "/find", std::vector<std::string> list = {}) {
  discovery_request request;
  request.resource = "gpu";
  request.amount = amount;
  request.script = std::move(script);
  request.addresses = std::move(list);
  return request;
}

std::string nothing_wanted(const profile_rules&) {
  fake_machine machine;
  const auto found = machine.find(wanting(0));
  return found + ", programs run: " + std::to_string(machine.runs);
}

std::string list_script_probe(const profile_rules&) {
  fake_machine machine;
  machine.has_nvidia_smi = true;
  return machine.find(wanting(1, "/find", {"9"})) + " | " + machine.find(wanting(3)) + " | " +
         machine.find(wanting(1, ""));
}

std::string no_script(const profile_rules&) {
  auto request = wanting(1, "");
  request.resource = "fpga";
  return fake_machine{}.find(request);
}

std::string absent_script(const profile_rules&) { return fake_machine{}.find(wanting(1, "/absent")); }

std::string script_of_another_resource(const profile_rules&) {
  fake_machine machine;
  machine.answer = R"({"name": "fpga", "addresses": ["0"]})";
  return machine.find(wanting(1));
}

/// What is told of each of these answers of a script.
std::string scripts_that_fail(const profile_rules&) {
  std::string out;
  for (const auto* answer : {"", "GPU 0", R"({"addresses": ["0"]})", R"({"name": "gpu", "addresses": [0]})",
                             R"({"name": "gpu", "addresses": ["0", "0"]})", R"({"name": "gpu", "addresses": ["a b"]})",
                             R"({"name": "gpu", "addresses": ["0", )"}) {
    fake_machine machine;
    machine.answer = answer;
    out += (out.empty() ? "" : " | ") + machine.find(wanting(1));
  }
  return out;
}

std::string hanging_script(const profile_rules&) {
  const discovery_io io{[](const program_call&) -> result<program_output> {
                          return make_error(ec::cancelled, "\"/find\" had not ended after 10000 ms");
                        },
                        [](const std::string&) { return std::nullopt; },
                        [](const std::string&) { return std::nullopt; }};
  const auto found = discover(wanting(1), io);
  return found ? "found" : refused(found.error());
}

std::string none_for_one(const profile_rules&) {
  fake_machine machine;
  machine.answer = R"({"name": "gpu"})";
  return machine.find(wanting(1));
}

std::string script_of_a_job(const profile_rules& rules) {
  auto registry = registry_with("cores 1; cpus 1", rules);
  auto profile = profile_of("cores 2, gpu 1; gpu 1");
  profile.executor["gpu"].discovery_script = "/own";
  const auto known = registry.register_profile(profile);
  if (!known) return refused(known.error());
  std::string out;
  for (const auto& note : known->notes) out += note;
  return out;
}

std::string listed_before_discovered(const profile_rules&) {
  fake_machine machine;
  const auto found = machine.find(wanting(2, "/find", {"a", "b"}));
  return found + ", programs run: " + std::to_string(machine.runs);
}

std::string three_for_two(const profile_rules&) { return fake_machine{}.find(wanting(2)); }
std::string three_for_four(const profile_rules&) { return fake_machine{}.find(wanting(4)); }

std::string executor_of_a_profile(const profile_rules& rules) {
  auto registry = registry_with("cores 1, gpu 1; cpus 1", rules);
  const auto known = registry.register_profile(profile_of("cores 2, gpu 2; gpu 1"));
  carving_host host;
  host.name = "host";
  host.cores = 8;
  host.memory = std::int64_t{64} << 30;
  host.custom["gpu"] = {4, {"0", "1", "2", "3"}};
  carving hosts{{host}, "one host"};
  const auto placed = hosts.place(request_id{1}, known->content);
  if (!placed) return refused(placed.error());
  std::string out = "cores " + std::to_string(placed->capacity.cores) + ", gpu";
  for (const auto& address : placed->capacity.custom.at("gpu").addresses) out += " " + address;
  return out;
}

const table discovery_rows{
    "discovery",
    {
        {"RD-4", "amount 0 with a script", nothing_wanted, same("from …, programs run: 0")},
        {"RD-5", "a list with a script and a probe, a script with a probe, a probe", list_script_probe,
         same("9 from list | 0 1 2 from /find | 7 from nvidia-smi")},
        {"RD-6", "no script", no_script, same("refused: …fpga…discovery script…")},
        {"RD-6", "a script that is not there", absent_script, same("refused: …/absent…no such file")},
        {"RD-6", "a script that answers for fpga", script_of_another_resource,
         same("refused: …returned resource name fpga and gpu was expected")},
        {"RD-6", "scripts that print nothing, no JSON, no name, numbers, an address twice, one with a blank, half",
         scripts_that_fail,
         same("refused: …/find…expected {… | refused: …GPU 0… | refused: …it has no name… | refused: …list of strings… "
              "| "
              "refused: …twice… | refused: …a b…no blank… | refused: …not JSON…")},
        {"RD-6", "a script that hangs", hanging_script,
         same("refused: …/find…10000 ms (troupe.resources.discovery-timeout)")},
        {"RD-8", "two listed addresses and a script that finds others", listed_before_discovered,
         same("a b from list, programs run: 0")},
        {"RD-9", "3 found, 2 wanted", three_for_two, same("0 1 from /find; …2…")},
        {"RD-9", "3 found, 4 wanted", three_for_four, same("refused: …gpu: 4 addresses…3 (0, 1, 2, …")},
        {"RD-9", "none found, 1 wanted", none_for_one, same("refused: …gpu: 1 addresses…only 0 (from /find)")},
        {"RD-10", "a profile of a job with a script of its own", script_of_a_job,
         same("…gpu…\"/own\" is not run…troupe.executor.resource.gpu.discovery-script…")},
        {"RD-10", "2 gpus in the profile, 1 in the default one", executor_of_a_profile, same("cores 2, gpu 0 1")},
    }};

} // namespace
} // namespace troupe::conformance
