#include <troupe/launcher/progress_display.hpp>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <utility>

#include <sys/ioctl.h>
#include <unistd.h>

#include <troupe/launcher/progress_text.hpp>
#include <troupe/runtime/storage/file_io.hpp>

namespace troupe {
namespace {

using clock = std::chrono::steady_clock;
constexpr auto frame = std::chrono::milliseconds{100};
/// Lines say so often that a long stage lives.
constexpr auto pulse_interval = std::chrono::seconds{10};

std::string without_numbers(std::string text) {
  std::erase_if(text, [](char c) { return c >= '0' && c <= '9'; });
  return text;
}

struct screen {
  std::size_t width = 80;
  std::size_t height = 24;
};

screen screen_of(int fd) {
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {size.ws_col, size.ws_row};
}

} // namespace

bool is_screen(int fd) {
  const char* const kind = std::getenv("TERM");
  return ::isatty(fd) != 0 && kind != nullptr && *kind != '\0' && std::string_view{kind} != "dumb";
}

progress_mode progress_mode_of(std::string_view setting, bool screen) {
  if (setting == "none") return progress_mode::none;
  if (setting == "bar") return progress_mode::bar;
  if (setting == "plain") return progress_mode::plain;
  return screen ? progress_mode::bar : progress_mode::plain;
}

progress_display::progress_display(progress_mode mode, int fd) : mode_(mode), fd_(fd) {
  if (mode_ != progress_mode::none) thread_ = std::thread{[this] { draw_all(); }};
}

progress_display::~progress_display() { finish(); }

void progress_display::introduce(std::string line) {
  const std::lock_guard lock{mutex_};
  introduction_ = std::move(line);
}

void progress_display::update(const job_progress& progress) {
  if (mode_ == progress_mode::none) return;
  {
    const std::lock_guard lock{mutex_};
    latest_.insert_or_assign(progress.job, progress);
    dirty_ = true;
  }
  changed_.notify_one(); // without the lock that the thread would wake for and wait for
}

void progress_display::end(const job_end& end) {
  if (mode_ == progress_mode::none) return;
  job_end without_results;
  without_results.job = end.job;
  without_results.failure = end.failure;
  without_results.progress = end.progress;
  {
    const std::lock_guard lock{mutex_};
    latest_.erase(end.job);
    ends_.push_back(std::move(without_results));
    dirty_ = true;
  }
  changed_.notify_one();
}

void progress_display::finish() {
  {
    std::lock_guard lock{mutex_};
    over_ = true;
    changed_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

void progress_display::draw_all() {
  auto next_frame = clock::now();
  auto next_pulse = next_frame + pulse_interval;
  std::unique_lock lock{mutex_};
  for (;;) {
    // The end of a job and of the display are shown at once, everything else frame by frame.
    changed_.wait_until(lock, next_pulse, [&] { return dirty_ || over_; });
    if (dirty_ && ends_.empty() && !over_)
      changed_.wait_until(lock, next_frame, [&] { return over_ || !ends_.empty(); });
    const bool last = over_;
    dirty_ = false;
    current_ = latest_;
    const auto ends = std::exchange(ends_, {});
    const auto introduction = current_.empty() && ends.empty() ? std::string{} : std::exchange(introduction_, {});
    lock.unlock();
    const auto now = clock::now();
    const bool pulse = now >= next_pulse;
    if (pulse) next_pulse = now + pulse_interval;
    next_frame = now + frame;
    auto text = introduction;
    text += mode_ == progress_mode::bar ? draw_bars(ends) : draw_lines(ends, pulse);
    if (last) text += erase();
    static_cast<void>(write_all(fd_, text)); // nobody may read any more
    lock.lock();
    if (last) return;
  }
}

std::string progress_display::draw_lines(const std::vector<job_end>& ends, bool pulse) {
  std::string out;
  const auto tell = [&](const job_progress& job) {
    auto& before = shown_[job.job];
    auto lines = progress_lines(before, job);
    if (lines.empty() && pulse) lines = progress_pulse(job);
    out += lines;
    before = job;
  };
  for (const auto& [id, job] : current_) tell(job);
  for (const auto& end : ends) {
    tell(end.progress);
    shown_.erase(end.job);
    out += job_summary(end);
  }
  return out;
}

std::string progress_display::draw_bars(const std::vector<job_end>& ends) {
  auto out = erase();
  for (const auto& end : ends) {
    out += job_summary(end);
    told_.erase(end.job);
  }
  const auto size = screen_of(fd_);
  // Above the bars, where it stays to be read: advice is longer than a line.
  for (const auto& [id, job] : current_) {
    const auto wait = whole_wait(job, size.width - 1);
    // Once, however often the numbers in it change.
    if (!wait.empty() && told_[id].insert(without_numbers(wait)).second) out += wait;
  }
  auto height = size.height - 1;
  for (const auto& [id, job] : current_) {
    const auto bars = progress_bars(job, size.width - 1, height);
    std::size_t lines = 0;
    for (const char c : bars) lines += c == '\n';
    height -= lines;
    lines_on_screen_ += lines;
    out += bars;
  }
  return out;
}

std::string progress_display::erase() {
  if (lines_on_screen_ == 0) return {};
  return "\x1b[" + std::to_string(std::exchange(lines_on_screen_, 0)) + "A\x1b[J";
}

} // namespace troupe
