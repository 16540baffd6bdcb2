#include <troupe/runtime/execution/command_runner.hpp>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <optional>
#include <poll.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <troupe/runtime/execution/attempts_directories.hpp>
#include <troupe/runtime/execution/child_process.hpp>
#include <troupe/runtime/execution/command_hints.hpp>
#include <troupe/runtime/execution/command_words.hpp>
#include <troupe/runtime/execution/failure_text.hpp>
#include <troupe/runtime/execution/files_in_memory.hpp>
#include <troupe/runtime/execution/inputs_file.hpp>
#include <troupe/runtime/execution/made_mark.hpp>
#include <troupe/runtime/execution/memory_watch.hpp>
#include <troupe/runtime/execution/output_writers.hpp>
#include <troupe/runtime/execution/process_tree.hpp>
#include <troupe/runtime/execution/remove_tree.hpp>
#include <troupe/runtime/execution/staged_outputs.hpp>
#include <troupe/runtime/scheduling/executor_exit.hpp>
#include <troupe/runtime/storage/block_store.hpp>

namespace troupe {

namespace {

namespace fs = std::filesystem;

constexpr duration for_ever = std::chrono::hours{24 * 365};

/// Unknown is as good as any.
bool has_room(const std::string& directory) {
  struct statvfs there {};
  return ::statvfs(directory.c_str(), &there) != 0 ||
         (there.f_bavail > 0 && (there.f_favail > 0 || there.f_files == 0));
}

/// The attempt's own empty directory.
result<std::string> make_directory(const command_settings& settings, job_id job, const std::string& name,
                                   std::size_t turn) {
  auto parents = settings.attempts_directories;
  if (parents.empty()) return make_error(ec::invalid_argument, "this executor was given no directory for commands");
  std::rotate(parents.begin(), parents.begin() + static_cast<std::ptrdiff_t>(turn % parents.size()), parents.end());
  if (parents.size() > 1) std::stable_partition(parents.begin(), parents.end(), has_room);
  error last;
  for (const auto& parent : parents) {
    const auto of_job = attempts_of(parent, job);
    auto path = of_job + "/" + name;
    if (::mkdir(path.c_str(), 0700) == 0) return path;
    if (errno == ENOENT)
      ::mkdir(of_job.c_str(), 0700); // the job's first one here
    else if (errno == EEXIST)
      remove_tree(path); // of an executor of this name that ended before: nothing of it may pass for an output
    if (::mkdir(path.c_str(), 0700) == 0) return path;
    last = make_error(ec::io, "cannot make the attempt's directory " + path + ": " + std::strerror(errno) +
                                  " (troupe.local.dir)");
  }
  return last;
}

/// Where the program lies: relative to the job's directory with a slash in it, else along PATH.
result<std::string> find_program(const std::string& name, const std::string& directory,
                                 const std::vector<std::string>& environment) {
  if (name.empty()) return make_error(ec::invalid_argument, "the command's program has no name");
  if (name.find('/') != name.npos) return name.front() == '/' ? name : directory + "/" + name;
  std::string_view path = "/usr/local/bin:/usr/bin:/bin";
  for (const auto& variable : environment) {
    if (variable.starts_with("PATH=")) path = std::string_view{variable}.substr(5);
  }
  const auto all = path;
  bool unknown = false;
  while (true) {
    const auto colon = path.find(':');
    const auto part = path.substr(0, colon);
    // An empty part means the current directory, which is never searched here.
    const auto candidate = std::string{part} + "/" + name;
    struct stat status {};
    if (part.starts_with('/')) {
      if (::stat(candidate.c_str(), &status) != 0)
        unknown = unknown || (errno != ENOENT && errno != ENOTDIR && errno != EACCES);
      else if (S_ISREG(status.st_mode) && ::access(candidate.c_str(), X_OK) == 0)
        return candidate;
    }
    if (colon == path.npos) break;
    path.remove_prefix(colon + 1);
  }
  // A folder that cannot be looked into now may be there next time.
  return make_error(unknown ? ec::io : ec::not_found,
                    "program '" + name + "' is not in PATH (" + std::string{all} + ")");
}

/// How the waiting for a command ended.
struct wait_end {
  bool stopped = false;                ///< it was asked to end
  std::optional<std::uint64_t> excess; ///< it was killed while it took so many bytes, more than it may
  bool overdue = false;                ///< it has run for longer than it may, and was asked to end
  std::uint64_t peak_memory = 0;       ///< that was seen of all its processes together, where it is limited
};

/// What bounds a command while it is waited for.
struct wait_limits {
  std::uint64_t memory = 0;       ///< bytes that it may take while somebody looks; 0: nobody does
  std::vector<std::string> files; ///< the attempt's directories where its files take memory, else none
  time_point deadline = time_point::max();
};

/// Waits until it has ended, is asked to, takes too much or too long. @returns false when it is to be asked to end
bool wait_within(child_process& child, const stop_event& stop, const wait_limits& limits, wait_end& end) {
  memory_watch watch{child.pid(), limits.memory, limits.files};
  auto pause = memory_watch_interval;
  for (;;) {
    const auto left =
        limits.deadline == time_point::max() ? for_ever : limits.deadline - std::chrono::steady_clock::now();
    if (child.wait(stop.fd(), limits.memory == 0 ? left : std::min(left, pause))) return true;
    if (stop.requested()) return false;
    if (std::chrono::steady_clock::now() >= limits.deadline) {
      end.overdue = true;
      return false;
    }
    if (limits.memory == 0) continue;
    const auto begin = std::chrono::steady_clock::now();
    end.excess = watch.exceeded();
    // Of many files: most of the time is left to the command.
    pause = std::max<duration>(memory_watch_interval, 9 * (std::chrono::steady_clock::now() - begin));
    end.peak_memory = watch.peak();
    if (!end.excess) continue;
    child.signal_group(SIGKILL);
    child.wait(-1, for_ever);
    return true;
  }
}

/// Waits for the end; ends it when asked to, or when it takes more than it may.
wait_end wait_for_end(child_process& child, const stop_event& stop, duration grace, const wait_limits& limits) {
  wait_end end;
  if (wait_within(child, stop, limits, end)) return end;
  end.stopped = true;
  child.signal_group(SIGTERM);
  child.signal_group(SIGCONT); // a stopped process would never see it
  memory_watch watch{child.pid(), limits.memory, limits.files};
  const auto deadline = std::chrono::steady_clock::now() + grace;
  while (!child.wait(-1, limits.memory == 0 ? grace : std::min<duration>(grace, memory_watch_interval))) {
    const bool too_late = std::chrono::steady_clock::now() >= deadline;
    if (!too_late && (limits.memory == 0 || !watch.exceeded())) continue;
    child.signal_group(SIGKILL);
    child.wait(-1, for_ever);
    break;
  }
  return end;
}

std::string describe(const std::string& program, const child_end& end) {
  if (end.signal == 0) return program + " ended with exit code " + std::to_string(end.exit_code);
  return program + " was ended by " + signal_text(end.signal);
}

/// @param files the attempt's directories where its files take memory, else none
std::string describe_excess(const std::string& program, std::uint64_t taken, std::uint64_t limit,
                            const std::vector<std::string>& files) {
  const auto text = [](std::uint64_t bytes) { return memory_to_string(static_cast<std::int64_t>(bytes)); };
  constexpr std::uint64_t mib = 1 << 20; // nobody wants to read the last digits of what was seen
  return program + " was ended because it took more memory than its task may: " + text((taken + mib - 1) / mib * mib) +
         " of " + text(limit) + "; give the task more (task memory in its profile)" +
         (files.empty() ? ""
                        : ". The files that it writes count, since " + files.front() +
                              " lies in memory: set troupe.local.dir to a directory on a disk");
}

/// By SIGKILL, or it has a shell's word for that of a process that it waited for.
bool was_killed(const child_end& end) { return end.signal == SIGKILL || end.exit_code == 128 + SIGKILL; }

/// The kernel killed a process of the command, and its task has no limit that was hit.
std::string describe_starvation(const std::string& program, const attempt_group::usage& used) {
  if (!used.at_limit || used.limit == 0)
    return program + " was killed by the kernel, which had no memory left; let fewer tasks run at once";
  return program +
         " was killed because its executor and all that runs there together took the memory of the executor: " +
         memory_to_string(static_cast<std::int64_t>(used.limit)) +
         "; give the executor more, or its tasks a memory of their own (task memory in the profile)";
}

attempt_end failed(const error& why) { return failed_attempt(task_status::failed, why.message); }

/// In a way that no other attempt can change.
attempt_end failed_for_certain(const error& why) {
  auto end = failed(why);
  end.failure->cause = failure_cause::certain;
  return end;
}

/// In a way that no other attempt on this machine can change, as the code tells; executors of other machines may have
/// what is missing here.
attempt_end failed_here(const error& why, const command_settings& settings) {
  const bool lasts = why.code == ec::not_found || why.code == ec::invalid_argument || why.code == ec::overloaded;
  return lasts && !settings.hand_over ? failed_for_certain(why) : failed(why);
}

/// What a command that ended well leaves beside its outputs is of no use to anybody; of a failed one it may tell why.
void keep_only_what_it_wrote(const std::string& directory) {
  std::error_code ignored;
  if (::access(directory.c_str(), W_OK | X_OK) != 0) ::chmod(directory.c_str(), 0700);
  for (const auto& entry : fs::directory_iterator{directory, ignored})
    if (const auto name = entry.path().filename(); name != "stdout" && name != "stderr")
      remove_tree(entry.path().string());
}

struct removed_at_end {
  explicit removed_at_end(std::string what) : path(std::move(what)) {}
  removed_at_end(const removed_at_end&) = delete;
  removed_at_end& operator=(const removed_at_end&) = delete;
  std::string path;
  ~removed_at_end() { remove_tree(path); }
};

/// Knows how many commands this process runs, from before each one's start.
class running_command {
public:
  running_command() {
    const std::lock_guard lock{mutex};
    ++count;
  }
  ~running_command() {
    const std::lock_guard lock{mutex};
    if (!ended_) --count;
  }
  running_command(const running_command&) = delete;
  running_command& operator=(const running_command&) = delete;

