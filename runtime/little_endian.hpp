#pragma once

/// Numbers in files and frames, whose lowest byte comes first on every machine.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::little_endian {

template <class Number>
void append(std::string& to, Number number) {
  char bytes[sizeof(Number)];
  for (std::size_t i = 0; i < sizeof(Number); ++i)
    bytes[i] = static_cast<char>(static_cast<std::uint64_t>(number) >> (8 * i));
  to.append(bytes, sizeof(Number));
}

template <class Number>
void write(char* to, Number number) noexcept {
  for (std::size_t i = 0; i < sizeof(Number); ++i)
    to[i] = static_cast<char>(static_cast<std::uint64_t>(number) >> (8 * i));
}

/// @pre at + sizeof(Number) <= from.size()
template <class Number>
Number read(std::string_view from, std::size_t at = 0) noexcept {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i)
    number |= std::uint64_t{static_cast<unsigned char>(from[at + i])} << (8 * i);
  return static_cast<Number>(number);
}

} // namespace troupe::little_endian
