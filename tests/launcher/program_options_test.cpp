#include <troupe/launcher/program_options.hpp>

#include <filesystem>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <troupe/launcher/session_registry.hpp>
#include <troupe/tests/support/test_cluster.hpp>

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

result<program_options> parse(std::vector<std::string> words) {
  words.insert(words.begin(), "program");
  std::vector<char*> pointers;
  for (auto& word : words) pointers.push_back(word.data());
  return parse_program_options(static_cast<int>(pointers.size()), pointers.data(), {});
}

TEST(program_options, end_where_those_of_the_program_begin) {
  const auto options = parse({"--master", "local[3]", "--conf=troupe.app.name=x", "--own", "--master", "local[4]"});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->effective.get(keys::master), "local[3]");
  EXPECT_EQ(options->effective.get(keys::app_name), "x");
  EXPECT_THAT(options->arguments, ElementsAre("--own", "--master", "local[4]"));
  EXPECT_THAT(parse({"--", "--troupe-hlep"})->arguments, ElementsAre("--troupe-hlep"));
}

TEST(program_options, are_explained_with_what_tasks_see) {
  const auto options = parse({"--troupe-help", "--troupe-hlep"});
  ASSERT_TRUE(options && options->help);
  for (const auto* name : {"--master WHERE", "--cluster NAME", "--conf KEY=VALUE", "--config-file FILE"})
    EXPECT_THAT(*options->help, HasSubstr(name));
  EXPECT_THAT(*options->help,
              HasSubstr("Tasks see what they capture; global variables are as at the start of a process."));
}

TEST(program_options, that_begin_as_ours_and_are_none_are_refused) {
  const auto wrong = parse({"--troupe-hlep"});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ec::invalid_configuration);
  EXPECT_THAT(wrong.error().message, HasSubstr("there is no option --troupe-hlep; see --troupe-help"));
}

TEST(program_options, choose_a_cluster_by_its_name) {
  const testing::temporary_directory base;
  session_record running;
  running.name = "mine";
  running.address = "127.0.0.1:7";
  running.session_id = "abcd1";
  running.secret_file = base.path() + "/a $ecret";
  running.directory = base.path() + "/abcd1";
  running.pid = getpid();
  running.started = process_start(getpid());
  std::filesystem::create_directory(running.directory);
  ASSERT_TRUE(write_session(running));
  const auto with = [&](const std::string& which) {
    return parse({"--cluster", which, "--conf", "troupe.run-directory=" + base.path()});
  };
  const auto options = with("mine");
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->effective.get(keys::master), "127.0.0.1:7");
  EXPECT_EQ(options->effective.get(keys::security_secret_file), running.secret_file);
  EXPECT_EQ(with("yours").error().code, ec::unreachable);
}

} // namespace
} // namespace troupe
