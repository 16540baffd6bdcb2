#pragma once

/// An application with an embedded driver, and tasks that do what a test wants.

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>

#include <troupe/actors/embedding.hpp>
#include <troupe/actors/submission.hpp>
#include <troupe/launcher/node_system.hpp>
#include <troupe/messages/caf_compat.hpp>
#include <troupe/runtime/api/job.hpp>
#include <troupe/tests/support/patience.hpp>
#include <troupe/tests/support/test_cluster.hpp>

namespace troupe::actor_tests {

/// Where tasks wait that look at nothing else.
class closed_door {
public:
  void close() {
    const std::lock_guard lock{mutex_};
    open_ = false;
  }
  void open() {
    const std::lock_guard lock{mutex_};
    open_ = true;
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock{mutex_};
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
    --waiting_;
  }
  bool await(int tasks) {
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, testing::patience(), [&] { return waiting_ == tasks; });
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  int waiting_ = 0;
};
/// Keeps what was logged.
class kept_lines : public spdlog::sinks::base_sink<std::mutex> {
public:
  bool have(const std::string& text) {
    const std::lock_guard lock{mutex_};
    return text_.find(text) != std::string::npos;
  }
  std::size_t count(const std::string& text) {
    const std::lock_guard lock{mutex_};
    std::size_t n = 0;
    for (auto at = text_.find(text); at != std::string::npos; at = text_.find(text, at + text.size())) ++n;
    return n;
  }

protected:
  void sink_it_(const spdlog::details::log_msg& line) override {
    text_.append(line.payload.data(), line.payload.size());
    text_ += '\n';
  }
  void flush_() override {}

private:
  std::string text_;
};

/// An application with a driver, to the end of its actor system.
class application_of_actors {
public:
  explicit application_of_actors(duration shutdown_grace, std::uint64_t max_inline_result = 1 << 20) {
    embedded_options options;
    options.directory = folder.path();
    options.max_inline_result = max_inline_result;
    options.shutdown_grace = shutdown_grace;
    options.loggers = [sink = lines](std::string_view part) {
      return std::make_shared<spdlog::logger>(std::string{part}, sink);
    };
    auto made = spawn_embedded(*system, std::move(options));
    EXPECT_TRUE(made) << made.error().message;
    cluster = *made;
  }

  void stop_session() {
    caf::scoped_actor self{*system};
    ask(self, cluster.driver, testing::patience(), box(troupe::stop_session{"closing"}))
        .receive([](const boxed<acknowledged>&) {}, [](const caf::error&) { ADD_FAILURE(); });
  }
  /// Lets all actors end, and the system go.
  void end() {
    shut_down(cluster.driver);
    cluster = {};
    system.reset();
  }

  std::shared_ptr<kept_lines> lines = std::make_shared<kept_lines>();
  testing::temporary_directory folder;
  node_config config{false};
  std::unique_ptr<caf::actor_system> system = std::make_unique<caf::actor_system>(config);
  embedded_cluster cluster;
};

/// A job of one stage: this task, once for each number.
template <class Task>
std::shared_ptr<const job_spec> job_of(const Task& what, std::vector<std::int64_t> numbers) {
  job one{"one"};
  one.stage("only").run(what).arguments(std::move(numbers));
  return std::make_shared<const job_spec>(one.build({}, 0));
}

} // namespace troupe::actor_tests
