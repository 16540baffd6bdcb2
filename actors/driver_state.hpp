#pragma once

/// What a driver knows and does; driver.cpp says which message leads to what. For the driver's own files only.

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <troupe/actors/driver.hpp>
#include <troupe/actors/hello.hpp>
#include <troupe/messages/gate.hpp>
#include <troupe/runtime/events/event_stream.hpp>

namespace troupe::detail {

using driver_pointer = stateful_pointer<local_driver_actor, struct driver_state>;

struct known_executor {
  executor_info info;
  executor_actor handle;
  time_point last_beat{};
  std::uint64_t last_number = 0;
  std::uint64_t block_bytes = 0;
  std::uint32_t running = 0;
  bool out_of_reach = false; ///< its connection is closed, and the allocator was asked what became of it
};

struct pending_submission {
  boxed<job_submission> submission;
  client_actor client;
  caf::typed_response_promise<boxed<job_accepted>> promise;
  time_point since{};
};

struct known_client {
  client_actor handle;
  incarnation program = 0; ///< whose broadcasts go with it; 0: none
};

struct driver_state {
  static constexpr const char* name = "troupe.driver";
  driver_config config;
  std::unique_ptr<hello_desk> desk;
  std::unique_ptr<gate> admitted;
  std::unique_ptr<events::event_stream> history;
  std::shared_ptr<spdlog::logger> log;
  std::uint64_t surprises = 0;
  local_dag_scheduler_actor scheduler;
  allocator_actor allocator;
  resource_profile_manager_actor profiles;
  caf::node_id services; ///< welcomed, its actors not named yet
  std::map<executor_id, known_executor> executors;
  std::set<request_id> requests;                     ///< of those that were not started by hand
  std::vector<known_client> clients;                 ///< remote ones that were admitted
  std::map<std::uint64_t, client_actor> subscribers; ///< by their numbers in the history
  std::uint64_t next_subscriber = 1;
  using profile_key = std::tuple<std::string, std::uint64_t, resource_profile>; ///< submitter, build, content
  std::map<profile_key, resolved_profile> cache;
  std::set<profile_id> announced;          ///< whose event has been published
  std::vector<pending_submission> waiting; ///< until the services have said hello
  std::uint64_t next_executor = 1;
  std::uint64_t beats = 0;
  time_point last_tick{};
  time_point last_beat{};
  bool stopping = false;

  driver_state() = default;
  driver_state(const driver_state&) = delete;
  driver_state& operator=(const driver_state&) = delete;
  /// What it spawned ends with it: nobody else knows these actors, and their clocks keep them alive.
  ~driver_state() {
    const auto end = [](const auto& actor) {
      if (actor) shut_down(actor);
    };
    end(scheduler);
    if (config.remote_services) return;
    end(allocator);
    end(profiles);
  }

  void start_services(driver_pointer self);
  void admit(driver_pointer self, const executor_registration& registration, const executor_actor& handle,
             caf::typed_response_promise<boxed<welcome>, dag_scheduler_actor> promise);
  welcome make_welcome(executor_id id) const;
  /// @param ended its process is known to be dead, or has said that it publishes nothing more; so it is where `exit`
  /// says how it ended
  void gone(driver_pointer self, executor_id id, const std::string& cause, bool lost, const executor_exit& exit = {},
            bool ended = false);
  void connection_lost(driver_pointer self, executor_id id);
  void submit(driver_pointer self, pending_submission request);
  void resolved(driver_pointer self, pending_submission request, const registered_profiles& answer);
  void forward(driver_pointer self, const pending_submission& request, std::shared_ptr<const job_spec> job,
               std::vector<resolved_profile> profiles_of_job);
  profile_key key_of(const std::string& submitter, const resource_profile& profile) const;
  void announce(const resolved_profile& profile);
  /// @param decided when; 0: now
  void publish(events::any fact, std::int64_t decided = 0);
  void subscribe(driver_pointer self, const subscribe_events& wish, const client_actor& client);
  void feed(driver_pointer self);
  void tick_passed(driver_pointer self);
  /// Lateness of a tick that comes at `now`: time for which this process stood still.
  duration lateness_at(time_point now) const;
  /// Time for which nothing was heard of it although this process could have heard it: its own lateness does not count.
  duration silence_of(const known_executor& executor, time_point now) const;
  void peer_gone(driver_pointer self, const caf::actor_addr& who);
  known_executor* author(driver_pointer self, executor_id id);
  using stop_promise = caf::typed_response_promise<boxed<acknowledged>>;
  void stop(driver_pointer self, const std::string& reason, const stop_promise& promise);
  void stop_allocator(driver_pointer self, const std::string& reason, const stop_promise& promise);
  void stop_executors(driver_pointer self, const std::string& reason, const stop_promise& promise);
  void collect_history(driver_pointer self, const std::string& reason, stop_promise promise);
};

} // namespace troupe::detail
