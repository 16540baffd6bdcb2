#include <troupe/launcher/storage_directory.hpp>

#include <unistd.h>

namespace troupe {

std::string storage_base(const settings& s) {
  const auto& where = s.get(keys::storage_directory);
  // The directory itself may be everybody's, as scratch disks are.
  return where.empty() ? std::string{} : where + "/troupe-" + std::to_string(geteuid());
}

result<std::optional<run_directory>> make_storage_directory(const settings& s, const std::string& name) {
  const auto base = storage_base(s);
  if (base.empty()) return std::optional<run_directory>{};
  run_directory::sweep(base);
  auto made = run_directory::create(base, name, keys::storage_directory.name);
  if (!made) return made.error();
  return std::optional{std::move(*made)};
}

} // namespace troupe
