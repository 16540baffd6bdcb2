// The text that people read of an explanation.

#include <troupe/runtime/scheduling/explanation.hpp>

#include <algorithm>
#include <string_view>

namespace troupe {

namespace {

std::string time_left(std::int64_t nanoseconds) {
  if (nanoseconds < 0) return "never";
  const auto ms = nanoseconds / 1'000'000;
  return ms < 10'000 ? "in " + std::to_string(ms) + "ms" : "in " + std::to_string(ms / 1000) + "s";
}

std::string of(std::uint64_t n, const std::string& one, const std::string& more) {
  return std::to_string(n) + " " + (n == 1 ? one : more);
}

void append(const explained_choice& c, bool is_first, std::string& out) {
  out += "    as " + std::string{is_first ? "profile " : "alternative, profile "} + std::to_string(c.profile.value) +
         " (" + c.content + ")" + (c.asked_for ? "" : ", for which no executor is asked yet") + "\n";
  out += "      " + of(c.executors, "executor", "executors") + ", " + std::to_string(c.fit) + " fit, " +
         std::to_string(c.free_slots) + " of " + of(static_cast<std::uint64_t>(c.slots), "slot", "slots") + " free\n";
  for (const auto& clause : c.clauses)
    if (clause.satisfied_by < c.executors || c.executors == 0)
      out += "      " + clause.clause + ": " + of(clause.satisfied_by, "executor has it", "executors have it") + "\n";
  for (const auto& h : c.hindrances)
    if (h.what != hindrance::none)
      out += "      " + of(h.executors, "is ", "are ") + std::string{to_string(h.what)} +
             (h.detail.empty() ? "" : " (" + h.detail + ")") + "\n";
  if (c.nearest) {
    out += "      nearest: executor " + std::to_string(c.nearest->executor.value) + " on " + c.nearest->host;
    for (const auto& lack : c.nearest->lacks) out += ", " + lack;
    out += "\n";
  }
  constexpr std::size_t most = 5;
  for (std::size_t i = 0; i < c.holders.size() && i < most; ++i) {
    const auto& h = c.holders[i];
    out += "      " + of(h.leases, "slot is", "slots are") + " taken by " +
           (h.job ? "job " + std::to_string(h.job.value) + " stage " + std::to_string(h.stage) + " (" + h.name + ")"
                  : std::string{"attempts of jobs that have ended"}) +
           "\n";
  }
  if (c.holders.size() > most) out += "      …and by " + std::to_string(c.holders.size() - most) + " more stages\n";
  if (!c.allocation.empty()) out += "      allocator: " + c.allocation + "\n";
  if (!c.edit.empty()) out += "      would help: " + c.edit + "\n";
}

/// All lines but the first one stand a little to the right, so that none is taken for one of the explanation's own.
std::string indented(std::string_view text) {
  std::string out;
  for (const char c : text) {
    out += c;
    if (c == '\n') out += "    ";
  }
  while (out.ends_with(' ') || out.ends_with('\n')) out.pop_back();
  return out;
}

void append(const explained_failure& f, const job_explanation& all, std::string& out) {
  const auto on = "executor " + std::to_string(f.executor.value) + (f.host.empty() ? "" : " (" + f.host + ")");
  if (f.is_loss) {
    out += "lost: " + on;
  } else {
    const auto named =
        std::find_if(all.stages.begin(), all.stages.end(), [&](const auto& stage) { return stage.index == f.stage; });
    out += "failed: stage " + std::to_string(f.stage) + (named == all.stages.end() ? "" : " (" + named->name + ")") +
           ", partition " + std::to_string(f.partition) + ", attempt " + std::to_string(f.attempt) + " on " + on;
  }
  out += ": " + indented(f.why) + "\n";
}

} // namespace

std::string to_text(const job_explanation& all) {
  auto out = "job " + std::to_string(all.job.value) + " (" + all.name + "): " + std::string{to_string(all.state)} +
             (all.reason.empty() ? "" : ", " + indented(all.reason)) + "\n";
  for (const auto& s : all.stages) {
    out += "stage " + std::to_string(s.index) + " (" + s.name + "): " + std::string{to_string(s.state)} + ", " +
           std::to_string(s.done) + " of " + of(s.tasks, "task", "tasks") + " done, " + std::to_string(s.running) +
           " running, " + std::to_string(s.pending) + " pending" + (s.reason.empty() ? "" : "; " + s.reason) + "\n";
    for (const auto& t : s.task_sets) {
      out += "  " + of(t.pending, "task waits", "tasks wait") +
             (t.conditions.empty() ? "" : " (" + t.conditions + ")") + ": " + t.reason + "\n";
      for (const auto& w : t.waits) out += "    " + time_left(w.nanoseconds) + ": " + w.what + " (" + w.key + ")\n";
      for (std::size_t i = 0; i < t.choices.size(); ++i) append(t.choices[i], i == 0, out);
    }
  }
  return out + failures_to_text(all);
}

std::string failures_to_text(const job_explanation& all) {
  std::string out;
  for (const auto& failure : all.failures) append(failure, all, out);
  if (all.failures_left_out > 0)
    out +=
        "and " + of(all.failures_left_out, "failure", "failures") + " of the job between its first and its last ones\n";
  return out;
}

} // namespace troupe
