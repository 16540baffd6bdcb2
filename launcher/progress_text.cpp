#include <troupe/launcher/progress_text.hpp>

#include <algorithm>
#include <vector>

#include <troupe/launcher/text_table.hpp>

namespace troupe {
namespace {

constexpr std::size_t most_bar = 40;
constexpr std::size_t least_bar = 10;
constexpr std::size_t longest_name = 24;

std::string number(std::uint64_t value) { return std::to_string(value); }

/// Cut to `width` columns, with `…` where something is missing.
std::string cut(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string{text};
  std::string out;
  std::size_t columns = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((text[i] & 0xC0) != 0x80 && ++columns >= width) break;
    out += text[i];
  }
  return width > 0 ? out + "…" : std::string{};
}

std::string name_of(const stage_progress& stage) {
  return cut(stage.name.empty() ? "stage " + number(stage.stage.value) : printable(stage.name), longest_name);
}

std::string counts(const stage_progress& stage) {
  std::string out = number(stage.done) + "/" + number(stage.tasks);
  if (stage.running > 0) out += "  " + number(stage.running) + " running";
  if (stage.failures > 0) out += (stage.running > 0 ? ", " : "  ") + number(stage.failures) + " failed";
  if (stage.attempt > 0) out += "  (attempt " + number(stage.attempt) + ")";
  return out;
}

std::string bar(const stage_progress& stage, std::size_t width) {
  const auto tasks = std::max<std::uint64_t>(1, stage.tasks);
  const auto done = std::min<std::uint64_t>(stage.done, tasks);
  const auto full = static_cast<std::size_t>(done * width / tasks);
  // Whatever runs shows, be it ever so little.
  const auto busy =
      stage.running == 0
          ? 0
          : std::min(width - full, std::max<std::size_t>(1, static_cast<std::size_t>(stage.running * width / tasks)));
  return "[" + std::string(full, '#') + std::string(busy, '=') + std::string(width - full - busy, ' ') + "]";
}

std::string title(const job_progress& job) {
  return "job " + number(job.job.value) + (job.name.empty() ? "" : " " + printable(job.name));
}

std::string wait_of(const job_progress& job) { return "waiting: " + printable(job.waiting_for); }

/// The stages that matter most, in the job's order.
std::vector<const stage_progress*> choose(const job_progress& job, std::size_t most) {
  std::vector<const stage_progress*> out;
  const auto rank = [](const stage_progress& s) {
    if (s.state == stage_state::running || s.state == stage_state::failed) return 0;
    return s.state == stage_state::waiting ? 1 : 2;
  };
  for (const auto& s : job.stages) out.push_back(&s);
  std::stable_sort(out.begin(), out.end(), [&](auto* a, auto* b) { return rank(*a) < rank(*b); });
  if (out.size() > most) out.resize(most);
  std::sort(out.begin(), out.end(), [](auto* a, auto* b) { return a < b; }); // pointers into one vector
  return out;
}

} // namespace

std::string progress_bars(const job_progress& job, std::size_t width, std::size_t height) {
  std::string out;
  const bool waits = !job.waiting_for.empty();
  const auto stages = choose(job, height > (waits ? 1u : 0u) ? height - (waits ? 1 : 0) : 0);
  std::size_t names = 0;
  std::size_t numbers = 0;
  for (const auto* s : stages) {
    names = std::max(names, display_width(name_of(*s)));
    numbers = std::max(numbers, counts(*s).size());
  }
  const auto taken = names + numbers + 6; // blanks and brackets
  const auto room = std::clamp(width > taken ? width - taken : 0, least_bar, most_bar);
  for (const auto* s : stages) {
    const auto name = name_of(*s);
    const auto line = name + std::string(names - display_width(name), ' ') + "  " + bar(*s, room) + "  " + counts(*s);
    out += cut(line, width) + "\n";
  }
  if (waits && height > 0) out += cut(wait_of(job), width) + "\n";
  return out;
}

std::string whole_wait(const job_progress& job, std::size_t width) {
  if (job.waiting_for.empty() || display_width(wait_of(job)) <= width) return {};
  return "troupe: " + title(job) + ": " + wait_of(job) + "\n";
}

std::string progress_lines(const job_progress& before, const job_progress& now) {
  std::string out;
  const auto say = [&](const std::string& what) { out += "troupe: " + title(now) + ": " + what + "\n"; };
  for (std::size_t i = 0; i < now.stages.size(); ++i) {
    const auto& stage = now.stages[i];
    // A job has the same ones from begin to end.
    const auto* old = i < before.stages.size() ? &before.stages[i] : nullptr;
    const auto was = old ? old->state : stage_state::waiting;
    if (stage.state == was && (!old || stage.failures == old->failures)) continue;
    const auto name = "stage " + name_of(stage);
    if (old && stage.failures > old->failures)
      say(name + ": " + number(stage.failures) + " failed " + (stage.failures == 1 ? "attempt" : "attempts"));
    if (stage.state == was) continue;
    switch (stage.state) {
    case stage_state::running:
      say(name + ": " + number(stage.tasks) + (stage.tasks == 1 ? " task" : " tasks") +
          (stage.attempt > 0 ? ", attempt " + number(stage.attempt) : "") + " under " + printable(stage.profile));
      break;
    case stage_state::complete: say(name + ": complete in " + time_for_people(stage.wall_nanoseconds)); break;
    case stage_state::failed: say(name + ": failed"); break;
    case stage_state::waiting: say(name + ": waits for inputs that were lost"); break;
    }
  }
  if (now.waiting_for != before.waiting_for && !now.waiting_for.empty()) say(wait_of(now));
  return out;
}

std::string progress_pulse(const job_progress& now) {
  std::string what;
  for (const auto& stage : now.stages) {
    if (stage.state != stage_state::running) continue;
    what += (what.empty() ? "" : "; ") + name_of(stage) + " " + counts(stage);
  }
  return what.empty() ? "" : "troupe: " + title(now) + ": " + what + "\n";
}

std::string job_summary(const job_end& end) {
  const auto& job = end.progress;
  const auto verb = !end.failure ? "succeeded" : end.failure.code == ec::cancelled ? "was cancelled" : "failed";
  std::string out = title(job) + " " + verb + " after " + time_for_people(job.wall_nanoseconds) + "\n";
  using side = text_table::side;
  text_table table{{{"STAGE"},
                    {"TASKS", side::right},
                    {"FAILED", side::right},
                    {"EXECUTORS", side::right},
                    {"TIME", side::right},
                    {"CPU", side::right},
                    {"PEAK", side::right},
                    {"OUTPUT", side::right},
                    {"PROFILE"}}};
  for (const auto& s : job.stages)
    table.add({name_of(s), number(s.done) + "/" + number(s.tasks), number(s.failures), number(s.executors),
               time_for_people(s.wall_nanoseconds), time_for_people(s.cpu_nanoseconds),
               s.peak_memory ? bytes_for_people(s.peak_memory) : "-", bytes_for_people(s.output_bytes),
               printable(s.profile)});
  return out + table.text("  ");
}

std::vector<std::string> left_files(const job_progress& job) {
  std::vector<std::string> out;
  for (const auto& s : job.stages)
    if (!s.left.empty())
      out.push_back("stage " + name_of(s) +
                    ": its commands leave files in the directories that they start in, such as '" + s.left +
                    "', and these directories are removed: name what is to be kept in outputs:, or give the commands "
                    "absolute paths, written out, since no shell reads them");
  return out;
}

} // namespace troupe
