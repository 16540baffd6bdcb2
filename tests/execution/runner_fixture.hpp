#pragma once

/// A runner whose outcomes are kept, with stages and batches in few words.

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <troupe/runtime/execution/function_table.hpp>
#include <troupe/runtime/execution/task_runner.hpp>
#include <troupe/runtime/scheduling/result_entry.hpp>
#include <troupe/tests/support/patience.hpp>

namespace troupe::testing_execution {

/// The bound of every wait of these tests.
inline const duration deadline = testing::patience();

/// A directory that is gone with the object.
class scratch_directory {
public:
  scratch_directory() {
    std::string name = (std::filesystem::temp_directory_path() / "troupe-test-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("mkdtemp failed");
    path_ = name;
  }
  ~scratch_directory() { std::filesystem::remove_all(path_); }
  scratch_directory(const scratch_directory&) = delete;
  scratch_directory& operator=(const scratch_directory&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

private:
  std::filesystem::path path_;
};

/// Keeps outcome batches; any thread.
class outcome_log {
public:
  void add(std::shared_ptr<const outcome_batch> batch) {
    const std::lock_guard lock{mutex_};
    tasks_ += batch->count;
    batches_.push_back(std::move(batch));
    changed_.notify_all();
  }
  /// Waits for `count` outcomes altogether. False at the deadline.
  bool wait_for(std::size_t count) {
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, deadline, [&] { return tasks_ >= count; });
  }
  std::vector<std::shared_ptr<const outcome_batch>> batches() const {
    const std::lock_guard lock{mutex_};
    return batches_;
  }
  std::size_t tasks() const {
    const std::lock_guard lock{mutex_};
    return tasks_;
  }

private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<const outcome_batch>> batches_;
  std::size_t tasks_ = 0;
};

/// A door that a task waits at.
class gate {
public:
  void open() { opened_.set_value(); }
  bool wait() const { return future_.wait_for(deadline) == std::future_status::ready; }

private:
  std::promise<void> opened_;
  std::shared_future<void> future_{opened_.get_future().share()};
};

/// A function of a test, registered by its own name: `task<&echo>`.
template <auto Function>
struct key {
  static std::string_view name() { return __PRETTY_FUNCTION__; }
};
template <auto Function>
using task = registered_function<key<Function>, Function>;

inline lease_grant grant(std::uint64_t lease) {
  lease_grant g;
  g.lease = {lease};
  g.holding.cpus = share::whole(1);
  return g;
}

template <class Function>
stage_install native_stage(std::uint64_t stage, std::uint32_t tasks, std::uint32_t buckets = 0,
                           std::string captures = {}) {
  stage_install s;
  s.stage = {stage};
  s.name = "stage-" + std::to_string(stage);
  s.tasks = tasks;
  s.buckets = buckets;
  native_program program;
  program.operations.push_back({Function::index(), std::move(captures)});
  s.program = std::make_shared<const std::variant<native_program, command_program>>(std::move(program));
  return s;
}

inline std::shared_ptr<task_batch> range(std::uint64_t stage, std::uint64_t lease, partition_index first,
                                         std::uint32_t count) {
  auto b = std::make_shared<task_batch>();
  b->stage = {stage};
  b->lease = {lease};
  b->first = first;
  b->count = count;
  return b;
}

class runner_test : public ::testing::Test {
protected:
  task_runner::options base_options() {
    task_runner::options o;
    o.executor = {7};
    o.session = "s";
    o.blocks = &blocks;
    o.on_outcomes = [this](std::shared_ptr<const outcome_batch> batch) { log.add(std::move(batch)); };
    return o;
  }
  task_runner& start(task_runner::options o) {
    runner = std::make_unique<task_runner>(std::move(o));
    return *runner;
  }
  task_runner& start() { return start(base_options()); }
  /// Waits for the outcome of a single task and returns its batch.
  std::shared_ptr<const outcome_batch> only_outcome() {
    if (!log.wait_for(1)) throw std::runtime_error("no outcome came");
    return log.batches().front();
  }

  scratch_directory scratch;
  block_store blocks{{{scratch.path().string()}, 1 << 20}};
  outcome_log log;
  std::unique_ptr<task_runner> runner;
};

} // namespace troupe::testing_execution
