#pragma once

/// How records, captures and results become bytes and come back. Little-endian, lengths as variable-length numbers, no
/// type tags: both sides run the same program. Reading checks every length and throws `decode_error` on bytes that no
/// writer made. Pure values; any thread.
///
/// Ready to travel: arithmetic types, enums, structs of these (plain_bytes.hpp), Protobuf messages, and
/// (serialize_containers.hpp) std::string, vector, deque, list, forward_list, array, pair, tuple, optional, variant,
/// map, set, multimap, multiset and their unordered counterparts of such. C++ cannot list the members of a struct, so
/// every other type says how it travels, in one place, next to its definition:
///
///     struct point { double x; double y; std::string label; };
///     template <class Archive>
///     void troupe_serialize(Archive& archive, point& p) { archive(p.x, p.y, p.label); }
///
/// The same function writes and reads (writing never changes the value), so the two do not differ by mistake. It stands
/// in the namespace of the type and takes the value as `T&`; the type must be default constructible. One that forgets a
/// member of an aggregate without bases does not compile (it is compiled once more for that, with another archive); of
/// other types a compiler cannot count the members, and a forgotten one is lost in silence. Where a member is left out
/// on purpose, or the members are named in several calls of the archive, say `template <> inline constexpr bool
/// troupe::names_some_members<point> = true;`. One that is to do more where it reads, such as to check, asks whether
/// `Archive` is a `troupe::decoder`. A class of plain bytes with constructors or private members may say `template <>
/// inline constexpr bool troupe::travels_as_bytes<point> = true;` in place of that. A type that needs another way (a
/// checked constructor, say) specialises `troupe::serializer<T>` with the two functions `write` and `read`. Pointers,
/// references, `std::string_view`, `std::span` and C strings are refused at compile time: they would arrive without
/// what they point to.

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <troupe/runtime/api/member_count.hpp>
#include <troupe/runtime/api/plain_bytes.hpp>
#include <troupe/runtime/api/type_parts.hpp>

namespace troupe {

/// Bytes that do not follow the format of the type that they should hold.
class decode_error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

template <class T>
struct serializer;

/// Set it to true for a struct of your own whose `troupe_serialize` leaves members out on purpose, or names them in
/// several calls of the archive.
template <class T>
inline constexpr bool names_some_members = false;

namespace detail {

template <class T>
struct is_view : std::bool_constant<std::is_pointer_v<T> || std::is_member_pointer_v<T> || std::is_reference_v<T> ||
                                    std::is_null_pointer_v<T>> {};
template <class C, class T>
struct is_view<std::basic_string_view<C, T>> : std::true_type {};
template <class T, std::size_t N>
struct is_view<std::span<T, N>> : std::true_type {};
template <class T>
struct is_view<std::reference_wrapper<T>> : std::true_type {};

/// A view, or a standard type with one in it.
template <class T>
struct holds_view : std::bool_constant<is_view<T>::value || parts_of<T>::template any<holds_view>> {};

template <class T>
inline constexpr bool is_number = std::is_arithmetic_v<T> && !std::is_same_v<T, long double>;

} // namespace detail

/// Appends values to a string that outlives it. Also the archive that `troupe_serialize` sees when a value is written.
class encoder {
public:
  encoder(const encoder&) = delete; // a hook that takes a copy would read no further
  encoder& operator=(const encoder&) = delete;
  /// @param held gets what has to stay where these bytes can be read (see hold); null: that is not of interest
  explicit encoder(std::string& out, std::vector<std::shared_ptr<const void>>* held = nullptr) noexcept
    : out_(out), held_(held) {}

  /// Appends the values one after another.
  template <class... Ts>
  encoder& operator()(const Ts&... values) {
    (serializer<Ts>::write(*this, values), ...);
    return *this;
  }

  /// A number in as many bytes as its type has, little-endian.
  template <class N>
  requires detail::is_number<N>
  void number(N value) {
    char bytes[sizeof(N)];
    std::memcpy(bytes, &value, sizeof(N));
    if constexpr (std::endian::native == std::endian::big) std::reverse(bytes, bytes + sizeof(N));
    out_.append(bytes, sizeof(N));
  }

  /// A length: seven bits a byte, lowest first.
  void size(std::uint64_t value) {
    if (value < 0x80) { // nearly always
      out_.push_back(static_cast<char>(value));
      return;
    }
    for (; value >= 0x80; value >>= 7) out_.push_back(static_cast<char>(value | 0x80));
    out_.push_back(static_cast<char>(value));
  }

