#pragma once

/// Many values of one type, each at a place of its own that it keeps: no pointer to follow on the way to one of them
/// but that of its chunk. Not thread-safe.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace troupe {

/// `T` is default-constructed wherever nothing stands.
template <class T, std::uint32_t PerChunk>
class slab {
public:
  /// @returns the position of a fresh value: the one that was given back last, else the next one
  std::uint32_t take() {
    if (!vacant_.empty()) {
      const auto at = vacant_.back();
      vacant_.pop_back();
      return at;
    }
    if (size_ % PerChunk == 0) chunks_.push_back(std::make_unique<std::array<T, PerChunk>>());
    return size_++;
  }
  /// What stood there is destroyed.
  void give_back(std::uint32_t at) {
    (*this)[at] = T{};
    vacant_.push_back(at);
  }
  T& operator[](std::uint32_t at) noexcept { return (*chunks_[at / PerChunk])[at % PerChunk]; }
  const T& operator[](std::uint32_t at) const noexcept { return (*chunks_[at / PerChunk])[at % PerChunk]; }
  /// Positions that were ever taken.
  std::uint32_t size() const noexcept { return size_; }

private:
  std::vector<std::unique_ptr<std::array<T, PerChunk>>> chunks_;
  std::vector<std::uint32_t> vacant_;
  std::uint32_t size_ = 0;
};

/// Says that these bytes will be looked at soon.
inline void prefetch(const void* first, std::size_t bytes) noexcept {
  constexpr std::size_t line = 64;
  for (std::size_t at = 0; at < bytes; at += line) __builtin_prefetch(static_cast<const char*>(first) + at);
}

} // namespace troupe
