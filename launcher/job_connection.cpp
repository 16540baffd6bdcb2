#include <troupe/launcher/job_connection.hpp>

#include <caf/scoped_actor.hpp>

#include <troupe/messages/type_ids.hpp>

namespace troupe {

job_connection::job_connection(caf::actor_system& system, options opts) : system_(&system), options_(std::move(opts)) {
  client_config config;
  config.loggers = options_.loggers;
  config.driver = options_.driver;
  config.on_driver_gone = [this] { lose(make_error(ec::unreachable, options_.described + " is gone")); };
  config.on_progress = [this](const boxed<job_progress>& progress) {
    if (options_.on_progress) options_.on_progress(*progress);
  };
  config.on_end = [this](const boxed<job_end>& end) {
    if (options_.on_end) options_.on_end(*end);
    std::lock_guard lock{mutex_};
    if (const auto it = jobs_.find(end->job); it != jobs_.end())
      it->second = end;
    else
      early_.emplace(end->job, end);
    changed_.notify_all();
  };
  client_ = spawn_client(*system_, std::move(config));
}

job_connection::~job_connection() { close(); }

void job_connection::close() {
  lose(make_error(ec::cancelled, "the session is over"));
  std::unique_lock lock{open_};
  if (!system_) return;
  {
    // The callbacks refer to this object: the client is gone before it is.
    caf::scoped_actor self{*system_};
    watch(self.ptr(), client_);
    shut_down(client_);
    self->receive([](const caf::down_msg&) {});
  }
  client_ = nullptr;
  options_.driver = nullptr;
  options_.blocks = nullptr; // open connections
  options_.loggers = {};     // open files
  system_ = nullptr;
}

template <class Answer, class... Question>
result<boxed<Answer>> job_connection::call(duration timeout, const Question&... question) {
  std::shared_lock lock{open_};
  if (!system_) return make_error(ec::cancelled, "the session is over");
  caf::scoped_actor self{*system_};
  result<boxed<Answer>> out{make_error(ec::internal, "no answer")};
  ask(self, options_.driver, timeout, question...)
      .receive([&](const boxed<Answer>& answer) { out = answer; },
               [&](const caf::error& why) { out = from_caf_error(*system_, why); });
  return out;
}

result<job_id> job_connection::submit(std::shared_ptr<const job_spec> job) {
  {
    std::lock_guard lock{mutex_};
    if (lost_) return lost_;
  }
  auto accepted = call<job_accepted>(options_.request_timeout, box(job_submission{std::move(job), {}}), client_);
  if (!accepted) return accepted.error();
  const auto id = (*accepted)->job;
  std::lock_guard lock{mutex_};
  auto& slot = jobs_[id];
  if (const auto it = early_.find(id); it != early_.end()) {
    slot = it->second;
    early_.erase(it);
  }
  return id;
}

job_end job_connection::wait(job_id job) {
  std::unique_lock lock{mutex_};
  job_end failed;
  failed.job = job;
  const auto it = jobs_.find(job);
  if (it == jobs_.end()) {
    failed.failure = make_error(ec::not_found, "job " + std::to_string(job.value) + " is not waited for here");
    return failed;
  }
  changed_.wait(lock, [&] { return it->second.has_value() || lost_; });
  if (!it->second) {
    failed.failure = lost_;
    jobs_.erase(it);
    return failed;
  }
  const auto end = *it->second;
  jobs_.erase(it);
  return *end;
}

result<std::string> job_connection::fetch(const result_location& where) {
  std::shared_ptr<block_client> blocks;
  {
    std::shared_lock lock{open_};
    if (!system_) return make_error(ec::cancelled, "the session is over");
    blocks = options_.blocks;
  }
  if (!blocks) return make_error(ec::internal, "this connection cannot fetch blocks");
  auto block = blocks->fetch(where.endpoint, {where.stage, where.partition, where.attempt}, 0);
  if (!block) return block.error();
  return std::string{block->bytes};
}

void job_connection::release(job_id job) {
  std::shared_lock lock{open_};
  if (system_) tell_as(client_, options_.driver, box(release_results{job}));
}

result<std::vector<task_placement>> job_connection::placements(job_id job) {
  auto answer = call<placement_answer>(options_.request_timeout, box(placement_query{job}));
  if (!answer) return answer.error();
  return (*answer)->placements;
}

result<void> job_connection::cancel(job_id job, std::string_view reason) {
  auto answer = call<acknowledged>(options_.request_timeout, box(cancel_job{job, std::string{reason}}));
  if (!answer) return answer.error();
  return {};
}

void job_connection::cancel_all(std::string_view reason) {
  std::vector<job_id> open;
  {
    std::lock_guard lock{mutex_};
    for (const auto& [job, end] : jobs_)
      if (!end) open.push_back(job);
  }
  // Whoever waits for a job that cannot be ended learns why from the loss of the driver.
  for (const auto job : open) static_cast<void>(cancel(job, reason));
}

void job_connection::lose(const error& why) {
  std::lock_guard lock{mutex_};
  if (!lost_) lost_ = why;
  changed_.notify_all();
}

result<cluster_status> job_connection::status() {
  auto answer = call<cluster_status>(options_.request_timeout, box(status_query{}));
  if (!answer) return answer.error();
  return **answer;
}

result<void> job_connection::stop(const std::string& reason, duration timeout) {
  auto answer = call<acknowledged>(timeout, box(stop_session{reason}));
  if (!answer) return answer.error();
  return {};
}

} // namespace troupe
