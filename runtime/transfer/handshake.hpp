#pragma once

/// The session's shared secret and the proof that a peer knows it. The secret itself never travels and never appears
/// in a log, argument, environment or event. Any thread.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <troupe/runtime/result.hpp>

namespace troupe {

inline constexpr std::size_t nonce_size = 32;
inline constexpr std::size_t proof_size = 32;

/// 32 random bytes that know how to sign. Wiped when destroyed; deliberately not printable.
class session_secret {
public:
  /// Fresh random bytes from the operating system.
  static session_secret generate();
  /// Reads a file that `save` wrote. Refused unless it is a regular file of this user with mode 0600 or stricter.
  static result<session_secret> load(const std::string& path);
  /// The same; where there is no such file, a new secret is saved there, and folders that are missing are made with
  /// mode 0700.
  static result<session_secret> load_or_make(const std::string& path);
  /// Writes a new file of mode 0600; refused when it exists.
  result<void> save(const std::string& path) const;
  ~session_secret();
  session_secret(const session_secret&) = default;
  session_secret& operator=(const session_secret&) = default;

  /// HMAC-SHA256 over the parts, each preceded by its length, so that no two lists of parts sign alike.
  std::string sign(std::initializer_list<std::string_view> parts) const;
  /// Compares in constant time.
  bool verify(std::string_view proof, std::initializer_list<std::string_view> parts) const;

private:
  session_secret() = default;
  std::array<unsigned char, 32> bytes_{};
};

/// `nonce_size` random bytes.
std::string make_nonce();
/// 64 random bits that are not 0.
std::uint64_t make_incarnation();
/// Random name of 16 hexadecimal digits, for clusters and sessions.
std::string make_random_name();

} // namespace troupe
