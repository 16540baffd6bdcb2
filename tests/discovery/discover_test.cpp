#include <troupe/runtime/discovery/discover.hpp>

#include <map>
#include <string>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include "scripts.hpp"

namespace troupe {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A machine that consists of answers.
struct fake_machine {
  std::map<std::string, result<program_output>> programs; ///< by path
  std::map<std::string, std::string> variables;
  std::vector<std::string> ran;

  discovery_io io() {
    return {[this](const program_call& call) -> result<program_output> {
              std::string line;
              for (const auto& word : call.words) line += (line.empty() ? "" : " ") + word;
              ran.push_back(line);
              const auto found = programs.find(call.words.front());
              return found != programs.end() ? found->second : make_error(ec::not_found, "doesn't exist");
            },
            [this](const std::string& name) {
              const auto found = variables.find(name);
              return found != variables.end() ? std::optional{found->second} : std::nullopt;
            },
            [this](const std::string& name) {
              const auto path = "/usr/bin/" + name;
              return programs.count(path) != 0 ? std::optional{path} : std::nullopt;
            }};
  }
  result<discovered_resource> find(discovery_request request) { return discover(request, io()); }
  /// GPUs 0 … n-1, as nvidia-smi lists them.
  void install_gpus(int n) {
    std::string lines;
    for (int i = 0; i < n; ++i) lines += std::to_string(i) + "\n";
    programs.insert_or_assign("/usr/bin/nvidia-smi", program_output{0, lines, ""});
  }
};

discovery_request gpus(std::optional<std::int64_t> amount = std::nullopt) { return {"gpu", amount, {}, {}}; }
discovery_request scripted(std::string resource, std::optional<std::int64_t> amount = std::nullopt) {
  return {std::move(resource), amount, {}, "/opt/find"};
}

TEST(discovery, a_list_wins_over_everything) {
  fake_machine machine;
  machine.install_gpus(8);
  const auto found = machine.find({"gpu", std::nullopt, {"b", "a"}, "/opt/find"}).value();
  EXPECT_EQ(found, (discovered_resource{{"b", "a"}, "list", {}}));
  EXPECT_THAT(machine.ran, IsEmpty());
}

TEST(discovery, a_list_is_checked) {
  fake_machine machine;
  EXPECT_THAT(machine.find({"gpu", {}, {"0", "0"}, {}}).error().message,
              HasSubstr("gpu address \"0\" is listed twice"));
  EXPECT_THAT(machine.find({"gpu", {}, {"0 1"}, {}}).error().message, HasSubstr("gpu address \"0 1\": an address has"));
}

TEST(discovery, what_the_inherited_mask_hides_is_not_given_out) {
  fake_machine machine;
  machine.variables["CUDA_VISIBLE_DEVICES"] = "5,6";
  EXPECT_EQ(machine.find({"gpu", {}, {"6", "fake-0"}, {}}).value().addresses,
            (std::vector<std::string>{"6", "fake-0"}));
  EXPECT_THAT(machine.find({"gpu", {}, {"5", "0"}, {}}).error().message,
              HasSubstr("gpu address \"0\" is hidden here by CUDA_VISIBLE_DEVICES=5,6"));
  EXPECT_TRUE(machine.find({"fpga", {}, {"0"}, {}})) << "no GPU";
  machine.programs.insert(
      {"/opt/find", program_output{0, R"({"name": "gpu", "addresses": ["0", "5", "6", "7"]})", ""}});
  const auto by_script = machine.find(scripted("gpu", 2)).value();
  EXPECT_EQ(by_script.addresses, (std::vector<std::string>{"5", "6"}));
  EXPECT_THAT(by_script.notes, ElementsAre(HasSubstr("2 addresses of /opt/find are left out")));
}

TEST(discovery, an_amount_of_zero_looks_nowhere) {
  fake_machine machine;
  EXPECT_THAT(machine.find(scripted("gpu", 0)).value().addresses, IsEmpty());
  EXPECT_THAT(machine.find({"fpga", 0, {}, {}}).value().addresses, IsEmpty());
  EXPECT_THAT(machine.ran, IsEmpty());
}

TEST(discovery, a_script_tells_the_addresses) {
  fake_machine machine;
  machine.programs.insert_or_assign("/opt/find",
                                    program_output{0, R"({"name": "fpga", "addresses": ["f1", "f0"]})", ""});
  EXPECT_EQ(machine.find(scripted("fpga")).value(), (discovered_resource{{"f1", "f0"}, "/opt/find", {}}));
  EXPECT_THAT(machine.ran, ElementsAre("/opt/find"));
}

TEST(discovery, takes_the_first_of_more_addresses_and_says_so) {
  fake_machine machine;
  machine.programs.insert_or_assign("/opt/find",
                                    program_output{0, R"({"name": "gpu", "addresses": ["2", "0", "1"]})", ""});
  const auto found = machine.find(scripted("gpu", 2)).value();
  EXPECT_THAT(found.addresses, ElementsAre("2", "0"));
  EXPECT_THAT(found.notes, ElementsAre("resource gpu: only the first 2 of 3 addresses are used"));
  EXPECT_THAT(machine.find(scripted("gpu", 3)).value().notes, IsEmpty());
}

TEST(discovery, fewer_addresses_are_an_error_that_lists_them) {
  fake_machine machine;
  machine.programs.insert_or_assign("/opt/find",
                                    program_output{0, R"({"name": "gpu", "addresses": ["2", "0", "1"]})", ""});
  const auto found = machine.find(scripted("gpu", 4));
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ec::infeasible);
  EXPECT_EQ(found.error().message,
            "resource gpu: 4 addresses are needed and there are only 3 (2, 0, 1, from /opt/find)");
  machine.programs.insert_or_assign("/opt/find", program_output{0, R"({"name": "gpu"})", ""});
  EXPECT_EQ(machine.find(scripted("gpu", 4)).error().message,
            "resource gpu: 4 addresses are needed and there are only 0 (from /opt/find)");
}

