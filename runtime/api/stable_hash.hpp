#pragma once

/// A hash of bytes that is the same in every process and on every machine: it decides in which partition a key lands.
/// Not for keys that an attacker chooses (one can make them collide). Pure; any thread.

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace troupe {

namespace detail {

/// The bytes of a word as a little-endian number.
template <class Word>
Word little_endian(const char* at) noexcept {
  Word word = 0;
  if constexpr (std::endian::native == std::endian::little)
    std::memcpy(&word, at, sizeof word);
  else
    for (std::size_t i = 0; i < sizeof word; ++i)
      word |= static_cast<Word>(static_cast<unsigned char>(at[i])) << (8 * i);
  return word;
}

/// 1 to 7 bytes as one, without a call for the odd size: keys are often that short.
inline std::uint64_t little_endian(const char* at, std::size_t size) noexcept {
  if (size >= 4) {
    const std::uint64_t end = little_endian<std::uint32_t>(at + size - 4);
    return little_endian<std::uint32_t>(at) | end >> (8 * (8 - size)) << 32;
  }
  const auto byte = [&](std::size_t i) { return std::uint64_t{static_cast<unsigned char>(at[i])} << (8 * i); };
  return byte(0) | byte(size / 2) | byte(size - 1);
}

/// The steps of stable_hash, for who has the words of a key at hand: from its size on, over each word of 8 bytes (of
/// the last one what there is), to the end.
constexpr std::uint64_t stable_hash_begin(std::uint64_t size) noexcept {
  return 0x9e3779b97f4a7c15 ^ (size * 0x94d049bb133111eb);
}
constexpr std::uint64_t stable_hash_step(std::uint64_t hash, std::uint64_t word) noexcept {
  return std::rotl(hash ^ (word * 0xbf58476d1ce4e5b9), 29) * 0x9e3779b97f4a7c15;
}
constexpr std::uint64_t stable_hash_end(std::uint64_t hash) noexcept {
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111eb;
  return hash ^ (hash >> 31);
}

} // namespace detail

/// 64 well mixed bits of `bytes`. The values are fixed for ever: files and blocks are laid out by them.
[[gnu::always_inline]] inline std::uint64_t stable_hash(std::string_view bytes) noexcept {
  const char* at = bytes.data();
  auto left = bytes.size();
  auto hash = detail::stable_hash_begin(left);
  for (; left >= 8; at += 8, left -= 8) hash = detail::stable_hash_step(hash, detail::little_endian<std::uint64_t>(at));
  if (left > 0) hash = detail::stable_hash_step(hash, detail::little_endian(at, left));
  return detail::stable_hash_end(hash);
}

/// The bucket of `count` in which a key with this hash lands. It uses the upper half of the hash; tables within a
/// bucket use the lower one. @pre count > 0
constexpr std::uint32_t bucket_of(std::uint64_t hash, std::uint32_t count) noexcept {
  return static_cast<std::uint32_t>(((hash >> 32) * count) >> 32);
}

} // namespace troupe
