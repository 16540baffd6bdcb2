// A helper and a lambda of the same names as in its twin, each known in its own file alone.

#include <functional>

#include <troupe/runtime/api/session.hpp>

#include "twins.hpp"

namespace {

std::int64_t step(std::int64_t i) { return i + 1; }
auto prepare(const troupe::dataset<std::int64_t>& d) {
  return d.map([](std::int64_t i) { return step(i); });
}

} // namespace

std::int64_t sum_of_twin_a(troupe::session& s) { return prepare(s.range(0, 10, 2)).reduce(std::plus<>{}).value(); }
