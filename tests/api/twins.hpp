#pragma once

/// Sums of 0 to 9 after a step by helpers of one name that differ from file to file.

#include <cstdint>

#include <troupe/runtime/api/session.hpp>

std::int64_t sum_of_twin_a(troupe::session& s); ///< each number is raised by 1
std::int64_t sum_of_twin_b(troupe::session& s); ///< by 1000
