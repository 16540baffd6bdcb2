#include <troupe/runtime/execution/memory_watch.hpp>

#include <algorithm>

#include <troupe/runtime/execution/files_in_memory.hpp>
#include <troupe/runtime/execution/process_memory.hpp>
#include <troupe/runtime/execution/process_tree.hpp>

namespace troupe {

std::optional<std::uint64_t> memory_watch::exceeded() {
  const auto tree = tree_of(main_);
  std::uint64_t in_files = 0;
  for (const auto& directory : files_) in_files += bytes_taken_below(directory);
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
