#include <troupe/runtime/transfer/handshake.hpp>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <stdexcept>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <troupe/runtime/storage/descriptor.hpp>
#include <troupe/runtime/storage/new_file.hpp>

namespace troupe {

namespace {

constexpr std::string_view digits = "0123456789abcdef";
constexpr std::size_t secret_size = 32;
constexpr std::size_t file_size = 2 * secret_size + 1; // digits and a newline

/// Text that is wiped when it goes.
struct wiped_text {
  std::array<char, file_size> bytes{};
  ~wiped_text() { OPENSSL_cleanse(bytes.data(), bytes.size()); }
};

void random_bytes(unsigned char* to, std::size_t count) {
  // Without entropy nothing of what follows is safe; there is nobody who could do better with an error value.
  if (RAND_bytes(to, static_cast<int>(count)) != 1) throw std::runtime_error("the system gave no random bytes");
}

error file_error(const std::string& path, const std::string& what) {
  return make_error(ec::io, "secret file " + path + ": " + what);
}

result<void> make_private_directories(const std::filesystem::path& path) {
  struct stat status {};
  if (path.empty() || ::stat(path.c_str(), &status) == 0) return {};
  if (auto above = make_private_directories(path.parent_path()); !above) return above;
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return make_error(ec::io, "cannot make directory " + path.string() + ": " + std::strerror(errno) +
                                  " (troupe.security.secret-file)");
  return {};
}

} // namespace

session_secret session_secret::generate() {
  session_secret secret;
  random_bytes(secret.bytes_.data(), secret.bytes_.size());
  return secret;
}

session_secret::~session_secret() { OPENSSL_cleanse(bytes_.data(), bytes_.size()); }

result<session_secret> session_secret::load(const std::string& path) {
  const auto unusable = [&](const std::string& what) {
    return make_error(ec::invalid_configuration, "troupe.security.secret-file = " + path + ": " + what);
  };
  // O_NONBLOCK: what lies there may be a pipe.
  const descriptor file{::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)};
  if (!file && errno == ENOENT)
    return unusable("there is no such file; the driver writes it when it starts, and prints its path");
  if (!file) return unusable(std::strerror(errno));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return unusable(std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return unusable("it is no regular file");
  if (status.st_uid != ::geteuid()) return unusable("it belongs to another user");
  if ((status.st_mode & 077) != 0) return unusable("others may read it; set its mode to 0600");
  wiped_text text;
  std::size_t filled = 0;
  while (filled < text.bytes.size()) {
    const auto n = ::read(file.get(), text.bytes.data() + filled, text.bytes.size() - filled);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return unusable(std::strerror(errno));
    if (n == 0) break;
    filled += static_cast<std::size_t>(n);
  }
  session_secret secret;
  const bool ends = filled == file_size ? text.bytes.back() == '\n' : filled == file_size - 1; // or without a line end
  bool good = ends && status.st_size == static_cast<off_t>(filled);
  for (std::size_t i = 0; good && i < secret_size; ++i) {
    const auto high = digits.find(text.bytes[2 * i]);
    const auto low = digits.find(text.bytes[2 * i + 1]);
    good = high != digits.npos && low != digits.npos;
    secret.bytes_[i] = static_cast<unsigned char>(high << 4 | low);
  }
  if (!good) return unusable("it does not hold 64 hexadecimal digits");
  return secret;
}

result<session_secret> session_secret::load_or_make(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0) return load(path);
  if (auto made = make_private_directories(std::filesystem::path{path}.parent_path()); !made) return made.error();
  auto secret = generate();
  auto saved = secret.save(path);
  if (saved) return secret;
  if (::lstat(path.c_str(), &status) == 0) return load(path); // somebody else has just made it
  return saved.error();
}

result<void> session_secret::save(const std::string& path) const {
  new_file file{path};
  if (!file) return file_error(path, std::strerror(file.error()));
  wiped_text text;
  for (std::size_t i = 0; i < secret_size; ++i) {
    text.bytes[2 * i] = digits[bytes_[i] >> 4];
    text.bytes[2 * i + 1] = digits[bytes_[i] & 15];
  }
  text.bytes.back() = '\n';
  // So few bytes are written at once or, on a full disk, not at all.
  if (::write(file.get(), text.bytes.data(), text.bytes.size()) != static_cast<ssize_t>(text.bytes.size()))
    return file_error(path, std::strerror(errno));
  if (const int why = file.keep()) return file_error(path, std::strerror(why));
  return {};
}

std::string session_secret::sign(std::initializer_list<std::string_view> parts) const {
  std::string signed_text;
  for (const auto part : parts) {
    for (int shift = 0; shift < 64; shift += 8)
      signed_text.push_back(static_cast<char>(static_cast<std::uint64_t>(part.size()) >> shift));
    signed_text.append(part);
  }
  std::string proof(proof_size, '\0');
  unsigned int length = 0;
  if (!HMAC(EVP_sha256(), bytes_.data(), static_cast<int>(bytes_.size()),
            reinterpret_cast<const unsigned char*>(signed_text.data()), signed_text.size(),
            reinterpret_cast<unsigned char*>(proof.data()), &length) ||
      length != proof_size)
    throw std::runtime_error("HMAC-SHA256 is not available");
  return proof;
}

bool session_secret::verify(std::string_view proof, std::initializer_list<std::string_view> parts) const {
  const auto expected = sign(parts);
  return proof.size() == expected.size() && CRYPTO_memcmp(proof.data(), expected.data(), expected.size()) == 0;
}

std::string make_nonce() {
  std::string nonce(nonce_size, '\0');
  random_bytes(reinterpret_cast<unsigned char*>(nonce.data()), nonce.size());
  return nonce;
}

std::uint64_t make_incarnation() {
  std::uint64_t number = 0;
  while (number == 0) random_bytes(reinterpret_cast<unsigned char*>(&number), sizeof number);
  return number;
}

std::string make_random_name() {
  auto number = make_incarnation();
  std::string name(16, '0');
  for (auto& c : name) {
    c = digits[number & 15];
    number >>= 4;
  }
  return name;
}

} // namespace troupe
