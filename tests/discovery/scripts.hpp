#pragma once

/// A folder of its own for each test, with programs in it.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

namespace troupe {

class scripts_test : public ::testing::Test {
protected:
  scripts_test() {
    std::string name = (std::filesystem::temp_directory_path() / "troupe-discovery-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder = name;
  }
  ~scripts_test() override { std::filesystem::remove_all(folder); }

  /// Path of a new executable file.
  std::string script(const std::string& name, const std::string& text) const {
    const auto path = folder / name;
    std::ofstream{path} << text;
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path.string();
  }

  std::filesystem::path folder;
};

} // namespace troupe
