// A gibibyte from one executor to another, as records of a mebibyte that a pipeline hands over, and how long the task
// takes that reads them: what blocks make, with serialisation and scheduling on top.
//
//   stream_job --master 'local-cluster[2,1,5g]' [--conf troupe.transfer.same-host=never]
//
// Prints one line of JSON per round.
#include <iostream>
#include <stdexcept>
#include <string>

#include <troupe/troupe.hpp>

namespace {

constexpr std::int64_t record = 1 << 20;
constexpr std::int64_t records = 1 << 10;

/// So much memory that the block is kept in it. Each fills a host, so that nobody reads what it made itself.
troupe::resource_profile with_memory(const std::string& amount) {
  return troupe::resource_profile_builder{}
      .require(troupe::executor_resource_requests{}.cores(1).memory(amount))
      .require(troupe::task_resource_requests{}.cpus(1))
      .build();
}

void body(troupe::session& session) {
  for (int round = 0; round < 5; ++round) {
    const auto bytes = session.range(0, records, 1)
                           .map([](std::int64_t n) { return std::string(record, static_cast<char>(n)); })
                           .with_resources(with_memory("4200m"))
                           .map([](const std::string& text) { return static_cast<std::int64_t>(text.size()); })
                           .with_resources(with_memory("4300m"))
                           .reduce([](std::int64_t a, std::int64_t b) { return a + b; });
    if (bytes != record * records) throw std::runtime_error("bytes are missing");
    const auto& stages = session.last_job().stages;
    const auto nanoseconds = static_cast<double>(stages.at(1).run_nanoseconds);
    std::cout << "{\"what\": \"a task that reads 1 GiB of another executor\", \"gb_per_second\": "
              << static_cast<double>(record * records) / nanoseconds << "}" << std::endl;
  }
}

} // namespace

int main(int argc, char** argv) { return troupe::run(argc, argv, body); }
