#include <troupe/launcher/job_connection.hpp>

#include <algorithm>

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
  config.on_answer = [this](const boxed<job_submission>& submission, const result<job_id>& job) {
    return answered(submission, job);
  };
  config.on_end = [this](const boxed<job_end>& end) {
    ended(end); // first: somebody waits for it
    if (options_.on_end) options_.on_end(*end);
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
    shut_down(client_);
    await_end(client_);
  }
  client_ = nullptr;
  options_.driver = nullptr;
  options_.blocks = nullptr; // open connections
  options_.publish = {};
  options_.withdraw = {};
  options_.loggers = {}; // open files
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

job_end job_connection::run(std::shared_ptr<const job_spec> job) {
  const auto deadline = std::chrono::steady_clock::now() + options_.request_timeout;
  auto submission = box(job_submission{std::move(job), {}});
  const auto* name = submission.shared().get();
  const auto mine = std::make_shared<submitted>();
  mine->submission = submission;
  job_end failed;
  {
    const std::lock_guard lock{mutex_};
    failed.failure = lost_;
    if (!lost_) submitted_.emplace(name, mine);
  }
  if (failed.failure) return failed;
  {
    // Not `call`: its caller would wake for the acceptance alone.
    const std::shared_lock lock{open_};
    if (system_) tell_as(client_, client_, local(submission));
  }
  std::unique_lock lock{mutex_};
  const auto over = [&] { return mine->end || mine->refused || lost_; };
  if (!changed_.wait_until(lock, deadline, over)) {
    if (mine->job) {
      changed_.wait(lock, over);
    } else {
      mine->awaited = false; // `answered` ends it, should it be accepted yet
      failed.failure = make_error(ec::unreachable, options_.described + " has not answered the submission in time");
      return failed;
    }
  }
  failed.job = mine->job;
  failed.failure = mine->refused ? mine->refused : lost_;
  if (mine->awaited || lost_) submitted_.erase(name);
  return mine->end ? **mine->end : failed;
}

/// @returns whether somebody waits for it
bool job_connection::answered(const boxed<job_submission>& submission, const result<job_id>& job) {
  const std::lock_guard lock{mutex_};
  const auto it = submitted_.find(submission.shared().get());
  if (it == submitted_.end()) return false; // the driver is lost
  auto& one = *it->second;
  if (job) one.job = *job;
  const auto early = job ? early_.extract(*job) : decltype(early_)::node_type{};
  if (!one.awaited) {
    if (!job || early) submitted_.erase(it);
    return false;
  }
  if (!job)
    one.refused = job.error();
  else if (early)
    one.end = early.mapped();
  if (!job || early) changed_.notify_all();
  return true;
}

void job_connection::ended(const boxed<job_end>& end) {
  {
    const std::lock_guard lock{mutex_};
    const auto it = std::find_if(submitted_.begin(), submitted_.end(),
                                 [&](const auto& entry) { return entry.second->job == end->job; });
    if (it == submitted_.end()) {
      early_.emplace(end->job, end);
    } else if (!it->second->awaited) {
      submitted_.erase(it);
    } else {
      it->second->end = end;
    }
  }
  changed_.notify_all(); // without the lock that they would wake for and wait for
}

result<std::string> job_connection::fetch(const result_location& where) {
  std::shared_ptr<block_client> blocks;
  {
    std::shared_lock lock{open_};
    if (!system_) return make_error(ec::cancelled, "the session is over");
    blocks = options_.blocks;
  }
  if (!blocks) return make_error(ec::internal, "this connection cannot fetch blocks");
  return blocks->fetch_value(where.endpoint, output_key(where.stage, where.partition, where.attempt));
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

result<void> job_connection::cancel_stage(job_id job, std::uint32_t stage, std::string_view reason) {
  auto answer =
      call<acknowledged>(options_.request_timeout, box(troupe::cancel_stage{job, stage, std::string{reason}}));
  if (!answer) return answer.error();
  return {};
}

result<std::vector<job_id>> job_connection::cancel_group(std::string_view group, std::string_view reason) {
  auto answer = call<cancelled_jobs>(options_.request_timeout,
                                     box(troupe::cancel_group{std::string{group}, std::string{reason}}));
  if (!answer) return answer.error();
  return (*answer)->jobs;
}

result<broadcast_reference> job_connection::publish(const broadcast_content& content) {
  std::shared_lock lock{open_};
  if (!system_) return make_error(ec::cancelled, "the session is over");
  if (!options_.publish) return make_error(ec::internal, "this connection makes no broadcasts");
  return options_.publish(content);
}

void job_connection::withdraw(broadcast_id id) {
  std::shared_lock lock{open_};
  if (!system_) return;
  if (options_.withdraw) options_.withdraw(id);
  tell_as(client_, options_.driver, box(withdraw_broadcast{id}));
}

void job_connection::cancel_all(std::string_view reason) {
  std::vector<job_id> open;
  {
    const std::lock_guard lock{mutex_};
    for (const auto& [name, entry] : submitted_) {
      auto& one = *entry;
      if (one.end || !one.awaited) continue;
      if (one.job) {
        open.push_back(one.job);
        continue;
      }
      one.awaited = false; // cancelled as soon as it is accepted
      one.refused = make_error(ec::cancelled, std::string{reason});
    }
    changed_.notify_all();
  }
  // Whoever waits for a job that cannot be ended learns why from the loss of the driver.
  for (const auto job : open) static_cast<void>(cancel(job, reason));
}

void job_connection::lose(const error& why) {
  std::lock_guard lock{mutex_};
  if (!lost_) lost_ = why;
  changed_.notify_all();
}

result<job_explanation> job_connection::explain(job_id job) {
  auto answer = call<job_explanation>(options_.request_timeout, box(explain_query{job}));
  if (!answer) return answer.error();
  return **answer;
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
