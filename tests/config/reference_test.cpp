#include "support.hpp"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include <troupe/runtime/config/reference.hpp>

namespace troupe::testing {
namespace {

const std::string page = TROUPE_SOURCE_DIRECTORY "/docs/reference-keys.md";

TEST(key_reference, has_a_row_for_every_key) {
  const auto text = key_reference();
  for (const auto& entry : schema()) {
    EXPECT_THAT(text,
                ::testing::HasSubstr("| `" + std::string{entry.name} + "` | " + std::string{to_string(entry.type)}));
  }
}

/// With TROUPE_UPDATE_REFERENCE=1 in the environment the page is written instead.
TEST(key_reference, is_the_committed_page) {
  if (const char* update = std::getenv("TROUPE_UPDATE_REFERENCE"); update && std::string_view{update} == "1")
    std::ofstream{page} << key_reference();
  std::ifstream in{page};
  std::stringstream text;
  text << in.rdbuf();
  // Not EXPECT_EQ, which would print both pages.
  EXPECT_TRUE(text.str() == key_reference()) << "run test_config with TROUPE_UPDATE_REFERENCE=1 and commit " << page;
}

} // namespace
} // namespace troupe::testing
