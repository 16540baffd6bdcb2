#pragma once

/// A value that travels with a function: among the bytes of its stage, or, where it is large, as a broadcast of its
/// own.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <troupe/runtime/api/broadcast.hpp>
#include <troupe/runtime/api/serialize.hpp>

namespace troupe::detail {

/// Makes a value available to all tasks. Gives what names it, and what withdraws it with its last copy. Throws
/// job_error.
using publish_function =
    std::function<std::pair<broadcast_reference, std::shared_ptr<const void>>(const broadcast_content& content)>;

/// A captured value of more bytes is a broadcast.
inline constexpr std::size_t most_carried = 1 << 20;

/// The value in the process that calls the function.
template <class C>
class captured {
public:
  captured(C value) : value_(std::make_shared<const C>(std::move(value))) {} // NOLINT: implicit on purpose
  /// Throws decode_error, and what broadcast_source::get does.
  explicit captured(decoder& in) : value_(read(in)) {}

  const C& operator*() const noexcept { return *value_; }

private:
  static std::shared_ptr<const C> read(decoder& in) {
    if (!serializer<bool>::read(in)) return std::make_shared<const C>(serializer<C>::read(in));
    auto value = find_broadcast<C>(read_reference(in));
    if (!value) throw decode_error("a large captured value can be read in tasks only");
    return value;
  }

  std::shared_ptr<const C> value_;
};

/// The one captured value of an operation.
template <class C>
captured<C> captures_of(std::string_view encoded) {
  decoder in{encoded};
  captured<C> value{in};
  in.expect_end();
  return value;
}

/// Appends what `captured` reads.
/// @param held gets what has to stay where these bytes can be read
/// @param publish none: the value is carried, however large it is
template <class C>
void write_captured(std::string& out, std::vector<std::shared_ptr<const void>>& held, const C& value,
                    const publish_function& publish) {
  const auto begin = out.size();
  encoder to{out, &held};
  to(false, value);
  if (!publish || out.size() - begin - 1 <= most_carried) return;
  auto [reference, published] =
      publish({std::make_shared<const C>(value), typeid(C), [&] { return out.substr(begin + 1); }});
  held.push_back(std::move(published));
  out.resize(begin);
  to(true);
  write_reference(to, reference);
}

} // namespace troupe::detail
