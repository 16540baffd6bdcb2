#include <troupe/runtime/execution/memory_watch.hpp>

#include <algorithm>

#include <troupe/runtime/execution/files_in_memory.hpp>
#include <troupe/runtime/execution/process_memory.hpp>
#include <troupe/runtime/execution/process_tree.hpp>

namespace troupe {

std::optional<std::uint64_t> memory_watch::exceeded() {
  const auto tree = tree_of(main_);
  const auto in_files = files_.empty() ? 0 : bytes_taken_below(files_);
  auto rough = in_files;
  for (const auto pid : tree) rough += anonymous_memory_of(pid);
  if (rough > limit_) {
    rough = in_files;
    for (const auto pid : tree) rough += private_memory_of(pid);
  }
  peak_ = std::max(peak_, rough);
  if (rough <= limit_) return std::nullopt;
  return rough;
}

} // namespace troupe
