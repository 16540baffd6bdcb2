#include <troupe/runtime/scheduling/barrier_coordinator.hpp>

#include <utility>

namespace troupe {

namespace {

std::string without_them(partition_index ended) {
  return "the task of partition " + std::to_string(ended) +
         " has ended and waits for nobody any more: all tasks of a barrier stage have to wait equally often";
}

const char* name_of(sync_kind kind) { return kind == sync_kind::barrier ? "barrier()" : "all_gather()"; }

} // namespace

barrier_coordinator::barrier_coordinator(std::uint32_t tasks) : texts_(tasks) {}

std::optional<barrier_coordinator::verdict> barrier_coordinator::on_arrival(const barrier_arrival& a, time_point now) {
  auto& place = texts_[a.partition];
  if (!failure_.empty()) return verdict{a.round, {a.partition}, nullptr, failure_};
  if (a.round < round_)
    return verdict{a.round, {a.partition}, nullptr, "round " + std::to_string(a.round) + " has already finished"};
  if (place) return std::nullopt;
  place = a.text;
  bytes_ += a.text.size();
  if (waiting_++ == 0) {
    kind_ = a.kind;
    since_ = now;
  }
  if (a.round > round_)
    return fail("the task of partition " + std::to_string(a.partition) + " waits in round " + std::to_string(a.round) +
                ", the others are in round " + std::to_string(round_));
  if (a.kind != kind_)
    return fail(std::string{"Different barrier sync types found: "} + name_of(kind_) + " and " + name_of(a.kind) +
                " in round " + std::to_string(round_) + ": all tasks have to call the same one");
  if (bytes_ > max_gather_size)
    return fail("the texts of all_gather() are larger than " + std::to_string(max_gather_size) +
                " bytes together: hand over less, or write blocks or files");
  if (ended_) return fail(without_them(*ended_));
  if (waiting_ < texts_.size()) return std::nullopt;
  verdict all{round_, {}, nullptr, {}};
  auto column = kind_ == sync_kind::all_gather ? std::make_shared<packed_column>() : nullptr;
  for (partition_index p = 0; p < texts_.size(); ++p) {
    all.partitions.push_back(p);
    if (column) column->push_back(*texts_[p]);
    texts_[p].reset();
  }
  all.texts = std::move(column);
  ++round_;
  waiting_ = 0;
  bytes_ = 0;
  since_.reset();
  return all;
}

std::optional<barrier_coordinator::verdict> barrier_coordinator::on_ended(partition_index partition) {
  if (!ended_) ended_ = partition;
  if (waiting_ == 0) return std::nullopt;
  return fail(without_them(*ended_));
}

barrier_coordinator::verdict barrier_coordinator::on_timeout(duration limit) {
  const auto seconds = std::chrono::duration_cast<std::chrono::milliseconds>(limit).count();
  std::string missing;
  std::uint32_t named = 0;
  for (partition_index p = 0; p < texts_.size() && named < 8; ++p)
    if (!texts_[p]) missing += (named++ == 0 ? "" : ", ") + std::to_string(p);
  return fail("The coordinator didn't get all barrier sync requests of round " + std::to_string(round_) + " within " +
              std::to_string(seconds) + "ms (troupe.barrier.sync-timeout): " + std::to_string(waiting_) + " of " +
              std::to_string(texts_.size()) + " tasks wait, partition " + missing +
              (named < texts_.size() - waiting_ ? ", …" : "") + (named == 1 ? " does not" : " do not"));
}

/// From now on nobody waits here any more.
barrier_coordinator::verdict barrier_coordinator::fail(std::string why) {
  failure_ = std::move(why);
  verdict all{round_, {}, nullptr, failure_};
  for (partition_index p = 0; p < texts_.size(); ++p)
    if (std::exchange(texts_[p], std::nullopt)) all.partitions.push_back(p);
  waiting_ = 0;
  bytes_ = 0;
  since_.reset();
  return all;
}

} // namespace troupe
