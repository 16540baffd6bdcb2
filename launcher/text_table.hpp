#pragma once

/// Amounts and tables as people read them on a terminal. Pure; any thread.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Columns that are as wide as their widest cell, two blanks between them, no blank at the end of a line.
class text_table {
public:
  enum class side { left, right };
  struct column {
    std::string title;
    side aligned = side::left;
  };
  explicit text_table(std::vector<column> columns);
  /// @pre as many cells as columns
  void add(std::vector<std::string> cells);
  /// Every line begins with `indent` and ends with a line feed.
  std::string text(std::string_view indent = "") const;

private:
  std::vector<column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// `850 us`, `12 ms`, `3.2 s`, `4 min 5 s`, `2 h 3 min`.
std::string time_for_people(std::uint64_t nanoseconds);
/// `0 B`, `512 B`, `1.5 KiB`, `20 MiB`.
std::string bytes_for_people(std::uint64_t bytes);
/// How many characters a UTF-8 text takes on a terminal, as far as counting code points tells.
std::size_t display_width(std::string_view text);
/// The text without bytes that would move a terminal's cursor or change its state: they become `?`. Names of jobs and
/// words of tasks are other people's.
std::string printable(std::string_view text, bool keep_lines = false);

} // namespace troupe
