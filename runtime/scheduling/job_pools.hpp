#pragma once

/// Pools: how the jobs of a session share its slots (spec TS-3; Spark's fair scheduler). Owner: the dag scheduler.
/// Pure; not thread-safe.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// `troupe.scheduler.mode`, and the mode of one pool: who comes first gets all it can use, or everybody gets a part.
enum class sharing_mode : std::uint8_t { fifo, fair };

/// What settings say about one pool; pools without settings are like this.
struct pool_options {
  sharing_mode mode = sharing_mode::fifo; ///< among its own stages
  std::uint32_t weight = 1;               ///< a pool of weight 2 gets twice as many slots as one of weight 1
  std::uint32_t min_share = 0;            ///< slots that it gets before others get more than theirs

  bool operator==(const pool_options&) const = default;
};

struct sharing_options {
  sharing_mode mode = sharing_mode::fifo; ///< among pools; under `fifo` they mean nothing
  std::map<std::string, pool_options> pools;

  bool operator==(const sharing_options&) const = default;
};

/// Position of a pool in `job_pools`.
using pool_index = std::uint32_t;

/// Which pool holds how many slots.
class job_pools {
public:
  explicit job_pools(sharing_options options) : options_(std::move(options)) {}

  bool are_fair() const noexcept { return options_.mode == sharing_mode::fair; }
  bool is_fair_inside(pool_index p) const noexcept { return all_[p].options.mode == sharing_mode::fair; }
  /// The pool of that name, made where it is new. "" is `default`.
  pool_index find(const std::string& name);
  const std::string& name_of(pool_index p) const noexcept { return all_[p].name; }

  void take_slot(pool_index p) noexcept { ++all_[p].slots; }
  void give_back_slot(pool_index p) noexcept { --all_[p].slots; }
  std::uint64_t slots_of(pool_index p) const noexcept { return all_[p].slots; }

  /// Whether the next slot belongs to `a` rather than to `b`: the one below its minimum share, else the one with fewer
  /// slots for its minimum or weight, else the first by name. A slot of `freed` counts as given back already.
  bool comes_before(pool_index a, pool_index b, std::optional<pool_index> freed) const noexcept;

private:
  struct pool {
    std::string name;
    pool_options options;
    std::uint64_t slots = 0;
  };

  sharing_options options_;
  std::vector<pool> all_;
  std::map<std::string, pool_index> by_name_;
};

} // namespace troupe
