#include <troupe/runtime/resources/quote.hpp>

namespace troupe::detail {

std::string quote(std::string_view text, std::size_t most) {
  constexpr char hex[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text.substr(0, most)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      out += c;
    } else {
      out += "\\x";
      out += hex[byte >> 4];
      out += hex[byte & 0xf];
    }
  }
  out += text.size() > most ? "…\"" : "\"";
  return out;
}

} // namespace troupe::detail
