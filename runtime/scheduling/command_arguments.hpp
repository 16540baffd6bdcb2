#pragma once

/// What distinguishes one task of a command stage from the others: its input and output files. It travels as the
/// task's argument: u32 number of inputs, then u32 length and bytes of each; the same for outputs; little-endian.
/// Pure; any thread.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/runtime/result.hpp>

namespace troupe {

struct command_arguments {
  std::vector<std::string> inputs;  ///< absolute paths
  std::vector<std::string> outputs; ///< names below the attempt's directory and below the output directory

  bool operator==(const command_arguments&) const = default;
};

/// True for a relative path that stays below the directory it is used in: no empty part, `.` or `..`, no zero byte.
/// `stdout` and `stderr` are false too: the command's own output is kept under these names. So are `.troupe`, what is
/// below it, and a name that begins with `.troupe-`: outputs wait there until their attempt is accepted.
inline bool is_output_name(std::string_view name) noexcept {
  if (name == "stdout" || name == "stderr" || name.find('\0') != std::string_view::npos) return false;
  if (name == ".troupe" || name.starts_with(".troupe/") || name.starts_with(".troupe-")) return false;
  while (true) {
    const auto slash = name.find('/');
    const auto part = name.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return false;
    if (slash == std::string_view::npos) return true;
    name.remove_prefix(slash + 1);
  }
}

/// @pre both lists and each text are shorter than 2^32
inline std::string encode_command_arguments(const command_arguments& arguments) {
  std::string out;
  const auto put = [&out](std::size_t number) {
    for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(number >> shift);
  };
  for (const auto* list : {&arguments.inputs, &arguments.outputs}) {
    put(list->size());
    for (const auto& text : *list) {
      put(text.size());
      out += text;
    }
  }
  return out;
}

namespace detail {

/// Takes a little-endian u32 off the front. @returns false, with nothing taken, where there are fewer than four bytes
inline bool take_u32(std::string_view& bytes, std::uint32_t& number) noexcept {
  if (bytes.size() < 4) return false;
  number = 0;
  for (std::size_t i = 4; i-- > 0;) number = number << 8 | static_cast<unsigned char>(bytes[i]);
  bytes.remove_prefix(4);
  return true;
}

/// Takes a list off the front and calls `each` with its texts, after `begin` with their number, which is one that the
/// bytes can hold. @returns false where the lengths do not fit the bytes
template <class Begin, class Each>
bool take_list(std::string_view& bytes, Begin begin, Each each) {
  std::uint32_t count = 0;
  if (!take_u32(bytes, count) || count > bytes.size() / 4) return false; // each text has a length of four bytes
  begin(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    std::uint32_t length = 0;
    if (!take_u32(bytes, length) || length > bytes.size()) return false;
    each(bytes.substr(0, length));
    bytes.remove_prefix(length);
  }
  return true;
}

inline error malformed_argument() {
  return make_error(ec::malformed, "the argument of a command's task does not follow its format");
}

/// Takes a list off the front and looks at nothing in it. @returns as `take_list`
inline bool pass_list(std::string_view& bytes) noexcept {
  return take_list(
      bytes, [](std::uint32_t) {}, [](std::string_view) {});
}

/// Takes the last list, behind which nothing may follow, as names of outputs.
inline result<void> take_outputs(std::string_view& bytes, std::vector<std::string>& outputs) {
  bool is_named = true;
  const auto keep = [&](std::string_view name) {
    is_named = is_named && is_output_name(name);
    if (is_named) outputs.emplace_back(name);
  };
  if (!take_list(
          bytes, [&](std::uint32_t count) { outputs.reserve(count); }, keep) ||
      !bytes.empty())
    return malformed_argument();
  if (!is_named) return make_error(ec::malformed, "the output of a command's task leaves its directory");
  return {};
}

} // namespace detail

/// True where an encoded argument names outputs. Allocates nothing and looks at no name; false where the lengths in it
/// do not fit its bytes.
inline bool has_outputs(std::string_view argument) noexcept {
  std::uint32_t count = 0;
  return detail::pass_list(argument) &&
         detail::take_list(
             argument, [&](std::uint32_t n) { count = n; }, [](std::string_view) {}) &&
         count > 0 && argument.empty();
}

/// Reads what `encode_command_arguments` wrote. ec::malformed: the bytes do not follow the format, an input is not an
/// absolute path, or an output is not an `is_output_name`.
inline result<command_arguments> decode_command_arguments(std::string_view bytes) {
  command_arguments out;
  bool is_absolute = true;
  const auto keep = [&](std::string_view path) {
    is_absolute = is_absolute && path.starts_with('/') && path.find('\0') == std::string_view::npos;
    if (is_absolute) out.inputs.emplace_back(path);
  };
  if (!detail::take_list(
          bytes, [&](std::uint32_t count) { out.inputs.reserve(count); }, keep))
    return detail::malformed_argument();
  if (auto taken = detail::take_outputs(bytes, out.outputs); !taken) return taken.error();
  if (!is_absolute) return make_error(ec::malformed, "the input of a command's task is not an absolute path");
  return out;
}

/// The outputs alone: inputs are passed over, and nothing is allocated for them. Errors as above, but for inputs.
inline result<std::vector<std::string>> decode_outputs(std::string_view bytes) {
  std::vector<std::string> outputs;
  if (!detail::pass_list(bytes)) return detail::malformed_argument();
  if (auto taken = detail::take_outputs(bytes, outputs); !taken) return taken.error();
  return outputs;
}

} // namespace troupe
