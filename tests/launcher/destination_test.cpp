#include <troupe/launcher/destination.hpp>

#include <filesystem>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <troupe/tests/support/test_cluster.hpp>

namespace troupe::destination_tests {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

settings settings_of(const std::vector<std::string>& assignments, const char* variable = nullptr) {
  settings_builder builder{"/"};
  const char* const environment[] = {variable, nullptr};
  if (variable) {
    EXPECT_TRUE(builder.add_environment(environment));
  }
  for (const auto& assignment : assignments) EXPECT_TRUE(builder.add_argument(assignment)) << assignment;
  return *builder.build();
}

session_record running(const std::string& name, const std::string& directory, const std::string& id = "abcd") {
  session_record r;
  r.name = name;
  r.address = "127.0.0.1:7";
  r.session_id = id;
  r.secret_file = "/s/secret";
  r.directory = directory;
  r.pid = ::getpid();
  r.started = process_start(r.pid);
  return r;
}

TEST(destination, is_said_with_what_has_decided_it) {
  EXPECT_EQ(to_string(destination_of(settings_of({"troupe.master=local[2]"}), {}, "", {})),
            "jobs go to local[2] (--master)");
  EXPECT_EQ(to_string(destination_of(settings_of({}, "TROUPE_CONF_MASTER=local[3]"), {}, "", {})),
            "jobs go to local[3] (environment variable TROUPE_CONF_MASTER)");
  settings_builder program{"/"};
  ASSERT_TRUE(program.add_default("troupe.master=local[4]"));
  EXPECT_EQ(to_string(destination_of(*program.build(), {}, "", {})),
            "jobs go to local[4] (the default of the program)");
  const auto by_hand = running("by-hand", "/r/abcd");
  const auto chosen = settings_of({"troupe.master=127.0.0.1:7", "troupe.run-directory=/r"});
  EXPECT_EQ(
      to_string(destination_of(chosen, by_hand, "", {})),
      "jobs go to 127.0.0.1:7 (cluster by-hand, the one that runs in /r: tasks see its environment, not this shell's)");
  EXPECT_EQ(to_string(destination_of(chosen, by_hand, "by", {})),
            "jobs go to 127.0.0.1:7 (cluster by-hand, by --cluster=by)");
}

TEST(destination, of_a_job_without_a_word_is_said_with_the_clusters_that_it_could_have_meant) {
  testing::temporary_directory ours;
  testing::temporary_directory usual;
  const auto alone = settings_of({"troupe.run-directory=" + ours.path()});
  EXPECT_EQ(to_string(destination_of(alone, {}, "", {usual.path()})), "jobs go to local[*] (nothing else was said)");
  for (const auto* base : {&ours, &usual}) {
    const auto session = running(base == &ours ? "here" : "there", base->path() + "/abcd", base == &ours ? "1" : "2");
    std::filesystem::create_directory(session.directory);
    std::filesystem::permissions(session.directory, std::filesystem::perms::owner_all);
    ASSERT_TRUE(write_session(session));
  }
  const auto where = destination_of(alone, {}, "", {usual.path()});
  EXPECT_THAT(where.others, SizeIs(2));
  EXPECT_THAT(destination_of(alone, {}, "", {usual.path() + "/", usual.path()}).others, SizeIs(2)) << "each once";
  EXPECT_THAT(to_string(where),
              ::testing::HasSubstr("; cluster there of yours runs as well: --master=127.0.0.1:7 --conf "
                                   "troupe.security.secret-file=/s/secret"));
  EXPECT_THAT(destination_of(settings_of({"troupe.master=local[2]", "troupe.run-directory=" + ours.path()}), {}, "",
                             {usual.path()})
                  .others,
              IsEmpty())
      << "a word was said";
}

} // namespace
} // namespace troupe::destination_tests
