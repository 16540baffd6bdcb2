#include <troupe/messages/caf_compat.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <future>
#include <limits>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include <caf/actor_registry.hpp>
#include <caf/message.hpp>

#if !TROUPE_CAF1
#include <caf/atom.hpp>
#endif

#include <troupe/messages/network.hpp>
#include <troupe/runtime/spelling.hpp>

namespace troupe {

namespace detail {

std::string text_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception that is not a std::exception";
  }
}

#if TROUPE_CAF1
std::string type_names(const caf::message& content) {
  return content.empty() ? "nothing that could be decoded" : caf::to_string(content.types());
}
#else
std::string type_names(caf::actor_system& system, const caf::type_erased_tuple& content) {
  if (content.empty()) return "nothing that could be decoded";
  std::string names;
  for (std::size_t i = 0; i < content.size(); ++i) {
    if (i > 0) names += ", ";
    const auto& name = system.types().portable_name(content.type(i));
    names += name.empty() ? "a type that was never announced" : name;
  }
  return names;
}
#endif

} // namespace detail

bool await_actors(caf::actor_system& system, std::chrono::nanoseconds longest) {
  const auto deadline = std::chrono::steady_clock::now() + longest;
  while (system.registry().running() > 0) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  return true;
}

void cancel_delayed([[maybe_unused]] caf::actor_system& system) {
#if !TROUPE_CAF1
  system.clock().cancel_all();
#endif
}

std::string caf_version() {
  return std::to_string(CAF_MAJOR_VERSION) + "." + std::to_string(CAF_MINOR_VERSION) + "." +
         std::to_string(CAF_PATCH_VERSION);
}

std::string describe([[maybe_unused]] const caf::actor_system& system, const caf::error& what) {
#if TROUPE_CAF1
  return caf::to_string(what);
#else
  return system.render(what);
#endif
}

caf::error to_caf_error(const error& failure) {
  return caf::make_error(caf::sec::runtime_error, static_cast<std::uint16_t>(failure.code), failure.message);
}

error from_caf_error(const caf::actor_system& system, const caf::error& what) {
  if (what == caf::sec::runtime_error) {
    const auto& context = what.context();
    if (context.match_elements<std::uint16_t, std::string>()) {
      const auto code = context.get_as<std::uint16_t>(0);
      // A number that this build does not know (or none) is still a failure.
      const bool known = code != 0 && code <= static_cast<std::uint16_t>(last_code);
      return make_error(known ? static_cast<ec>(code) : ec::internal, context.get_as<std::string>(1));
    }
  }
  if (what == caf::sec::request_timeout)
    return make_error(ec::unreachable, "no answer came in time (troupe.driver.request-timeout)");
  for (auto nobody : {caf::sec::request_receiver_down, caf::sec::cannot_connect_to_node,
                      caf::sec::remote_linking_failed, caf::sec::disconnect_during_handshake})
    if (what == nobody) return make_error(ec::unreachable, describe(system, what));
  if (what == caf::sec::incompatible_versions || what == caf::sec::unexpected_actor_messaging_interface)
    return make_error(ec::version_mismatch, describe(system, what));
  return make_error(ec::internal, describe(system, what));
}

namespace {

enum class option_kind { count, duration, policy };

struct option {
  std::string_view key;
  option_kind kind;
};

// Spelled alike in 0.17 and 1.x, but for the prefix.
constexpr std::array known_options{
    option{"middleman.connection-timeout", option_kind::duration},
    option{"middleman.heartbeat-interval", option_kind::duration},
    option{"middleman.max-consecutive-reads", option_kind::count},
    option{"middleman.workers", option_kind::count},
    option{"scheduler.max-threads", option_kind::count},
    option{"scheduler.max-throughput", option_kind::count},
    option{"scheduler.policy", option_kind::policy},
    option{"work-stealing.aggressive-poll-attempts", option_kind::count},
    option{"work-stealing.aggressive-steal-interval", option_kind::count},
    option{"work-stealing.moderate-poll-attempts", option_kind::count},
    option{"work-stealing.moderate-sleep-duration", option_kind::duration},
    option{"work-stealing.moderate-steal-interval", option_kind::count},
    option{"work-stealing.relaxed-sleep-duration", option_kind::duration},
    option{"work-stealing.relaxed-steal-interval", option_kind::count},
};

/// Digits alone, at most 2^63 - 1; the rest of the text after them.
std::optional<std::pair<std::int64_t, std::string_view>> leading_count(std::string_view text) {
  std::int64_t number = 0;
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc{}) return std::nullopt;
  return std::pair{number, text.substr(static_cast<std::size_t>(end - text.data()))};
}

