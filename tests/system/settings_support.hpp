#pragma once

/// What tests of settings share.

#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <troupe/runtime/config/settings.hpp>
#include <troupe/tests/support/test_cluster.hpp>

namespace troupe::system_tests {

/// Settings out of `key=value` alone. Throws where one is wrong.
inline settings settings_of(const std::vector<std::string>& assignments) {
  settings_builder builder{"/"};
  for (const auto& assignment : assignments)
    if (auto added = builder.add_argument(assignment); !added) throw std::runtime_error(added.error().message);
  auto built = builder.build();
  if (!built) throw std::runtime_error(built.error().message);
  return *built;
}

inline std::string read(const std::filesystem::path& path) {
  std::ifstream in{path};
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// A shell script in the folder. @returns its path
inline std::string script(const testing::temporary_directory& folder, const std::string& text) {
  const auto path = folder.path() + "/script";
  std::ofstream{path} << "#!/bin/sh\n" << text << '\n';
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path;
}

} // namespace troupe::system_tests
