#include <troupe/runtime/scheduling/bucket_sizes.hpp>

#include <algorithm>
#include <array>
#include <vector>

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

template <class Number>
void put(std::string& to, Number number) {
  for (std::size_t i = 0; i < sizeof number; ++i)
    to.push_back(static_cast<char>(static_cast<std::uint64_t>(number) >> (8 * i)));
}

template <class Number>
Number get(std::string_view from) noexcept {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i)
    number |= std::uint64_t{static_cast<unsigned char>(from[i])} << (8 * i);
  return static_cast<Number>(number);
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
  put(all, filled == 0 ? std::uint64_t{0} : total / filled);
  put(all, static_cast<std::uint32_t>(named.size()));
  for (const auto b : named) {
    put(all, b);
    put(all, level_of(sizes[b]));
  }
  const auto bits = all.size();
  all.resize(bits + (buckets + 7) / 8, '\0');
  for (std::uint32_t b = 0; b < buckets; ++b)
    if (sizes[b] == 0) all[bits + b / 8] = static_cast<char>(all[bits + b / 8] | 1 << (b % 8));
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
  const auto count = get<std::uint32_t>(encoded.substr(9));
  if (count > buckets / 8 || encoded.size() != averaged_header + count * named_size + (buckets + 7) / 8)
    return malformed();
  std::uint64_t least = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto bucket = get<std::uint32_t>(encoded.substr(averaged_header + i * named_size));
    if (bucket < least || bucket >= buckets) return malformed();
    least = std::uint64_t{bucket} + 1;
  }
  return bucket_sizes{encoded};
}

std::string_view bucket_sizes::named() const noexcept {
  return encoded_.substr(averaged_header, get<std::uint32_t>(encoded_.substr(9)) * named_size);
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
    const auto at = get<std::uint32_t>(entry);
    if (at == bucket) return steps[static_cast<unsigned char>(entry[4])];
    if (at < bucket)
      first = middle + 1;
    else
      last = middle;
  }
  return get<std::uint64_t>(encoded_.substr(1));
}

} // namespace troupe
