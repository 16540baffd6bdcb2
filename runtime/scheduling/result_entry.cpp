#include <troupe/runtime/scheduling/result_entry.hpp>

#include <troupe/runtime/little_endian.hpp>

namespace troupe {

void append_inline_entry(std::string& to, std::string_view value) {
  to.push_back(static_cast<char>(result_kind::inline_value));
  to.append(value);
}

void append_block_entry(std::string& to, result_kind kind, std::uint64_t bytes, std::string_view buckets) {
  to.push_back(static_cast<char>(kind));
  little_endian::append(to, bytes);
  to.append(buckets);
}

result<result_entry> decode_result_entry(std::string_view entry) {
  if (entry.empty()) return make_error(ec::malformed, "result entry: it is empty");
  const auto kind = static_cast<std::uint8_t>(entry.front());
  entry.remove_prefix(1);
  switch (static_cast<result_kind>(kind)) {
  case result_kind::inline_value: return result_entry{result_kind::inline_value, entry, entry.size(), {}};
  case result_kind::block:
  case result_kind::files:
  case result_kind::map_output:
  case result_kind::kept_output: {
    const result_entry made{static_cast<result_kind>(kind), {}, 0, {}};
    if (entry.size() < 8 || (entry.size() > 8 && !made.is_map_output()))
      return make_error(ec::malformed,
                        "result entry: a size of " + std::to_string(entry.size()) + " bytes where 8 are due");
    return result_entry{static_cast<result_kind>(kind), {}, little_endian::read<std::uint64_t>(entry), entry.substr(8)};
  }
  }
  return make_error(ec::malformed, "result entry: unknown kind " + std::to_string(kind));
}

} // namespace troupe