  void bytes(std::string_view data) { out_.append(data); }
  std::size_t written() const noexcept { return out_.size(); }
  /// Whoever keeps the bytes keeps this with them.
  void hold(std::shared_ptr<const void> what) {
    if (held_) held_->push_back(std::move(what));
  }

private:
  std::string& out_;
  std::vector<std::shared_ptr<const void>>* held_;
};

/// Takes values from bytes that outlive it. Also the archive that `troupe_serialize` sees when a value is read. Every
/// method throws `decode_error` on malformed input.
class decoder {
public:
  decoder(const decoder&) = delete; // a hook that takes a copy would read no further
  decoder& operator=(const decoder&) = delete;
  explicit decoder(std::string_view in) noexcept : in_(in) {}

  /// Replaces the values one after another.
  template <class... Ts>
  decoder& operator()(Ts&... values) {
    constexpr bool assignable = (std::is_move_assignable_v<Ts> && ...);
    static_assert(assignable, "troupe: troupe_serialize gives the archive what cannot be changed when a value is read. "
                              "Cure: take the value as T&, and let its members be neither constant nor references.");
    if constexpr (assignable) ((values = serializer<Ts>::read(*this)), ...);
    return *this;
  }

  template <class N>
  requires detail::is_number<N> N number() {
    char copy[sizeof(N)];
    std::memcpy(copy, bytes(sizeof(N)).data(), sizeof(N));
    if constexpr (std::endian::native == std::endian::big) std::reverse(copy, copy + sizeof(N));
    N value;
    std::memcpy(&value, copy, sizeof(N));
    return value;
  }

  std::uint64_t size() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes(1).front());
      if (shift == 63 && byte > 1) break;
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw decode_error("a length does not fit into 64 bits");
  }

  /// A number of elements that follow. Every element takes at least one byte, so a count above what is left is a lie
  /// that is found before anything is allocated for it.
  std::size_t count() {
    const auto n = size();
    if (n > in_.size()) cut_short(n);
    return static_cast<std::size_t>(n);
  }

  std::string_view bytes(std::size_t n) {
    if (n > in_.size()) cut_short(n);
    const auto data = in_.substr(0, n);
    in_.remove_prefix(n);
    return data;
  }

  std::size_t left() const noexcept { return in_.size(); }
  /// The bytes that are left.
  std::string_view rest() const noexcept { return in_; }
  bool at_end() const noexcept { return in_.empty(); }
  /// Throws where bytes are left over.
  void expect_end() const {
    if (!at_end()) throw decode_error(std::to_string(in_.size()) + " bytes are left over after the value");
  }

  /// One level of a type of the user's own. A type may contain itself, so the bytes decide how deep reading goes: no
  /// deeper than `deepest`.
  class level {
  public:
    static constexpr int deepest = 1000;
    explicit level(decoder& in) : in_(in) {
      if (++in_.depth_ > deepest) throw decode_error("values are nested more than 1000 deep");
    }
    ~level() { --in_.depth_; }
    level(const level&) = delete;
    level& operator=(const level&) = delete;

  private:
    decoder& in_;
  };

private:
  [[noreturn, gnu::noinline]] void cut_short(std::uint64_t wanted) const {
    throw decode_error("cut short: " + std::to_string(wanted) + " more expected, " + std::to_string(in_.size()) +
                       " bytes left");
  }

  std::string_view in_;
  int depth_ = 0;
};

/// Messages that protoc has made, known by what they can do. Where they are keys, they should have no map fields, whose
/// bytes may come in any order.
template <class T>
concept protobuf_message = requires(const T& message, T& into, std::string* out, const void* data, int size) {
  { message.AppendToString(out) } -> std::same_as<bool>;
  { into.ParseFromArray(data, size) } -> std::same_as<bool>;
  { message.GetTypeName() } -> std::convertible_to<std::string>;
  { message.ByteSizeLong() } -> std::same_as<std::size_t>;
};

/// True where a `troupe_serialize` is found for `T` by argument-dependent lookup.
template <class T>
concept has_serialize_hook = requires(encoder& writer, decoder& reader, T& value) {
  troupe_serialize(writer, value);
  troupe_serialize(reader, value);
};

