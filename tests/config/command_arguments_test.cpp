#include "support.hpp"

#include <troupe/runtime/scheduling/command_arguments.hpp>

namespace troupe::testing {
namespace {

TEST(command_arguments, survive_the_way_there) {
  for (const auto& arguments : {command_arguments{}, command_arguments{{"/a", "/b c"}, {"d", "e/f"}},
                                command_arguments{{}, {std::string(300, 'x')}}}) {
    const auto back = decode_command_arguments(encode_command_arguments(arguments));
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(*back, arguments);
  }
}

TEST(command_arguments, outputs_are_read_alone_as_with_inputs) {
  const auto bytes = encode_command_arguments({{"/in", "/other"}, {"one", "a/b"}});
  const auto outputs = decode_outputs(bytes);
  ASSERT_TRUE(outputs);
  EXPECT_EQ(*outputs, (std::vector<std::string>{"one", "a/b"}));
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(decode_outputs(std::string_view{bytes}.substr(0, length))) << length;
  EXPECT_FALSE(decode_outputs(bytes + '\0'));
  EXPECT_FALSE(decode_outputs(encode_command_arguments({{"/in"}, {"../x"}})));
}

TEST(command_arguments, cut_or_longer_bytes_are_malformed) {
  const auto bytes = encode_command_arguments({{"/a", "/b"}, {"c"}});
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    const auto cut = decode_command_arguments(std::string_view{bytes}.substr(0, length));
    ASSERT_FALSE(cut) << length;
    EXPECT_EQ(cut.error().code, ec::malformed);
  }
  EXPECT_FALSE(decode_command_arguments(bytes + '\0'));
  EXPECT_FALSE(decode_command_arguments("\xff\xff\xff\xff"));
  EXPECT_FALSE(decode_command_arguments(std::string_view{"\1\0\0\0\xff\xff\xff\x7f"
                                                         "a",
                                                         9}));
}

TEST(command_arguments, that_leave_their_place_are_malformed) {
  for (const std::string bad : {"", "/a", "../a", "a/../b", "a/..", "./a", "a//b", "a/", "stdout", "stderr", ".troupe-",
                                ".troupe-s-1/a", ".troupe", ".troupe/s-1/0.0-7"}) {
    EXPECT_FALSE(is_output_name(bad)) << bad;
    EXPECT_FALSE(decode_command_arguments(encode_command_arguments({{}, {bad}}))) << bad;
  }
  EXPECT_FALSE(is_output_name(std::string_view{"a\0b", 3}));
  for (const std::string good :
       {"a", "a/b", "...", "a..b", ".hidden", "d/stdout", ".troup", ".trouped", "d/.troupe-a", "d/.troupe"})
    EXPECT_TRUE(is_output_name(good)) << good;
  EXPECT_FALSE(decode_command_arguments(encode_command_arguments({{"a"}, {}})));
  EXPECT_FALSE(decode_command_arguments(encode_command_arguments({{""}, {}})));
}

TEST(command_arguments, tell_without_being_read_whether_they_name_outputs) {
  const auto both = encode_command_arguments({{"/a", "/b"}, {"c", "d/e"}});
  EXPECT_TRUE(has_outputs(both));
  EXPECT_TRUE(has_outputs(encode_command_arguments({{}, {"c"}})));
  EXPECT_FALSE(has_outputs(encode_command_arguments({{"/a"}, {}})));
  EXPECT_FALSE(has_outputs(encode_command_arguments({})));
  for (std::size_t length = 0; length < both.size(); ++length)
    EXPECT_FALSE(has_outputs(std::string_view{both}.substr(0, length))) << length;
  EXPECT_FALSE(has_outputs(both + '\0'));
  EXPECT_FALSE(has_outputs("\xff\xff\xff\xff"));
  EXPECT_FALSE(has_outputs(std::string_view{"\0\0\0\0\xff\xff\xff\x7f"
                                            "a",
                                            9}));
}

} // namespace
} // namespace troupe::testing