std::optional<std::int64_t> parse_nanoseconds(std::string_view text) {
  const auto parts = leading_count(text);
  if (!parts) return std::nullopt;
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 6> units{{{"ns", 1},
                                                                            {"us", 1'000},
                                                                            {"ms", 1'000'000},
                                                                            {"s", 1'000'000'000},
                                                                            {"min", 60'000'000'000},
                                                                            {"h", 3'600'000'000'000}}};
  for (const auto& [unit, nanoseconds] : units)
    if (parts->second == unit) {
      if (parts->first > std::numeric_limits<std::int64_t>::max() / nanoseconds) return std::nullopt;
      return parts->first * nanoseconds;
    }
  return std::nullopt;
}

} // namespace

result<void> set_caf_option(caf::actor_system_config& config, std::string_view key, std::string_view value) {
  const auto known = std::find_if(known_options.begin(), known_options.end(),
                                  [key](const option& candidate) { return candidate.key == key; });
  const auto invalid = [&](std::string why) {
    return make_error(ec::invalid_configuration,
                      "caf." + std::string{key} + " = " + std::string{value} + ": " + std::move(why));
  };
  if (known == known_options.end()) {
    std::vector<std::string> names;
    for (const auto& candidate : known_options) names.push_back("caf." + std::string{candidate.key});
    return invalid("there is no such option of CAF" + spelling_hint("caf." + std::string{key}, names));
  }
#if TROUPE_CAF1
  const auto full_key = "caf." + std::string{key};
#else
  const std::string full_key{key};
#endif
  switch (known->kind) {
  case option_kind::count: {
    const auto count = leading_count(value);
    if (!count || !count->second.empty()) return invalid("must be a whole number");
    config.set(full_key, count->first);
    break;
  }
  case option_kind::duration: {
    const auto nanoseconds = parse_nanoseconds(value);
    if (!nanoseconds) return invalid("must be a time such as 500ms, 2s or 1min");
    config.set(full_key, caf::timespan{*nanoseconds});
    break;
  }
  case option_kind::policy:
    if (value != "stealing" && value != "sharing") return invalid("must be one of stealing, sharing");
#if TROUPE_CAF1
    config.set(full_key, std::string{value});
#else
    config.set(full_key, caf::atom_from_string(std::string{value}));
#endif
    break;
  }
  return {};
}

namespace detail {

void await_listening(caf::actor_system& system) {
  auto& loop = system.middleman().backend();
  // Nobody else runs that loop: waiting for it here would be for ever.
  if (std::this_thread::get_id() == loop.thread_id() ||
      caf::get_or(system.config(), "middleman.manual-multiplexing", false))
    return;
  // The loop takes one of these at a time, in their order, and registers its sockets after each.
  auto passed = std::make_shared<std::promise<void>>();
  auto there = passed->get_future();
  // A loop that has ended drops it, and the promise with it.
  loop.post([passed = std::move(passed)] { passed->set_value(); });
  there.wait();
}

void close_at_end(caf::actor_system& system, const caf::strong_actor_ptr& whom, std::uint16_t port) {
  const auto of = caf::actor_cast<caf::actor_addr>(whom);
  whom->get()->attach_functor([middleman = system.middleman().actor_handle(), of, port](const caf::error&) {
#if TROUPE_CAF1
    caf::anon_mail(caf::unpublish_atom_v, of, port).send(middleman);
#else
    caf::anon_send(middleman, caf::unpublish_atom::value, of, port);
#endif
  });
}

} // namespace detail

} // namespace troupe