  /// What this one has left behind, as seen at the moment. Others may start meanwhile: it is only looked at.
  static std::vector<pid_t> left_behind(pid_t main, std::string_view mark) {
    bool alone = false;
    {
      const std::lock_guard lock{mutex};
      alone = count == 1;
    }
    return troupe::left_behind(main, mark, alone);
  }

  /// Ends what this one has left behind. When it was the only one, no other can start meanwhile.
  void end_left_behind(pid_t main, std::string_view mark) {
    std::unique_lock lock{mutex};
    ended_ = true;
    const bool alone = --count == 0;
    if (!alone) lock.unlock();
    troupe::end_left_behind(main, mark, alone);
  }

private:
  inline static std::mutex mutex;
  inline static std::size_t count = 0;
  bool ended_ = false;
};

/// Leaves outputs with the executor, for commands on hosts where they do not lie under the same names.
attempt_end hand_on(const command_task& task, const std::vector<std::string>& outputs, const staging_place& place,
                    const std::string& name, const stop_event& stop) {
  if (!may_differ_between_hosts(task.program.output_directory)) return {};
  std::vector<packed_file> files;
  files.reserve(outputs.size());
  for (const auto& output : outputs) files.push_back({place.file_of(output, outputs.size()), place.to + "/" + output});
  bucket_writer::options how;
  how.memory = task.memory;
  how.compression = task.results.compression;
  if (task.results.blocks) how.directories = &task.results.blocks->directories();
  how.name = name;
  try {
    return store_output(task.stage.stage, task.partition, task.attempt, result_kind::block,
                        pack_files(files, std::move(how), stop), task.results);
  } catch (const std::exception& e) {
    return failed_attempt(task_status::failed,
                          std::string{"its outputs could not be kept for commands on other hosts: "} + e.what());
  }
}

/// Waits for what is wanting, room above all, each time longer.
class patience_with_disk {
public:
  explicit patience_with_disk(const stop_event& stop) : stop_(stop) {}

