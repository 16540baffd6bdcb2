// The main job on this machine's licence texts, as `launcher/quickstart` runs it, against a count by coreutils.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/tests/system/program_process.hpp>

namespace troupe::system_tests {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

std::string content_of(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream{file}.rdbuf();
  return text.str();
}

/// Lines of `term occurrences texts`, sorted, for the regular files of a directory (links count once).
void count_by_coreutils(const std::string& texts, const std::string& scratch, const std::string& out) {
  const auto script =
      "cd " + texts + " && export LC_ALL=C && for f in *; do [ -f \"$f\" ] && [ ! -L \"$f\" ] || continue;" +
      " tr -cs A-Za-z '\\n' <\"$f\" | tr A-Z a-z | grep . | sort | uniq -c; done >" + scratch +
      " && awk '{ n[$2] += $1; d[$2]++ } END { for (t in n) print t, n[t], d[t] }' " + scratch + " | sort >" + out;
  ASSERT_EQ(std::system(script.c_str()), 0);
}

class main_job : public ::testing::TestWithParam<const char*> {};

TEST_P(main_job, counts_as_coreutils_do) {
  const testing::temporary_directory scratch;
  const auto counted = scratch.path() + "/counts";
  program_process job{{TROUPE_SIMILAR_TEXTS, std::string{"--master="} + GetParam(), "--conf",
                       "troupe.run-directory=" + scratch.path() + "/run", "--conf", "troupe.gpu.discovery=fake",
                       "--counts", counted}};
  EXPECT_EQ(job.wait(), 0) << job.output();
  EXPECT_THAT(job.printed(), AllOf(HasSubstr("most similar"), ContainsRegex("the +[0-9]+ +[0-9]+"),
                                   ContainsRegex("C: similarities.*gpu fake-[01] \\(0.5\\)"), HasSubstr("made up")));
  const auto expected = scratch.path() + "/expected";
  count_by_coreutils("/usr/share/common-licenses", scratch.path() + "/terms", expected);
  const auto sorted = scratch.path() + "/sorted";
  ASSERT_EQ(std::system(("LC_ALL=C sort " + counted + " >" + sorted).c_str()), 0);
  ASSERT_GT(content_of(expected).size(), 1000u);
  EXPECT_TRUE(content_of(sorted) == content_of(expected)) << "see `diff " << sorted << ' ' << expected << '`';
  EXPECT_TRUE(testing::wait_until([&] { return testing::processes_of(scratch.path()).empty(); }));
}

/// As when somebody builds it anew meanwhile: executors run what the driver runs.
TEST(main_job_whose_program_is_gone, starts_its_executors_all_the_same) {
  const testing::temporary_directory scratch;
  program_process job{{"sh", "-c",
                       R"(cp "$1" "$2/own" && exec 3<"$2/own" && rm "$2/own" && shift 2 && exec /proc/self/fd/3 "$@")",
                       "sh", TROUPE_SIMILAR_TEXTS, scratch.path(), "--master=local-cluster[1,2,2g]", "--conf",
                       "troupe.run-directory=" + scratch.path() + "/run", "--conf", "troupe.gpu.discovery=fake"}};
  EXPECT_EQ(job.wait(), 0) << job.output();
  EXPECT_THAT(job.printed(), HasSubstr("most similar"));
  EXPECT_TRUE(testing::wait_until([&] { return testing::processes_of(scratch.path()).empty(); }));
}

INSTANTIATE_TEST_SUITE_P(masters, main_job, ::testing::Values("local[2]", "local-cluster[2,2,2g]"),
                         [](const auto& param) {
                           return std::string{param.param}.find("cluster") == std::string::npos ? "threads"
                                                                                                : "processes";
                         });

} // namespace
} // namespace troupe::system_tests
