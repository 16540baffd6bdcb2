#pragma once

/// The job that tests of failures disturb: three stages with two shuffles between them.

#include <cstdint>
#include <map>
#include <string>

#include <troupe/runtime/api/session.hpp>

namespace troupe::system_tests {

/// The points where its tasks wait, one per stage, in order.
inline constexpr const char* three_points[] = {"map", "reduce", "result"};

/// Sums of the numbers below 400 by their rest modulo 3, by way of their rests modulo 30. Four tasks per stage; they
/// come to `map`, `reduce` and `result` of the rendezvous in `directory`.
/// @param profile of all stages; empty: the default one
std::map<std::int64_t, std::int64_t> run_three_stages(session& session, const std::string& directory,
                                                      const resource_profile& profile = {});
/// What it gives.
std::map<std::int64_t, std::int64_t> expected_of_three_stages();

} // namespace troupe::system_tests
