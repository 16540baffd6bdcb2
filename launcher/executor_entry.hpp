#pragma once

/// How a program starts itself as an executor: with the arguments that it was given itself, so that what its main does
/// with them before `troupe::run` works there, too. What the executor is to do comes through a descriptor of a sealed
/// file in memory; an environment variable says which one, and is removed before anything of the user's runs. So a
/// program that a task starts is no executor.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/runtime/result.hpp>

namespace troupe {

/// What a process finds that was started as an executor.
struct executor_entry {
  std::string start; ///< see `decode_executor_start`
  int liveness_fd;   ///< read end of a pipe that ends with who has started it
};

/// The entry of this process; nothing where it is no executor, or on any later call. Its text is empty where what it
/// was given cannot be used. Not for several threads at once.
std::optional<executor_entry> take_executor_entry();
/// Ends this process, with a sentence that says what to add to its main, where it was started as an executor and has
/// not become one: executors that started executors would never end, and a test program would run all its tests in
/// each.
void end_if_no_executor();
/// Whether somebody has started this process as an executor, whatever has become of that.
bool was_started_as_executor();

/// Programs with Troupe among those that led to this one, each started by the one before, whatever stood between them:
/// `TROUPE_DEPTH` of the environment, where this process has put one more for those that it starts.
unsigned process_depth();

/// The folder that this program was started in, whatever main has done since: a descriptor that stays open; -1: none.
int folder_at_start();
/// Lets go of that folder, for a process that is to stand in the way of no file system: its executors start where it
/// is.
void let_go_of_start_folder();

/// The arguments that this program was started with, its name first, whatever main has done with its own.
const std::vector<std::string>& program_arguments();

/// A file in memory with this content that nobody can change. Close-on-exec.
result<int> make_sealed_file(std::string_view content);

/// The environment for an executor: this process's, and which descriptors it finds. `name` is for people who look at
/// processes.
std::vector<std::string> executor_environment(int start_fd, int liveness_fd, const std::string& name);

/// Ends this process when its streams are written, without what main, exit handlers and destructors of static objects
/// would still do: they belong to the program that started it.
[[noreturn]] void end_process(int code);

} // namespace troupe
