#pragma once

/// A hash of bytes that is the same in every process and on every machine: it decides in which partition a key lands.
/// Not for keys that an attacker chooses (one can make them collide). Pure; any thread.

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace troupe {

/// 64 well mixed bits of `bytes`. The values are fixed for ever: files and blocks are laid out by them.
inline std::uint64_t stable_hash(std::string_view bytes) noexcept {
  constexpr std::uint64_t first = 0x9e3779b97f4a7c15, second = 0xbf58476d1ce4e5b9, third = 0x94d049bb133111eb;
  const auto take = [&](std::size_t n) { // the next n bytes as a little-endian number
    std::uint64_t word = 0;
    if constexpr (std::endian::native == std::endian::little)
      std::memcpy(&word, bytes.data(), n);
    else
      for (std::size_t i = 0; i < n; ++i)
        word |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
    bytes.remove_prefix(n);
    return word;
  };
  std::uint64_t hash = first ^ (bytes.size() * third);
  while (bytes.size() >= 8) hash = std::rotl(hash ^ (take(8) * second), 29) * first;
  if (!bytes.empty()) hash = std::rotl(hash ^ (take(bytes.size()) * second), 29) * first;
  hash = (hash ^ (hash >> 30)) * second;
  hash = (hash ^ (hash >> 27)) * third;
  return hash ^ (hash >> 31);
}

/// The bucket of `count` in which a key with this hash lands. It uses the upper half of the hash; tables within a
/// bucket use the lower one. @pre count > 0
constexpr std::uint32_t bucket_of(std::uint64_t hash, std::uint32_t count) noexcept {
  return static_cast<std::uint32_t>(((hash >> 32) * count) >> 32);
}

} // namespace troupe
