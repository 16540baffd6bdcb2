#pragma once

/// How much of an executor's memory goes where: a part of it is Troupe's to use, the rest is left to what tasks make
/// themselves. Of Troupe's part some keeps blocks, and what remains is shared by the tasks that run at once, by the
/// cpus that they hold: whatever profiles meet on an executor, they never take more together, and how far a task gets
/// before it must spill does not depend on what else runs.

#include <cstdint>

#include <troupe/runtime/resources/amount.hpp>
#include <troupe/runtime/resources/resource_profile.hpp>

namespace troupe {

struct memory_split {
  share usable{share::units_per_whole * 6 / 10}; ///< of `memory` and `offHeap`
  share blocks{share::units_per_whole / 2};      ///< of what is usable

  /// Bytes that an executor of this profile keeps blocks in.
  std::uint64_t for_blocks(const resource_profile& profile) const;
  /// Bytes that the buffers of one task may take that holds `cpus` of the cores of an executor of this profile; at
  /// least a mebibyte.
  std::uint64_t for_task(const resource_profile& executor, std::int64_t cores, share cpus) const;
};

} // namespace troupe
