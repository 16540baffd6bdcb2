#include "support.hpp"

#include <array>
#include <random>
#include <set>

#include <troupe/runtime/config/cluster_file.hpp>
#include <troupe/runtime/config/job_file.hpp>
#include <troupe/runtime/config/node_file.hpp>

/// Valid files with random damage: every reader answers with a value or with an error that names a place, whatever it
/// is given. The seed is fixed, so that a failure can be replayed.

namespace troupe::testing {
namespace {

constexpr std::array<std::string_view, 4> originals{
    R"(node: {role: executor, driver: 127.0.0.1:7077}
troupe:
  executor:
    cores: 2
    resource: {gpu: {amount: 2, addresses: [0, 1]}}
  task.cpus: 1/3
  log: {level: info, level.driver: debug}
caf: {scheduler: {policy: sharing}}
)",
    R"(cluster:
  hosts:
    - {name: left, cores: 4, memory: 8g}
    - {name: right, cores: 2, memory: 4g, resources: {gpu: [a, b], fpga: 2}}
  profiles:
    gpu: {executor: {cores: 1, resource: {gpu: {amount: 1}}}, task: {cpus: 1}}
  executors: [{profile: gpu, count: 2}]
  elastic: false
)",
    R"(name: reads
profiles:
  io: {executor: {cores: 2, memory: 2g}, task: {cpus: 0.5}}
stages:
  trim: {profile: io, for-each: "data/*.fq", run: [./trim, "{input}", -o, "{output}"]}
  align: {after: {trim: one-to-one}, run: [./align, "{input}", "{output}"], outputs: ["{stem}.x"]}
  report: {after: [align], run: [sh, -c, 'cat "$@"', "{inputs}"], environment: {LC_ALL: C}}
  many: {tasks: 8, run: [x, "{partition}"]}
)",
    R"(name: block
stages:
  a:
    run:
      - sh
      - -c
      - |
        echo one
        echo two
    outputs:
      - "a b"
)"};

constexpr std::array<std::string_view, 24> fragments{
    ":",    ": ",   "- ",  "{",  "}",    "[",  "]",    "'",     "\"", "#", "&a ",
    "*a",   "<<: ", "|\n", "\n", "\n  ", "\t", "!!x ", "---\n", "?",  "~", "99999999999999999999",
    "\xff", "\\0"};

std::string damage(std::mt19937_64& random, std::string text) {
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  for (std::size_t rounds = 1 + below(4); rounds > 0; --rounds) {
    const auto at = below(text.size() + 1);
    const auto length = std::min(text.size() - at, 1 + below(12));
    switch (below(5)) {
    case 0: text.erase(at, length); break;
    case 1: text.insert(at, fragments[below(fragments.size())]); break;
    case 2: text.insert(at, text.substr(below(text.size() + 1), 1 + below(30))); break;
    case 3: text.insert(at, text.substr(at, length)); break;
    default:
      if (at < text.size()) text[at] = static_cast<char>(below(256));
    }
  }
  return text;
}

/// An error of a reader points at a line of the file, or at a family of settings as a whole.
void expect_placed(const error& e, const std::string& text) {
  EXPECT_EQ(e.code, ec::invalid_configuration) << text;
  EXPECT_TRUE(e.message.starts_with("x.yaml:") || e.message.starts_with("the default profile") ||
              e.message.starts_with("default: "))
      << e.message << "\n"
      << text;
}

TEST(mutated_files, never_harm_a_reader) {
  std::mt19937_64 random{20240817};
  const path_finder find = [](const std::string&, const std::string& pattern) -> result<std::vector<std::string>> {
    return std::vector<std::string>{"/d/" + pattern + "1", "/d/" + pattern + "2"};
  };
  std::size_t parsed = 0;
  std::size_t accepted = 0;
  std::set<std::string> messages;
  for (int i = 0; i < 8'000; ++i) {
    const auto text = damage(random, std::string{originals[static_cast<std::size_t>(i) % originals.size()]});
    const auto document = parse_yaml(text, "x.yaml");
    if (!document) {
      expect_placed(document.error(), text);
      messages.insert(document.error().message);
      continue;
    }
    ++parsed;
    const auto take = [&](const auto& outcome) {
      accepted += outcome ? 1 : 0;
      if (outcome) return;
      expect_placed(outcome.error(), text);
      messages.insert(outcome.error().message);
    };
    take(read_node(*document));
    take(read_cluster(*document, "/d"));
    take(read_job(*document, "/d", {4}, find));
    settings_builder builder{"/d"};
    if (const auto added = builder.add_file(*document); added)
      take(builder.build());
    else
      take(added);
    if (HasFailure()) return;
  }
  // The damage must neither always be fatal nor never show, or the loop would prove nothing.
  EXPECT_GT(parsed, 800u);
  EXPECT_GT(accepted, 400u);
  EXPECT_GT(messages.size(), 300u);
}

} // namespace
} // namespace troupe::testing
