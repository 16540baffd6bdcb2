#pragma once

/// What datasets are made of: immutable nodes that point to what they are computed from. A node is shared by all
/// datasets that start from it, in any number of jobs. Reading is safe from any thread.

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <troupe/runtime/dag/job_spec.hpp>
#include <troupe/runtime/resources/resource_profile.hpp>

namespace troupe::detail {

struct dataset_node;

/// Gives up a reference to a part of a graph. A lineage may be as long as a loop has rounds, so what it leads to is
/// given up one after the other, and not each within the end of the one before. Any thread.
void let_go(std::shared_ptr<const void> part) noexcept;

/// A shuffle: the stage that ends with `parent` writes buckets. Its address is its identity: whoever reads the same
/// shuffle in one job shares the stage that writes it.
struct shuffle_edge {
  shuffle_edge(std::shared_ptr<const dataset_node> what, operation end, std::uint32_t count,
               std::vector<std::shared_ptr<const void>> needed)
    : parent(std::move(what)), write(std::move(end)), buckets(count), held(std::move(needed)) {}
  shuffle_edge(const shuffle_edge&) = delete;
  shuffle_edge& operator=(const shuffle_edge&) = delete;
  ~shuffle_edge() { let_go(std::move(parent)); }

  std::shared_ptr<const dataset_node> parent;
  operation write;                               ///< a terminal operation
  std::uint32_t buckets = 0;                     ///< partitions of those who read it
  std::vector<std::shared_ptr<const void>> held; ///< what `write` needs to be there
};

/// How records pass from one stage to the next where a change of profile cuts: written at the end, read at the begin.
struct hand_over {
  operation write;
  operation read;
};

/// That a dataset's records are kept. Shared by the datasets that were made with it.
class kept_records {
public:
  /// @param published is what withdraws it
  kept_records(kept_dataset what, hand_over records, std::shared_ptr<const void> published)
    : what_(what), records_(std::move(records)), published_(std::move(published)) {}
  /// Nothing is kept any more when the jobs that use it have ended, and nothing will be.
  void withdraw() {
    std::shared_ptr<const void> last; // without the lock: it tells the driver
    const std::lock_guard lock{mutex_};
    last = std::move(published_);
  }
  /// What a job is to keep, and what has it kept as long as the job holds it: a job that names what was withdrawn
  /// before it came would keep it for nobody.
  struct use {
    kept_dataset what;
    std::shared_ptr<const void> held;
  };
  /// Nothing once it was withdrawn.
  std::optional<use> begin_use() const {
    const std::lock_guard lock{mutex_};
    return published_ ? std::optional{use{what_, published_}} : std::nullopt;
  }
  const hand_over& records() const noexcept { return records_; }

private:
  const kept_dataset what_;
  const hand_over records_;
  mutable std::mutex mutex_;
  std::shared_ptr<const void> published_;
};

/// One dataset: a source (of its own, or of shuffles) or a narrow step after `parent`.
struct dataset_node {
  dataset_node() = default;
  dataset_node(const dataset_node&) = default;
  dataset_node& operator=(const dataset_node&) = default;
  ~dataset_node() {
    let_go(std::move(parent));
    for (auto& shuffle : shuffles) let_go(std::move(shuffle));
  }

  std::string name; ///< of the operation, or as the author named it
  bool named = false;
  std::uint32_t partitions = 0;
  operation step;                                            ///< a source operation, or a narrow one after `parent`
  std::shared_ptr<const dataset_node> parent;                ///< null for a source
  std::vector<std::shared_ptr<const shuffle_edge>> shuffles; ///< that the source reads, in its own order
  std::shared_ptr<const packed_column> arguments;            ///< of the source, per partition; null for none
  std::optional<resource_profile> profile;                   ///< attached by with_resources
  std::optional<hand_over> records;              ///< with `profile`: of this dataset; nothing: they cannot travel
  std::shared_ptr<kept_records> kept;            ///< null: they are not
  std::shared_ptr<kept_records> kept_before;     ///< of what its operation has read twice, and has had kept for that
  bool barrier = false;                          ///< its stage is a gang
  std::uint32_t samples = 0;                     ///< drawn on the way to it, at most
  bool indeterminate = false;                    ///< it may have other records when it is computed again
  std::vector<std::shared_ptr<const void>> held; ///< what `step` needs to be there
};

} // namespace troupe::detail
