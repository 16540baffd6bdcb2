#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/launcher/security.hpp>
#include <troupe/tests/support/patience.hpp>
#include <troupe/tests/transfer/listener.hpp>

namespace troupe {
namespace {

using ::testing::HasSubstr;

TEST(security, a_driver_whose_secret_is_not_known_is_told_from_none) {
  const testing_transfer::listener somebody{1, false};
  const auto unknown = unknown_secret({"127.0.0.1", somebody.port()}, testing::patience());
  EXPECT_EQ(unknown.code, ec::invalid_configuration);
  EXPECT_THAT(unknown.message, HasSubstr("asks for its secret: set troupe.security.secret-file"));
  const testing_transfer::silent_port silent;
  const auto nobody = unknown_secret({"127.0.0.1", silent.number()}, testing::patience());
  EXPECT_EQ(nobody.code, ec::unreachable);
  EXPECT_THAT(nobody.message, HasSubstr("nobody listens there"));
}

} // namespace
} // namespace troupe
