#include <troupe/launcher/replaced_outputs.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/runtime/scheduling/command_arguments.hpp>

namespace troupe {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

stage_spec making(const char* stage_name, const std::string& directory, const std::string& name) {
  stage_spec stage;
  stage.name = stage_name;
  stage.program = command_program{{"true"}, {}, "/", directory};
  auto arguments = std::make_shared<packed_column>();
  arguments->push_back(encode_command_arguments({{}, {name}}));
  stage.arguments = arguments;
  return stage;
}

/// @returns why a job that makes this file, and another one, is refused; "" where it is not
std::string refusal(const std::string& directory, const std::string& name, const std::string& other_directory = "",
                    const std::string& other = "") {
  job_spec job;
  job.name = "job";
  job.stages.push_back(making("make", directory, name));
  if (!other.empty()) job.stages.push_back(making("more", other_directory, other));
  const auto checked = check_replaced(job, "/job.yaml");
  return checked ? "" : checked.error().message;
}

/// --overwrite takes all of them.
TEST(replaced_outputs, are_all_told_at_once) {
  const auto why = refusal("/proc/self", "status", "/proc/self", "fd");
  EXPECT_THAT(why, HasSubstr("stage make: its output /proc/self/status would replace"));
  EXPECT_THAT(why, HasSubstr("\nstage more: a folder lies at its output /proc/self/fd"));
}

/// As on file servers of old. The kernel's own files have no attributes either.
TEST(replaced_outputs, are_the_users_where_nothing_tells_who_has_made_them) {
  EXPECT_THAT(refusal("/proc/self", "status"),
              HasSubstr("stage make: its output /proc/self/status would replace what is there, and nothing tells"));
  EXPECT_EQ(refusal("/proc/self", "nothing"), "");
  EXPECT_EQ(refusal("/proc/no-such-folder", "status"), "");
}

TEST(replaced_outputs, are_found_in_folders_that_cannot_be_listed) {
  std::string folder = (fs::temp_directory_path() / "troupe-test-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  std::ofstream{folder + "/o"} << "the only copy";
  fs::permissions(folder, fs::perms::group_exec | fs::perms::others_exec | fs::perms::owner_exec);
  const auto before = ::setfsuid(::geteuid() == 0 ? 65534 : ::geteuid());
  struct stat status {};
  const bool is_seen = ::lstat(folder.c_str(), &status) == 0; // not below a private TMPDIR
  const auto why = refusal(folder, "o");
  EXPECT_EQ(refusal(folder, "another"), "");
  ::setfsuid(static_cast<uid_t>(before));
  if (is_seen) EXPECT_THAT(why, HasSubstr("stage make: its output " + folder + "/o would replace"));
  fs::permissions(folder, fs::perms::owner_all);
  fs::remove_all(folder);
}

} // namespace
} // namespace troupe
