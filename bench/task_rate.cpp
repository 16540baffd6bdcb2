// How many no-op tasks a second, and how long one task takes: a job like any other, on whatever `--master` names.
//
//   task_rate [--master WHERE] separate|range|gpu|latency|first [COUNT]
//
// separate: each task has an argument of 16 bytes, an attempt and a recorded result of its own; range: tasks without
// arguments; gpu: separate ones under a profile with a GPU share; latency: one-task jobs, one after another with a
// pause of 1 ms; first: one task, for timing the start. Prints one line of JSON per measured job.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include <troupe/troupe.hpp>

using payload = std::array<std::uint64_t, 2>;

payload echo(const payload& argument) { return argument; }
std::uint64_t nothing() { return 1; }

namespace {

using steady = std::chrono::steady_clock;

double seconds_since(steady::time_point start) { return std::chrono::duration<double>(steady::now() - start).count(); }

std::vector<payload> arguments_of(std::uint32_t count) {
  std::vector<payload> values(count);
  for (std::uint32_t i = 0; i < count; ++i) values[i] = {i, ~std::uint64_t{i}};
  return values;
}

void print_rate(const std::string& what, std::uint32_t count, double seconds) {
  std::cout << "{\"what\": \"" << what << "\", \"tasks\": " << count << ", \"seconds\": " << seconds
            << ", \"tasks_per_second\": " << static_cast<std::uint64_t>(count / seconds) << "}\n";
}

void separate(troupe::session& session, const std::string& what, std::uint32_t count, bool gpu) {
  troupe::job job{what};
  auto stage = job.stage(what).run(troupe::task<"echo", echo>).arguments(arguments_of(count));
  if (gpu)
    stage.profile(troupe::resource_profile_builder{}
                      .require(troupe::executor_resource_requests{}.cores(1).memory("256m").resource("gpu", 1))
                      .require(troupe::task_resource_requests{}.cpus(1).resource("gpu", "0.5"))
                      .build());
  for (int round = 0; round < 6; ++round) {
    const auto start = steady::now();
    const auto results = session.run(job, stage);
    const auto seconds = seconds_since(start);
    for (std::uint32_t i = 0; i < count; ++i)
      if (results[i][0] != i) throw std::runtime_error("a result is wrong");
    if (round > 0) print_rate(what, count, seconds);
  }
}

void range(troupe::session& session, std::uint32_t count) {
  troupe::job job{"range"};
  auto stage = job.stage("range").run(troupe::task<"nothing", nothing>).tasks(count);
  for (int round = 0; round < 6; ++round) {
    const auto start = steady::now();
    const auto results = session.run(job, stage);
    if (round > 0) print_rate("range", count, seconds_since(start));
    if (results.size() != count) throw std::runtime_error("a result is missing");
  }
}

void latency(troupe::session& session, std::uint32_t count) {
  troupe::job job{"one"};
  auto stage = job.stage("one").run(troupe::task<"echo", echo>).arguments(arguments_of(1));
  std::vector<double> times;
  for (std::uint32_t i = 0; i < count + 50; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
    const auto start = steady::now();
    session.run(job, stage);
    if (i >= 50) times.push_back(seconds_since(start) * 1e6);
  }
  std::sort(times.begin(), times.end());
  std::cout << "{\"what\": \"latency\", \"jobs\": " << count << ", \"p50_us\": " << times[times.size() / 2]
            << ", \"p99_us\": " << times[times.size() * 99 / 100] << "}\n";
}

void body(troupe::session& session) {
  const auto& words = session.arguments();
  const std::string what = words.empty() ? "separate" : words[0];
  const auto count = [&](std::uint32_t standard) {
    return words.size() > 1 ? static_cast<std::uint32_t>(std::stoul(words[1])) : standard;
  };
  if (what == "separate" || what == "gpu")
    separate(session, what, count(1'000'000), what == "gpu");
  else if (what == "range")
    range(session, count(1'000'000));
  else if (what == "latency")
    latency(session, count(2000));
  else if (what == "first") {
    troupe::job job{"first"};
    auto stage = job.stage("first").run(troupe::task<"echo", echo>).arguments(arguments_of(1));
    session.run(job, stage);
    std::cout << "{\"what\": \"first\"}" << std::endl; // somebody takes the time of this line
  } else {
    throw std::runtime_error("unknown measurement " + what);
  }
}

} // namespace

int main(int argc, char** argv) {
  return troupe::run(argc, argv, body, {.defaults = {"troupe.gpu.discovery=probe-or-fake"}});
}
