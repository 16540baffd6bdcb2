#pragma once

/// How long a test waits for what has to happen. Header-only, so that tests can have it that link no support library.

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include <troupe/runtime/time.hpp>

namespace troupe::testing {

/// The one bound of everything that a test waits for. It ends what hangs and says nothing about speed: 120 s, times the
/// environment variable TROUPE_TEST_PATIENCE, a decimal number above 0 and up to 10000. Any thread. Throws
/// std::runtime_error where that is no such number.
inline duration patience() {
  constexpr std::chrono::seconds usual{120};
  const char* const text = std::getenv("TROUPE_TEST_PATIENCE");
  if (!text || *text == '\0') return usual;
  double factor = 0;
  const char* const end = text + std::strlen(text);
  const auto [rest, failure] = std::from_chars(text, end, factor, std::chars_format::fixed);
  constexpr double most = 10'000; // in milliseconds it is still an int
  if (failure != std::errc{} || rest != end || !(factor > 0) || factor > most)
    throw std::runtime_error("TROUPE_TEST_PATIENCE = " + std::string{text} +
                             ": must be a decimal number above 0, such as 2.5, of at most 10000");
  return std::chrono::duration_cast<duration>(std::chrono::duration<double>{usual} * factor);
}

} // namespace troupe::testing
