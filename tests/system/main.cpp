// Every system test program: an executor or one of its own roles when started as one, else GoogleTest.

#include <gtest/gtest.h>

#include <troupe/tests/support/test_cluster.hpp>
#include <troupe/tests/system/roles.hpp>

int main(int argc, char** argv) {
  if (const auto code = troupe::testing::main_hook(argc, argv)) return *code;
  if (const auto code = troupe::system_tests::play_role(argc, argv)) return *code;
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
