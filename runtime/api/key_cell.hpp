#pragma once

/// An encoded key in 16 bytes, whatever its length: a short one itself, a long one by where it lies. Most keys are
/// short ones: they are compared and hashed without a look elsewhere, and without a call. Pure values; any thread.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <troupe/runtime/api/stable_hash.hpp>

namespace troupe::detail {

class key_cell {
public:
  /// Longer ones lie elsewhere.
  static constexpr std::size_t most_inside = 15;

  key_cell() noexcept = default;

  /// @pre key.size() <= most_inside
  static key_cell of(std::string_view key) noexcept {
    const auto size = key.size();
    std::uint64_t low = 0, high = 0;
    if (size > 0) low = size >= 8 ? little_endian<std::uint64_t>(key.data()) : little_endian(key.data(), size);
    if (size > 8) high = little_endian(key.data() + 8, size - 8);
    return {low, high | std::uint64_t{size} << size_shift};
  }

  /// The same for the encoding of a text (its size, and then its bytes), without writing that anywhere.
  /// @pre text.size() < most_inside
  static key_cell of_text(std::string_view text) noexcept {
    const auto content = of(text);
    const auto low = content.low(), high = content.high() & content_mask, size = std::uint64_t{text.size()};
    return {low << 8 | size, high << 8 | low >> 56 | (size + 1) << size_shift};
  }

  /// Of one with more than `most_inside` bytes, of which somebody else knows what `begin` means. @pre size < 2^56
  static key_cell elsewhere(std::uint64_t begin, std::uint64_t size) noexcept {
    return {begin, size | outside << size_shift};
  }

  bool is_inside() const noexcept { return high() >> size_shift != outside; }
  std::size_t size() const noexcept {
    return static_cast<std::size_t>(is_inside() ? high() >> size_shift : high() & content_mask);
  }
  /// @pre !is_inside()
  std::uint64_t begin() const noexcept { return low(); }
  /// Its bytes; valid as long as the cell stays where it is. @pre is_inside()
  std::string_view bytes() const noexcept { return {reinterpret_cast<const char*>(words_), size()}; }

  /// That of its bytes (see stable_hash). @pre is_inside()
  [[gnu::always_inline]] std::uint64_t hash() const noexcept {
    const auto size = high() >> size_shift;
    auto hash = stable_hash_begin(size);
    if (size > 0) hash = stable_hash_step(hash, low());
    if (size > 8) hash = stable_hash_step(hash, high() & content_mask);
    return stable_hash_end(hash);
  }

  /// Whether they are the same key. @pre one of them is inside
  bool operator==(const key_cell& other) const noexcept { return low() == other.low() && high() == other.high(); }

private:
  static constexpr int size_shift = 56;
  static constexpr std::uint64_t outside = 0xff;
  static constexpr std::uint64_t content_mask = (std::uint64_t{1} << size_shift) - 1;

  key_cell(std::uint64_t low, std::uint64_t high) noexcept : words_{stored(low), stored(high)} {}
  /// A word whose bytes in memory are in their order.
  static std::uint64_t stored(std::uint64_t word) noexcept {
    if constexpr (std::endian::native == std::endian::little)
      return word;
    else
      return __builtin_bswap64(word);
  }
  std::uint64_t low() const noexcept { return stored(words_[0]); }
  std::uint64_t high() const noexcept { return stored(words_[1]); }

  /// What is inside from its first byte on; the last byte is the size. Words, so that it stays in registers: what was
  /// written by pieces and is read as a whole has to be waited for.
  std::uint64_t words_[2] = {};
};

} // namespace troupe::detail
