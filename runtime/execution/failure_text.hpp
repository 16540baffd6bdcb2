#pragma once

/// Texts of a failure, bounded and fit to be shown: what a task said last, whatever bytes it wrote.

#include <cstddef>
#include <string>
#include <string_view>

#include <troupe/runtime/time.hpp>

namespace troupe {

inline constexpr std::size_t max_failure_message = 4096;
inline constexpr std::size_t max_stderr_tail = 8192;
inline constexpr std::size_t max_stderr_lines = 20;
/// Of the first lines, which often name the cause.
inline constexpr std::size_t max_stderr_head = 2048;
inline constexpr std::size_t max_stderr_head_lines = 10;

/// At most `limit` bytes of `text` from its begin, as valid UTF-8 (bytes that are none become `?`). A cut is marked.
std::string bounded_text(std::string_view text, std::size_t limit);

/// What the exception says that is being handled: `what()` of a std::exception, a text or a number that was thrown as
/// it is, else the name of its type. @pre within a catch block
std::string text_of_exception();

/// That an attempt of `what` was ended for the sake of its time-out.
std::string describe_time_limit(std::string_view what, duration timeout);

/// The last `max_stderr_lines` lines of a file, at most `max_stderr_tail` bytes, as valid UTF-8. "" where there is no
/// such file or it is empty: a failure is reported with or without it.
std::string tail_of_file(const std::string& path);

/// The same with the first `max_stderr_head_lines` lines before it, and between them how much is left out.
std::string excerpt_of_file(const std::string& path);

} // namespace troupe