  /// @returns whether to try once more
  bool operator()() {
    if (tries_ == pauses_for_room.size()) return false;
    pollfd asked{stop_.fd(), POLLIN, 0};
    ::poll(&asked, 1, static_cast<int>(std::chrono::milliseconds{pauses_for_room[tries_++]}.count()));
    return !stop_.requested();
  }

private:
  const stop_event& stop_;
  std::size_t tries_ = 0;
};

/// Leaves the outputs of a command that ended well in `place`, and with the executor where other hosts may read them.
attempt_end stage(const command_task& task, const command_settings& settings, const std::string& directory,
                  const std::string& name, const std::vector<std::string>& outputs, const staging_place& place,
                  const stop_event& stop) {
  std::uint64_t bytes = 0;
  if (!outputs.empty()) {
    const auto staged = stage_outputs(directory, place, outputs, patience_with_disk{stop});
    if (!staged) {
      auto why = staged.error();
      if (why.code == ec::not_found)
        if (const auto other = file_left_in(directory, outputs); !other.empty())
          why.message += "; it has left '" + other + "'";
      // Other hosts may have room there, or a disk that can be written to.
      const bool is_for_all = !settings.hand_over || !may_differ_between_hosts(place.to);
      const bool is_certain =
          why.code == ec::invalid_argument || (is_for_all && (why.code == ec::overloaded || why.code == ec::refused));
      return is_certain ? failed_for_certain(why) : failed(why);
    }
    bytes = *staged;
  }
  attempt_end end;
  if (settings.hand_over && task.stage.hands_on) end = hand_on(task, outputs, place, name, stop);
  if (end.failure) {
    if (!outputs.empty()) discard_staged(place);
    return end;
  }
  end.bytes = bytes;
  if (!outputs.empty()) end.staged = std::make_unique<staging_place>(place);
  if (!end.stored() && task.stage.hands_on) end.kind = result_kind::files;
  return end;
}

/// Of a command that has failed.
void add_what_it_printed(task_failure& failure, const command_task& task, const command_settings& settings,
                         const std::string& name, const std::string& directory) {
  failure.stderr_text = excerpt_of_file(directory + "/stderr");
  if (!settings.logs) return;
  const auto kept = settings.logs->keep(task.program.output_directory, task.stage.job, name, directory);
  std::string where;
  if (!kept.err.empty()) where = "its standard error is in " + kept.err;
  if (!kept.out.empty())
    where += (where.empty() ? "its standard output is in " : ", its standard output in ") + kept.out;
  if (!kept.fault.empty())
    where +=
        (where.empty() ? "what it has printed could not be kept: " : ", the other could not be kept: ") + kept.fault;
  const auto room = max_failure_message - std::min(max_failure_message, where.size() + 3);
  if (!where.empty()) failure.message = bounded_text(failure.message, room) + " (" + where + ")";
}

attempt_end run(const command_task& task, const command_settings& settings, const stop_event& stop) {
  command_arguments arguments;
  if (!task.argument.empty()) {
    auto decoded = decode_command_arguments(task.argument);
    if (!decoded) return failed_for_certain(decoded.error());
    arguments = std::move(*decoded);
  }
  const auto inputs = arguments.inputs; // as people know them, wherever they are read
  const auto name = std::to_string(task.stage.stage.value) + "." + std::to_string(task.partition) + "." +
                    std::to_string(task.attempt);
  const auto directory = make_directory(settings, task.stage.job, name, task.partition + task.attempt);
  if (!directory) return failed(directory.error());

  if (settings.logs) settings.logs->tidy_once(task.program.output_directory);
  staging_place place;
  if (!arguments.outputs.empty()) {
    const auto find = [&] { return settings.staging->place_for(task.stage.stage, task.partition, task.attempt); };
    auto found = find();
    for (patience_with_disk again{stop};
         !found && (found.error().code == ec::io || found.error().code == ec::overloaded) && again();)
      found = find();
    if (!found) return failed_here(found.error(), settings);
    place = std::move(*found);
  }

  // Beside its own directory, where nothing is in the way of its outputs.
  std::optional<removed_at_end> copies;
  // What is there was left by an executor of this name that was killed.
  if (!task.inputs.empty()) remove_tree(copies.emplace(*directory + ".inputs").path);
  for (std::size_t i = 0; i < task.inputs.size(); ++i) {
    const auto places = unpack_files(*task.source, task.inputs[i], copies->path + "/" + std::to_string(i), stop);
    for (auto& path : arguments.inputs)
      if (const auto here = places.find(path); here != places.end()) path = here->second;
  }

  placeholder_values values;
  values.inputs = arguments.inputs;
  values.partition = task.partition;
  values.attempt = task.attempt;
  for (const auto& output : arguments.outputs) {
    values.outputs.push_back(*directory + "/" + output);
    if (output.find('/') == output.npos) continue;
    std::error_code ignored; // a missing directory shows as a missing output
    fs::create_directories(fs::path{values.outputs.back()}.parent_path(), ignored);
  }
  std::optional<removed_at_end> list;
  const bool fits = fits_variable(values.inputs);
  if (!values.inputs.empty() && (!fits || names_inputs_file(task.program.words))) {
    values.inputs_file = list.emplace(*directory + ".inputs-file").path;
    if (auto written = write_inputs_file(values.inputs_file, values.inputs); !written) return failed(written.error());
    if (!fits && names_variable(task.program.words, "TROUPE_INPUTS"))
      return failed_for_certain(make_error(
          ec::invalid_argument, "TROUPE_INPUTS cannot hold its " + std::to_string(values.inputs.size()) +
                                    " inputs, which take more than 64 KiB: read the file that {inputs-file}, or "
                                    "TROUPE_INPUTS_FILE, names, with one of them a line"));
  }
  auto words = replace_placeholders(task.program.words, values);
  if (!words) return failed_for_certain(words.error());
  if (words->empty()) return failed_for_certain(make_error(ec::invalid_argument, "the command has no words"));

  child_spec spec;
  const command_identity identity{
      settings.session,  task.stage.job.value,  task.stage.name, task.partition, task.attempt,
      task.stage.tasks,  task.stage.gang.get(), *directory,      *directory,     settings.terms.thread_variables,
      values.inputs_file};
  spec.environment = make_command_environment(settings.environment, task.program.environment, identity, task.resources,
                                              settings.gpus, values.inputs, values.outputs);
  auto program = find_program(words->front(), task.program.directory, spec.environment);
  if (!program) return failed_here(program.error(), settings);
  spec.program = std::move(*program);
  spec.arguments = std::move(*words);
  spec.directory = *directory;
  spec.stdout_file = *directory + "/stdout";
  spec.stderr_file = *directory + "/stderr";

  const auto limit = task.resources.memory();
  const attempt_group group{settings.limits, name, limit};
  spec.member_files = group.member_files();
  spec.data_limit = settings.limits.data;
  if (stop.requested()) return failed_attempt(task_status::failed, "it was asked to end before it had begun");
  running_command running;
  auto child = child_process::start(spec);
  if (!child) return failed_here(child.error(), settings);
  const auto deadline =
      task.stage.task_timeout == never ? time_point::max() : std::chrono::steady_clock::now() + task.stage.task_timeout;
  std::vector<std::string> files;
  if (limit > 0 && lies_in_memory(*directory)) files = {*directory, *directory + ".inputs"};
  auto waited = wait_for_end(*child, stop, settings.kill_grace, {group.limits_memory() ? 0 : limit, files, deadline});
  // While the main process is a zombie its number and group are still its own.
  output_watch watch{*directory, arguments.outputs};
  output_rest rest;
  if (!waited.stopped && !arguments.outputs.empty() && child->has_ended_well()) {
    rest = watch.wait([&] { return running_command::left_behind(child->pid(), identity.mark); },
                      {deadline, settings.terms.writer_grace}, stop);
    waited.stopped = rest.stopped;
    waited.overdue = rest.overdue;
  }
  child->signal_group(SIGKILL);
  running.end_left_behind(child->pid(), identity.mark);
  if (const auto written = rest.seen && rest.writers.empty() ? watch.changed() : ""; !written.empty())
    rest.writers = "a process that it had left behind was writing '" + written + "' when it was ended";
  const auto ended = child->reap();
  if (!ended) return failed(ended.error());

  const auto used = group.used();
  // Also where it ended well: what the kernel has killed of it is missing from what it made.
  const bool took_too_much = waited.excess || (used.killed && used.at_own_limit);
  attempt_end end;
  if (waited.overdue) {
    end = failed_attempt(task_status::failed, describe_time_limit(spec.arguments.front(), task.stage.task_timeout) +
                                                  named_by_inputs(inputs, "; input: "));
    end.failure->cause = failure_cause::time_limit;
    end.failure->exit_code = ended->exit_code;
    end.failure->signal = ended->signal;
  } else if (took_too_much || ended->signal != 0 || ended->exit_code != 0) {
    const auto& name_of_it = spec.arguments.front();
    auto text = describe(name_of_it, *ended) + named_by_inputs(inputs) + hint_at_names(task.program, *directory);
    if (!has_room(*directory)) text += "; there is no room left in " + *directory + " (troupe.local.dir)";
    auto cause = ended->signal != 0 ? failure_cause::signal : failure_cause::exit_code;
    if (took_too_much) {
      text = describe_excess(name_of_it, waited.excess.value_or(used.peak_memory), limit, files) +
             named_by_inputs(inputs, "; input: ");
      cause = failure_cause::memory_limit;
    } else if (used.killed && was_killed(*ended)) {
      text = describe_starvation(name_of_it, used) + named_by_inputs(inputs, "; input: ");
      cause = failure_cause::memory_limit;
    }
    end = failed_attempt(task_status::failed, text);
    end.failure->cause = cause;
    end.failure->exit_code = ended->exit_code;
    end.failure->signal = ended->signal;
  } else if (!waited.stopped && !stop.requested() && !rest.writers.empty()) {
    end = failed_attempt(task_status::failed,
                         describe(spec.arguments.front(), *ended) + named_by_inputs(inputs) + ", but " + rest.writers +
                             "; let the command wait for what it starts, or raise troupe.task.writer-grace");
  } else if (!waited.stopped && !stop.requested()) {
    end = stage(task, settings, *directory, name, arguments.outputs, place, stop);
    if (end.failure) {
      end.failure->message =
          bounded_text(end.failure->message + named_by_inputs(inputs, "; input: "), max_failure_message);
    } else {
      // Where it has outputs, the rest is the tool's own, but for a folder called as a shell calls the user's own.
      end.left = arguments.outputs.empty() ? file_left_in(*directory, {}) : file_left_in_home(*directory);
      keep_only_what_it_wrote(*directory);
    }
    if (!end.failure) // other names that the command has given its outputs are gone by now
      for (const auto& output : arguments.outputs)
        mark_made(place.file_of(output, arguments.outputs.size()), place, output);
  }
  // What was asked to end says nothing of a fault, and where its job is over nothing is to be made any more; but for
  // the commands of a stage that took too long, which may say why.
  const bool is_late = task.known != nullptr && task.known->is_late();
  const bool is_asked_for = waited.overdue || (!waited.stopped && !stop.requested());
  std::error_code unknown;
  if (is_late && !end.failure && !end.staged)
    end = failed_attempt(task_status::killed, "its stage has run into its time-out");
  if (end.failure && (is_late || (is_asked_for && (arguments.outputs.empty() || fs::exists(place.root, unknown)))))
    add_what_it_printed(*end.failure, task, settings, name, *directory);
  end.cpu_nanoseconds = ended->cpu_nanoseconds;
  end.peak_memory = used.peak_memory > 0 ? used.peak_memory : std::max(ended->peak_memory, waited.peak_memory);
  return end;
}

} // namespace

attempt_end run_command_task(const command_task& task, const command_settings& settings,
                             const stop_event& stop) noexcept {
  try {
    return run(task, settings, stop);
  } catch (const fetch_failure& e) {
    return missed_attempt(e);
  } catch (const std::exception& e) {
    return failed_attempt(task_status::failed, std::string{"the command could not be run: "} + e.what());
  }
}

} // namespace troupe