namespace detail {

/// Becomes a copy of a `T`, and is no variable of that type.
template <class T>
struct copy_of {
  operator T() const;
};
template <class T>
struct unrelated_to {};
/// True where it is one that would read into a copy. One that takes just anything takes the variable as well.
template <class T>
concept has_copying_hook = has_serialize_hook<T> && requires(decoder& reader, copy_of<T>& copy) {
  troupe_serialize(reader, copy);
} && !requires(decoder & reader, unrelated_to<T>& other) {
  troupe_serialize(reader, other);
};

/// Is refused once, however many calls of the archive a hook has.
template <class T, bool NamesAll>
struct named_members {
  static_assert(NamesAll,
                "troupe: this troupe_serialize names fewer members than the struct has: the others would be lost in "
                "silence. Cure: name all of them in one call, archive(value.a, value.b, …), or, where that is meant, "
                "say `template <> inline constexpr bool troupe::names_some_members<T> = true;`");
  static constexpr bool said = NamesAll;
};

/// Stands for the archive while a program is compiled, to see how many members of `T` a `troupe_serialize` names. It is
/// an `encoder` by inheritance alone.
template <class T>
class naming_archive : public encoder {
public:
  using encoder::encoder;
  template <class... Ts>
  naming_archive& operator()(const Ts&...) {
    static_cast<void>(sizeof(named_members<T, (sizeof...(Ts) >= member_count<T>)>));
    return *this;
  }
};

template <class T>
concept takes_naming_archive = requires(naming_archive<T>& archive, T& value) {
  troupe_serialize(archive, value);
};
/// Has the hook of `T` compiled with it; nothing calls this.
template <class T>
void compile_naming_hook(naming_archive<T>& archive, T& value) {
  troupe_serialize(archive, value);
}
/// Fails to compile where the hook of `T` forgets a member, as far as the compiler can tell.
template <class T>
constexpr void check_names_members() {
  if constexpr (!names_some_members<T> && member_count<T> != 0 && takes_naming_archive<T>)
    if (false) static_cast<void>(static_cast<void (*)(naming_archive<T>&, T&)>(&compile_naming_hook<T>));
}

template <class T>
inline constexpr bool is_empty_record = std::is_empty_v<T>&& std::is_trivially_default_constructible_v<T>;

/// Whether it is said how a `T` travels.
template <class T>
inline constexpr bool has_wire_form = is_number<T> || std::is_enum_v<T> || is_empty_record<T> ||
                                      has_serialize_hook<T> || protobuf_message<T> || is_plain_bytes<T>;

/// Whether the primary serializer knows what to do.
template <class T>
inline constexpr bool travels_by_itself = has_wire_form<T>&& std::is_default_constructible_v<T> && !has_copying_hook<T>;

/// Fails to compile, with the cure, where `T` cannot travel as it stands.
template <class T>
constexpr void check_travels() {
  static_assert(!is_view<T>::value,
                "troupe: a pointer, reference, C string or view (std::string_view, std::span) would arrive in another "
                "process without what it points to. Cure: send the value itself, e.g. std::string{text} in place of a "
                "C string or std::string_view, std::vector in place of std::span.");
  static_assert(
      is_view<T>::value || has_wire_form<T>,
      "troupe: this type does not say how it travels between processes. Cure: write next to it, in its namespace, "
      "`template <class Archive> void troupe_serialize(Archive& archive, T& value) { archive(value.a, "
      "value.b); }` naming every member, or specialise troupe::serializer<T>; a trivially copyable class without "
      "pointers may say `template <> inline constexpr bool troupe::travels_as_bytes<T> = true;`.");
  static_assert(
      is_view<T>::value || !has_wire_form<T> || std::is_default_constructible_v<T>,
      "troupe: this type has no default constructor, so that no value can be made to read into. Cure: give it "
      "one, T() = default; or specialise troupe::serializer<T>, whose `read` makes the value as it likes.");
  static_assert(!has_wire_form<T> || !std::is_default_constructible_v<T> || !has_copying_hook<T>,
                "troupe: this type's troupe_serialize can be called with a copy of the value, in which what is read "
                "would be lost. Cure: let it take (Archive& archive, T& value), and nothing else");
}

} // namespace detail

/// Writes and reads one `T`. Specialise it only for types whose members a `troupe_serialize` cannot reach. A value must
/// take at least one byte.
template <class T>
struct serializer {
  using primary = T; ///< it is not specialised

