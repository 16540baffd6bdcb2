// The main of a GoogleTest program that has test clusters: an executor of one is the same program, and runs no test.
// CMake: `target_link_libraries(my_test PRIVATE Troupe::testing_main)` compiles it into the program.

#include <gtest/gtest.h>

#include <troupe/tests/support/test_cluster.hpp>

int main(int argc, char** argv) {
  if (const auto code = troupe::testing::main_hook(argc, argv)) return *code;
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
