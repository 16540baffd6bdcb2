#include <troupe/launcher/storage_directory.hpp>

#include <unistd.h>

namespace troupe {

result<std::optional<run_directory>> make_storage_directory(const settings& s, const std::string& name) {
  const auto& where = s.get(keys::storage_directory);
  if (where.empty()) return std::optional<run_directory>{};
  // The directory itself may be everybody's, as scratch disks are.
  const auto base = where + "/troupe-" + std::to_string(geteuid());
  run_directory::sweep(base);
  auto made = run_directory::create(base, name, keys::storage_directory.name);
  if (!made) return made.error();
  return std::optional{std::move(*made)};
}

} // namespace troupe
