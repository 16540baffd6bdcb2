#include <troupe/tests/system/stages.hpp>

#include <functional>
#include <vector>

#include <troupe/tests/system/rendezvous.hpp>

namespace troupe::system_tests {
namespace {

using pair = std::pair<std::int64_t, std::int64_t>;
constexpr std::int64_t numbers = 400;

} // namespace

std::map<std::int64_t, std::int64_t> run_three_stages(session& session, const std::string& directory,
                                                      const resource_profile& profile) {
  const auto sums =
      session.range(0, numbers, 4)
          .map_partitions(with(directory),
                          [](const std::string& where, const std::vector<std::int64_t>& part) {
                            arrive(where, "map");
                            std::vector<pair> out;
                            for (const auto n : part) out.emplace_back(n % 30, n);
                            return out;
                          })
          .with_resources(profile)
          .reduce_by_key(std::plus<>{}, 4)
          .map_partitions(with(directory),
                          [](const std::string& where, const std::vector<pair>& part) {
                            arrive(where, "reduce");
                            std::vector<pair> out;
                            for (const auto& [rest, sum] : part) out.emplace_back(rest % 3, sum);
                            return out;
                          })
          .with_resources(profile)
          .group_by_key(4)
          .map_partitions(with(directory),
                          [](const std::string& where,
                             const std::vector<std::pair<std::int64_t, std::vector<std::int64_t>>>& part) {
                            arrive(where, "result");
                            std::vector<pair> out;
                            for (const auto& [rest, values] : part) {
                              std::int64_t sum = 0;
                              for (const auto v : values) sum += v;
                              out.emplace_back(rest, sum);
                            }
                            return out;
                          })
          .with_resources(profile)
          .collect();
  return {sums.begin(), sums.end()};
}

std::map<std::int64_t, std::int64_t> expected_of_three_stages() {
  std::map<std::int64_t, std::int64_t> out;
  for (std::int64_t n = 0; n < numbers; ++n) out[n % 3] += n;
  return out;
}

} // namespace troupe::system_tests