TEST(discovery, errors_of_a_script_name_it_its_code_and_its_first_words) {
  fake_machine machine;
  const auto fault = [&](result<program_output> ran) {
    machine.programs.insert_or_assign("/opt/find", std::move(ran));
    const auto found = machine.find(scripted("gpu"));
    EXPECT_FALSE(found);
    EXPECT_EQ(found.error().code, ec::invalid_configuration) << "exit code 2: not a job has failed";
    EXPECT_THAT(found.error().message, HasSubstr("discovery script \"/opt/find\" for gpu"));
    return found.error().message;
  };
  EXPECT_THAT(fault(program_output{3, "", "no driver\nsecond line"}),
              HasSubstr("ended with exit code 3: \"no driver\""));
  EXPECT_THAT(fault(program_output{1, R"({"name": "gpu"})", ""}), ::testing::EndsWith("ended with exit code 1"));
  EXPECT_THAT(fault(program_output{0, "GPU 0", ""}), HasSubstr("cannot read \"GPU 0\" as a resource"));
  EXPECT_THAT(fault(program_output{0, R"({"name": "fpga"})", ""}),
              HasSubstr("returned resource name fpga and gpu was expected"));
  EXPECT_THAT(fault(make_error(ec::cancelled, "\"/opt/find\" had not ended after 10000 ms")),
              HasSubstr("had not ended after 10000 ms (troupe.resources.discovery-timeout)"));
  EXPECT_THAT(fault(make_error(ec::overloaded, "\"/opt/find\" prints more than 1048576 bytes")),
              HasSubstr("prints more than"));
}

TEST(discovery, other_resources_need_a_list_or_a_script) {
  fake_machine machine;
  const auto found = machine.find({"fpga", 1, {}, {}});
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ec::invalid_configuration);
  EXPECT_THAT(found.error().message, HasSubstr("\"fpga\" has neither a list of addresses nor a discovery script"));
}

TEST(discovery, probing_finds_the_devices_of_nvidia_smi) {
  fake_machine machine;
  machine.install_gpus(3);
  EXPECT_EQ(machine.find(gpus()).value(), (discovered_resource{{"0", "1", "2"}, "nvidia-smi", {}}));
  EXPECT_THAT(machine.ran, ElementsAre("/usr/bin/nvidia-smi --query-gpu=index --format=csv,noheader"));
}

