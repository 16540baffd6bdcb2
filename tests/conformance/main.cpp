// `test_conformance --rules` prints every rule with the policies under which it has a row; else GoogleTest.

#include <iostream>
#include <string_view>

#include <gtest/gtest.h>

#include <troupe/tests/conformance/rules_page.hpp>

namespace {

void print_rules() {
  const auto& rows = troupe::conformance::rules_with_rows();
  for (const auto& rule : troupe::conformance::all_rules()) {
    std::cout << rule;
    if (const auto found = rows.find(rule); found != rows.end())
      for (const auto policy : found->second) std::cout << ' ' << troupe::conformance::to_string(policy);
    std::cout << '\n';
  }
}

} // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view{argv[1]} == "--rules") {
    print_rules();
    return 0;
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
