#include <troupe/launcher/text_table.hpp>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace troupe {
namespace {

/// One digit after the point below ten, none above.
std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 9.95 ? "%.1f" : "%.0f", value);
  std::string out = text;
  if (out.ends_with(".0")) out.resize(out.size() - 2);
  return out;
}

} // namespace

text_table::text_table(std::vector<column> columns) : columns_(std::move(columns)) {}

void text_table::add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

std::string text_table::text(std::string_view indent) const {
  std::vector<std::size_t> widths;
  for (const auto& c : columns_) widths.push_back(display_width(c.title));
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i]));
  std::string out;
  const auto line = [&](const auto& cell_of) {
    out += indent;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string& cell = cell_of(i);
      const auto padding = std::string(widths[i] - display_width(cell), ' ');
      if (i > 0) out += "  ";
      out += columns_[i].aligned == side::right ? padding + cell : cell + padding;
    }
    out.erase(out.find_last_not_of(' ') + 1);
    out += '\n';
  };
  line([&](std::size_t i) -> const std::string& { return columns_[i].title; });
  for (const auto& row : rows_) line([&](std::size_t i) -> const std::string& { return row[i]; });
  return out;
}

std::string time_for_people(std::uint64_t nanoseconds) {
  const auto value = static_cast<double>(nanoseconds);
  if (nanoseconds < 1'000'000) return short_number(value / 1e3) + " us";
  if (nanoseconds < 999'500'000) return short_number(value / 1e6) + " ms";
  const auto seconds = (nanoseconds + 500'000'000) / 1'000'000'000;
  if (seconds < 60) return short_number(value / 1e9) + " s";
  if (seconds < 3600) return std::to_string(seconds / 60) + " min " + std::to_string(seconds % 60) + " s";
  return std::to_string(seconds / 3600) + " h " + std::to_string(seconds % 3600 / 60) + " min";
}

std::string bytes_for_people(std::uint64_t bytes) {
  static constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1023.5 && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  return short_number(value) + " " + units[unit];
}

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string printable(std::string_view text, bool keep_lines) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const bool line = keep_lines && (c == '\n' || c == '\t');
    // U+0080 to U+009F are control characters too, spelled C2 80 to C2 9F.
    const bool wide_control = c == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (wide_control) ++i;
    out += (c < 0x20 && !line) || c == 0x7F || wide_control ? '?' : text[i];
  }
  return out;
}

} // namespace troupe
