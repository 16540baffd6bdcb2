#include <troupe/launcher/settings_source.hpp>

#include <filesystem>

#include <unistd.h>

#include <troupe/runtime/config/path_text.hpp>

namespace troupe {

result<loaded_settings> load_settings(const settings_source& source) {
  loaded_settings out;
  std::error_code unknown;
  settings_builder builder{std::filesystem::current_path(unknown).string()};
  for (const auto& assignment : source.defaults)
    if (auto added = builder.add_default(assignment); !added) return added.error();
  for (const auto& file : source.files) {
    // A shell expands nothing in --config-file=~/x.
    auto path = std::filesystem::exists(file, unknown) ? result<std::string>{file} : expand_path(file);
    if (!path) return make_error(path.error().code, "--config-file " + file + ": " + path.error().message);
    auto document = load_yaml(*path);
    if (!document) return document.error();
    if (auto added = builder.add_file(*document); !added) return added.error();
    out.documents.push_back(std::move(*document));
  }
  if (auto added = builder.add_environment(environ); !added) return added.error();
  for (const auto& assignment : source.assignments)
    if (auto added = builder.add_argument(assignment); !added) return added.error();
  auto built = builder.build();
  if (!built) return built.error();
  out.effective = std::move(*built);
  return out;
}

void add_cluster(settings_source& source, const settings& s, const session_record& cluster) {
  source.assignments.push_back("troupe.master=" + cluster.address);
  if (s.get(keys::security_secret_file).empty())
    source.assignments.push_back("troupe.security.secret-file=" + as_path_text(cluster.secret_file));
}

} // namespace troupe