TEST(discovery, probing_without_nvidia_smi_finds_none) {
  fake_machine machine;
  const auto found = machine.find(gpus()).value();
  EXPECT_THAT(found.addresses, IsEmpty());
  EXPECT_EQ(found.origin, "none");
  EXPECT_EQ(machine.find(gpus(1)).error().message,
            "resource gpu: 1 addresses are needed and there are only 0; nvidia-smi is not in PATH");
}

TEST(discovery, a_probe_that_fails_finds_none_and_says_why) {
  fake_machine machine;
  const auto note = [&](result<program_output> ran) {
    machine.programs.insert_or_assign("/usr/bin/nvidia-smi", std::move(ran));
    const auto found = machine.find(gpus()).value();
    EXPECT_THAT(found.addresses, IsEmpty());
    return found.notes.empty() ? std::string{} : found.notes.front();
  };
  EXPECT_THAT(note(program_output{9, "", "no communication\n"}), HasSubstr("exit code 9: \"no communication\""));
  EXPECT_THAT(note(program_output{0, "No devices were found\n", ""}), HasSubstr("\"No devices were found\""));
  EXPECT_THAT(note(make_error(ec::cancelled, "hangs")), HasSubstr("hangs"));
  EXPECT_EQ(note(program_output{0, "", ""}), "");
}

TEST(discovery, probing_respects_the_inherited_mask) {
  fake_machine machine;
  machine.install_gpus(4);
  const auto with_mask = [&](std::string mask) {
    machine.variables["CUDA_VISIBLE_DEVICES"] = std::move(mask);
    return machine.find(gpus()).value();
  };
  EXPECT_THAT(with_mask("3,1").addresses, ElementsAre("3", "1"));
  EXPECT_THAT(with_mask("3,1").notes, Contains("CUDA_VISIBLE_DEVICES leaves 2 of 4 devices visible"));
  EXPECT_THAT(with_mask("").addresses, IsEmpty());
  EXPECT_THAT(with_mask("-1").addresses, IsEmpty());
  EXPECT_THAT(with_mask("2,7,1").addresses, ElementsAre("2")) << "an index of no device ends the list";
  EXPECT_THAT(with_mask("GPU-a,0").addresses, ElementsAre("GPU-a", "0"));
  machine.install_gpus(0);
  EXPECT_THAT(with_mask("GPU-a").addresses, IsEmpty()) << "no device, whatever the mask says";
}

class discovery_of_this_machine : public scripts_test {};

TEST_F(discovery_of_this_machine, runs_a_real_script) {
  const auto path = script("find", "#!/bin/sh\necho '{\"name\": \"gpu\", \"addresses\": [\"0\", \"1\", \"2\"]}'\n");
  EXPECT_THAT(discover({"gpu", 2, {}, path}, system_discovery_io()).value().addresses, ElementsAre("0", "1"));
  const auto failing = script("fail", "#!/bin/sh\necho no driver >&2\nexit 5\n");
  EXPECT_THAT(discover({"gpu", 2, {}, failing}, system_discovery_io()).error().message,
              HasSubstr("fail\" for gpu ended with exit code 5: \"no driver\""));
  EXPECT_THAT(discover({"gpu", 2, {}, (folder / "absent").string()}, system_discovery_io()).error().message,
              HasSubstr("absent\" doesn't exist"));
}

TEST_F(discovery_of_this_machine, finds_programs_by_absolute_folders_of_path_only) {
  const auto path = script("nvidia-smi", "#!/bin/sh\necho 0\necho 1\n");
  const std::string before = std::getenv("PATH");
  ::setenv("PATH", ("relative::" + folder.string() + ":" + before).c_str(), 1);
  EXPECT_EQ(system_discovery_io().find_program("nvidia-smi"), path);
  ::setenv("PATH", "", 1);
  const auto here = std::filesystem::current_path();
  std::filesystem::current_path(folder);
  EXPECT_EQ(system_discovery_io().find_program("nvidia-smi"), std::nullopt);
  std::filesystem::current_path(here);
  ::setenv("PATH", before.c_str(), 1);
}

} // namespace
} // namespace troupe
