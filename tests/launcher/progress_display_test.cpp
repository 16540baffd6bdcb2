#include <troupe/launcher/progress_display.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <troupe/tests/support/process_probe.hpp>

namespace troupe {
namespace {

/// A file without a name, which is no terminal: bars take it for one of 80 columns.
class screen_file {
public:
  ~screen_file() { std::fclose(file_); }
  int descriptor() const { return ::fileno(file_); }
  std::string content() const {
    std::string out(1 << 16, '\0');
    const auto n = ::pread(descriptor(), out.data(), out.size(), 0);
    out.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return out;
  }

private:
  std::FILE* file_ = std::tmpfile();
};

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// A terminal of the test's own.
class screen_terminal {
public:
  screen_terminal() : master_(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    if (::grantpt(master_) != 0 || ::unlockpt(master_) != 0) return;
    char name[64];
    if (::ptsname_r(master_, name, sizeof name) == 0) terminal_ = ::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
  }
  ~screen_terminal() {
    ::close(terminal_);
    ::close(master_);
  }
  int descriptor() const { return terminal_; }

private:
  int master_;
  int terminal_ = -1;
};

TEST(progress_display, draws_bars_where_a_cursor_can_be_moved) {
  const char* const given = std::getenv("TERM");
  const std::string before = given == nullptr ? "" : given;
  const screen_terminal terminal;
  ASSERT_GE(terminal.descriptor(), 0);
  ::setenv("TERM", "xterm", 1);
  EXPECT_TRUE(is_screen(terminal.descriptor()));
  EXPECT_FALSE(is_screen(screen_file{}.descriptor()));
  for (const auto* poor : {"dumb", ""}) {
    ::setenv("TERM", poor, 1);
    EXPECT_FALSE(is_screen(terminal.descriptor())) << poor;
  }
  ::unsetenv("TERM");
  EXPECT_FALSE(is_screen(terminal.descriptor()));
  if (given != nullptr) ::setenv("TERM", before.c_str(), 1);
}

TEST(progress_display, of_bars_keeps_once_in_whole_what_they_cut) {
  const screen_file file;
  job_progress job;
  job.job = job_id{7};
  job.name = "words";
  job.waiting_for = "no executor of this program is there: start one with `words --config-file=executor.yaml`, here or "
                    "on another machine (9 of 30 slots are free)";
  progress_display display{progress_mode::bar, file.descriptor()};
  display.update(job);
  display.finish();
  EXPECT_EQ(count_of(file.content(), "troupe: job 7 words: waiting: " + job.waiting_for + "\n"), 1u) << file.content();
  const screen_file other;
  progress_display twice{progress_mode::bar, other.descriptor()};
  twice.update(job);
  ASSERT_TRUE(testing::wait_until([&] { return !other.content().empty(); }));
  const auto drawn = other.content().size();
  job.waiting_for.replace(job.waiting_for.find("(9"), 2, "(10");
  twice.update(job);
  ASSERT_TRUE(testing::wait_until([&] { return other.content().size() > drawn; })) << "drawn anew";
  job_end end;
  end.job = job.job;
  end.progress = job;
  twice.end(end);
  twice.finish();
  EXPECT_EQ(count_of(other.content(), "troupe: job 7 words: waiting: "), 1u) << other.content();
}

} // namespace
} // namespace troupe
