#pragma once

/// Small text files of the kernel's: those of /proc and of control groups.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

/// The content; "" where it cannot be read. What is beyond `most` bytes is left out.
std::string read_kernel_file(const std::string& path, std::size_t most = std::size_t{4} << 20);

/// The number at the begin of the text; nothing where there is none.
std::optional<std::uint64_t> number_in(std::string_view text);

/// The number that follows `label` and blanks, where a line begins with these: `VmHWM:\t 12 kB`, `oom_kill 3`.
std::optional<std::uint64_t> number_after(std::string_view text, std::string_view label);

} // namespace troupe