  static void write(encoder& out, const T& value) {
    detail::check_travels<T>();
    if constexpr (std::is_same_v<T, bool>)
      out.number(static_cast<std::uint8_t>(value ? 1 : 0));
    else if constexpr (detail::is_number<T>)
      out.number(value);
    else if constexpr (std::is_enum_v<T>)
      out.number(static_cast<std::underlying_type_t<T>>(value));
    else if constexpr (!detail::travels_by_itself<T>) {
      // said above
    } else if constexpr (has_serialize_hook<T>) {
      detail::check_names_members<T>();
      const auto before = out.written();
      troupe_serialize(out, const_cast<T&>(value)); // the one hook serves both ways; an encoder only reads
      // Readers believe no count that is larger than the bytes left; see decoder::count.
      if (out.written() == before)
        throw std::logic_error("a type's troupe_serialize writes nothing: name at least one member in it");
    } else if constexpr (detail::is_empty_record<T>)
      out.number(std::uint8_t{0});
    else if constexpr (protobuf_message<T>) {
      std::string bytes;
      if (!value.AppendToString(&bytes))
        throw std::logic_error("a message " + std::string{value.GetTypeName()} +
                               " cannot travel: it lacks a required field, or takes more than 2 GiB");
      out.size(bytes.size());
      out.bytes(bytes);
    } else if constexpr (detail::is_plain_bytes<T>) {
      T copy = value;
      detail::clear_padding(copy);
      char bytes[sizeof(T)];
      std::memcpy(bytes, &copy, sizeof(T));
      out.bytes({bytes, sizeof(T)});
    }
  }

  static T read(decoder& in) {
    detail::check_travels<T>();
    if constexpr (!detail::travels_by_itself<T>) {
      throw std::logic_error("this type cannot travel"); // said above
    } else if constexpr (std::is_same_v<T, bool>) {
      const auto byte = in.number<std::uint8_t>();
      if (byte > 1) throw decode_error("a bool is " + std::to_string(byte));
      return byte == 1;
    } else if constexpr (detail::is_number<T>) {
      return in.number<T>();
    } else if constexpr (std::is_enum_v<T>) {
      return static_cast<T>(in.number<std::underlying_type_t<T>>());
    } else if constexpr (has_serialize_hook<T>) {
      const decoder::level deeper{in};
      T value{};
      troupe_serialize(in, value);
      return value;
    } else if constexpr (detail::is_empty_record<T>) {
      if (in.number<std::uint8_t>() != 0) throw decode_error("an empty record has content");
      return T{};
    } else if constexpr (protobuf_message<T>) {
      const auto bytes = in.bytes(in.count());
      T message;
      if (bytes.size() > std::numeric_limits<int>::max() ||
          !message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
        throw decode_error("no message " + std::string{message.GetTypeName()});
      return message;
    } else if constexpr (detail::is_plain_bytes<T>) {
      T value{};
      std::memcpy(static_cast<void*>(&value), in.bytes(sizeof(T)).data(), sizeof(T));
      return value;
    }
  }
};

namespace detail {

/// Whether a serializer is not specialised; one that is may inherit from another type's.
template <class Serializer, class T>
concept is_primary = requires {
  requires std::is_same_v<typename Serializer::primary, T>;
};

/// Whether `T` can travel, as far as the type system shows it.
template <class T>
struct can_travel : std::bool_constant<!is_view<T>::value && [] {
  if constexpr (parts_of<T>::known)
    return parts_of<T>::template all<can_travel>;
  else if constexpr (is_primary<serializer<T>, T>)
    return travels_by_itself<T>;
  else
    return true;
}()> {};

template <class T>
struct stuck;
template <class... Ts>
struct stuck_among : std::type_identity<char> {};
template <class T, class... Rest>
struct stuck_among<T, Rest...>
  : std::conditional_t<can_travel<std::remove_cv_t<T>>::value, stuck_among<Rest...>, stuck<std::remove_cv_t<T>>> {};
template <class... Ts>
stuck_among<Ts...> stuck_of(const type_list<Ts...>&);
template <class T>
struct stuck : std::conditional_t<parts_of<T>::known, decltype(stuck_of(parts_of<T>{})), std::type_identity<T>> {};

/// The first of the types that `T` is made of which cannot travel, for check_travels to name; `char` where there is
/// none.
template <class T>
using stuck_part = typename stuck_among<T>::type;

} // namespace detail

} // namespace troupe

#include <troupe/runtime/api/serialize_containers.hpp>
