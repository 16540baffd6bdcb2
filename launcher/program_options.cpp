#include <troupe/launcher/program_options.hpp>

#include <optional>
#include <string_view>

#include <troupe/launcher/run_directory.hpp>
#include <troupe/launcher/settings_source.hpp>

namespace troupe {
namespace {

constexpr const char* help_text = R"(Options of Troupe, before the program's own:
  --master WHERE       local[N], local[*], local-cluster[HOSTS,CORES,MEMORY], or HOST:PORT of a driver
                       (the same as --conf troupe.master=WHERE)
  --cluster NAME       a cluster of yours that runs on this machine, as `troupe cluster status` names it
  --conf KEY=VALUE     one setting; may be repeated (see docs/reference-keys.md)
  --config-file FILE   settings from a YAML file; one with a `node` section makes this process a driver, or an
                       executor that can run this program's own stages
  --troupe-help        this text
  --                   everything that follows is the program's own
Executors of a local cluster are this program, started again with the same arguments: its main is run in every executor,
up to where its job would begin. Tasks see what they capture; global variables are as at the start of a process.
Exit codes: 0 ok, 1 job failed, 2 usage or configuration, 3 infeasible, 4 cluster unreachable, 130 interrupted.
)";

} // namespace

result<program_options> parse_program_options(int argc, char** argv, const std::vector<std::string>& defaults) {
  program_options out;
  settings_source source;
  source.defaults = defaults;
  std::optional<std::string> cluster;
  int i = 1;
  for (; i < argc; ++i) {
    std::string_view word = argv[i];
    if (word == "--") {
      ++i;
      break;
    }
    if (word == "--troupe-help") {
      out.help = help_text;
      return out;
    }
    std::string_view name = word.substr(0, word.find('='));
    if (name != "--master" && name != "--conf" && name != "--config-file" && name != "--cluster") {
      if (name.starts_with("--troupe"))
        return make_error(ec::invalid_configuration, "there is no option " + std::string{name} + "; see --troupe-help");
      break;
    }
    std::string value;
    if (name.size() < word.size()) {
      value = word.substr(name.size() + 1);
    } else if (i + 1 < argc) {
      value = argv[++i];
    } else {
      return make_error(ec::invalid_configuration, std::string{name} + " needs a value; see --troupe-help");
    }
    if (name == "--cluster")
      cluster = std::move(value);
    else if (name == "--config-file")
      source.files.push_back(std::move(value));
    else
      source.assignments.push_back(name == "--master" ? "troupe.master=" + value : std::move(value));
  }
  for (; i < argc; ++i) out.arguments.emplace_back(argv[i]);
  auto loaded = load_settings(source);
  if (loaded && cluster) {
    const auto base = run_directory::base_of(loaded->effective.get(keys::run_directory));
    const auto record = choose_session(running_sessions(base), *cluster);
    if (!record) return record.error();
    add_cluster(source, loaded->effective, *record);
    loaded = load_settings(source);
    out.cluster = *record;
    out.asked = *cluster;
  }
  if (!loaded) return loaded.error();
  for (const auto& document : loaded->documents) {
    if (!document.root.find("node")) {
      if (auto good = check_root(document, {}); !good) return good.error();
      continue;
    }
    auto node = read_node(document);
    if (!node) return node.error();
    out.node = program_options::node_file{std::move(*node), document.file};
  }
  out.effective = std::move(loaded->effective);
  return out;
}

} // namespace troupe
