#include <troupe/runtime/scheduling/bucket_sizes.hpp>

#include <algorithm>
#include <array>
#include <vector>

#include <troupe/runtime/little_endian.hpp>

namespace troupe {

namespace {

constexpr std::size_t averaged_header = 1 + 8 + 4;
constexpr std::size_t named_size = 4 + 1;
/// A bucket is named where it is so many times the average.
constexpr std::uint64_t outlier_factor = 5;

/// The size that each level stands for; without floating point, so that it is the same everywhere.
constexpr std::array<std::uint64_t, 256> make_steps() {
  std::array<std::uint64_t, 256> all{};
  for (std::size_t level = 1; level < all.size(); ++level)
    all[level] = std::max(all[level - 1] + 1, all[level - 1] + all[level - 1] / 10);
  return all;
}
constexpr auto steps = make_steps();
static_assert(steps.back() > std::uint64_t{1} << 36, "a level for each size that a bucket may have");

std::uint8_t level_of(std::uint64_t size) noexcept {
  const auto step = std::lower_bound(steps.begin(), steps.end() - 1, size);
  return static_cast<std::uint8_t>(step - steps.begin());
}

using little_endian::append;
using little_endian::read;

/// Bytes of a bit for each bucket.
constexpr std::size_t bits_size(std::uint32_t buckets) noexcept { return (std::size_t{buckets} + 7) / 8; }

void set_bit(std::string& bits, std::size_t from, std::uint32_t bucket) {
  auto& byte = bits[from + bucket / 8];
  byte = static_cast<char>(byte | 1 << (bucket % 8));
}

std::string encode_averaged(std::span<const std::uint64_t> sizes) {
  const auto buckets = static_cast<std::uint32_t>(sizes.size());
  std::uint64_t total = 0;
  std::uint64_t filled = 0;
  for (const auto size : sizes) {
    total += size;
    filled += size > 0 ? 1 : 0;
  }
  std::vector<std::uint32_t> named;
  for (std::uint32_t b = 0; b < buckets; ++b)
    if (filled > 0 && sizes[b] / outlier_factor > total / filled) named.push_back(b);
  // Altogether no more than a byte for each bucket: the largest ones.
  const std::size_t most = buckets / 8;
  if (named.size() > most) {
    std::nth_element(named.begin(), named.begin() + static_cast<std::ptrdiff_t>(most), named.end(),
                     [&](auto a, auto b) { return sizes[a] != sizes[b] ? sizes[a] > sizes[b] : a < b; });
    named.resize(most);
    std::sort(named.begin(), named.end());
  }
  for (const auto b : named) {
    total -= sizes[b];
    --filled;
  }
  std::string all(1, '\1');
  append(all, filled == 0 ? std::uint64_t{0} : total / filled);
  append(all, static_cast<std::uint32_t>(named.size()));
  for (const auto b : named) {
    append(all, b);
    append(all, level_of(sizes[b]));
  }
  const auto bits = all.size();
  all.resize(bits + bits_size(buckets), '\0');
  for (std::uint32_t b = 0; b < buckets; ++b)
    if (sizes[b] == 0) set_bit(all, bits, b);
  return all;
}

error malformed() { return make_error(ec::malformed, "the sizes of a map output's buckets follow no form"); }

} // namespace

std::string encode_bucket_sizes(std::span<const std::uint64_t> sizes) {
  if (sizes.empty()) return {};
  if (sizes.size() > most_levels) return encode_averaged(sizes);
  std::string all(1, '\0');
  all.reserve(1 + sizes.size());
  for (const auto size : sizes) all.push_back(static_cast<char>(level_of(size)));
  return all;
}

result<bucket_sizes> bucket_sizes::parse(std::string_view encoded, std::uint32_t buckets) {
  if (encoded.empty()) return bucket_sizes{encoded};
  if (encoded[0] == 0) {
    if (buckets > most_levels || encoded.size() != 1 + std::size_t{buckets}) return malformed();
    return bucket_sizes{encoded};
  }
  if (encoded[0] != 1 || buckets <= most_levels || encoded.size() < averaged_header) return malformed();
  const auto count = read<std::uint32_t>(encoded, 9);
  if (count > buckets / 8 || encoded.size() != averaged_header + count * named_size + bits_size(buckets))
    return malformed();
  std::uint64_t least = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto bucket = read<std::uint32_t>(encoded, averaged_header + i * named_size);
    if (bucket < least || bucket >= buckets) return malformed();
    least = std::uint64_t{bucket} + 1;
  }
  return bucket_sizes{encoded};
}

std::string_view bucket_sizes::named() const noexcept {
  return encoded_.substr(averaged_header, read<std::uint32_t>(encoded_, 9) * named_size);
}

bool bucket_sizes::is_empty(std::uint32_t bucket) const noexcept {
  const auto bits = encoded_.substr(averaged_header + named().size());
  return (static_cast<unsigned char>(bits[bucket / 8]) >> (bucket % 8) & 1) != 0;
}

bool bucket_sizes::may_hold(std::uint32_t bucket) const noexcept {
  if (encoded_.empty()) return true;
  return encoded_[0] == 0 ? encoded_[1 + bucket] != 0 : !is_empty(bucket);
}

std::uint64_t bucket_sizes::of(std::uint32_t bucket) const noexcept {
  if (!may_hold(bucket) || encoded_.empty()) return 0;
  if (encoded_[0] == 0) return steps[static_cast<unsigned char>(encoded_[1 + bucket])];
  const auto all = named();
  std::size_t first = 0;
  for (std::size_t last = all.size() / named_size; first < last;) {
    const auto middle = first + (last - first) / 2;
    const auto entry = all.substr(middle * named_size);
    const auto at = read<std::uint32_t>(entry);
    if (at == bucket) return steps[static_cast<unsigned char>(entry[4])];
    if (at < bucket)
      first = middle + 1;
    else
      last = middle;
  }
  return read<std::uint64_t>(encoded_, 1);
}

std::string empty_buckets(std::string_view encoded, std::uint32_t buckets) {
  const auto sizes = bucket_sizes::parse(encoded, buckets);
  if (!sizes || encoded.empty()) return {};
  std::string bits;
  for (std::uint32_t b = 0; b < buckets; ++b) {
    if (sizes->may_hold(b)) continue;
    if (bits.empty()) bits.resize(bits_size(buckets), '\0');
    set_bit(bits, 0, b);
  }
  return bits;
}

bool is_empty_bucket(std::string_view bits, std::uint32_t bucket) noexcept {
  return bucket / 8 < bits.size() && (static_cast<unsigned char>(bits[bucket / 8]) >> (bucket % 8) & 1) != 0;
}

} // namespace troupe
