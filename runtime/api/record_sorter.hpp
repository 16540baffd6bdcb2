#pragma once

/// Sorts records that are more than memory holds: as many as there is room for are sorted at a time and put aside as a
/// run; at the end the runs are merged. Stable, so that the result depends on nothing but the records and the order in
/// which they came.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <troupe/runtime/storage/record_spill.hpp>

namespace troupe {

/// A record as the sorter sees it: the bytes that decide, and others.
struct sorted_record {
  std::string_view key;
  std::string_view value;
};

/// One thread.
class record_sorter {
public:
  struct options {
    std::uint64_t memory = 64ull << 20;
    /// How runs are put aside that memory does not hold; nothing: it holds all.
    std::function<std::optional<record_spill::options>(std::size_t page_content)> spill;
    /// A number that stands for the begin of a key: what has a smaller one comes first.
    std::uint64_t (*prefix)(std::string_view key) = nullptr;
    /// Decides between keys of the same prefix, by its sign; null: they are equal.
    int (*compare)(std::string_view a, std::string_view b) = nullptr;
    /// Piece number `level`, from 1, of what follows the prefix: among keys that are equal so far the one with the
    /// smaller piece comes first. `ended`: those with this piece are equal. Null: `compare` decides all the rest.
    std::uint64_t (*piece)(std::string_view key, unsigned level, bool& ended) = nullptr;
    /// Called now and then while runs are merged; may throw. Null: nobody wants to.
    std::function<void()> check = {};
  };
  explicit record_sorter(options opts);
  ~record_sorter();
  record_sorter(const record_sorter&) = delete;
  record_sorter& operator=(const record_sorter&) = delete;

  /// Throws std::runtime_error where it must put something aside and cannot, std::length_error for a record of 4 GiB.
  void add(std::string_view key, std::string_view value);
  /// Calls `each` with all records, in order; what it is given is valid during the call. Once.
  void for_each(const std::function<void(const sorted_record&)>& each);
  /// Runs that lie in files.
  std::size_t runs() const noexcept { return runs_.size(); }

private:
  /// Lies at the end of the memory, the next one before it; the records themselves lie at its begin.
  struct entry {
    std::uint64_t prefix;
    std::uint64_t at;
    std::uint32_t key_size;
    std::uint32_t value_size;
  };
  struct run {
    unsigned level = 0; ///< runs of the one below were merged to it
    record_spill records;
  };
  class merge;

  entry* entries() noexcept;
  sorted_record record_of(const entry& e) const noexcept;
  void make_room(std::uint64_t bytes);
  void grow(std::uint64_t capacity);
  void sort();
  void sort_equals(entry* first, entry* last, unsigned level);
  static void sort_by_prefix(entry* first, entry* last);
  void prefetch(const entry* e, unsigned level = 0) const noexcept;
  bool put_aside();
  void merge_last(std::size_t count, unsigned level);
  record_spill new_spill() const;
  static void write(record_spill& to, const sorted_record& record);
  std::size_t page_content() const noexcept;
  std::size_t most_runs() const noexcept;
  std::uint64_t read_memory(std::size_t count) const noexcept;

  options opts_;
  std::unique_ptr<char[]> bytes_;
  std::uint64_t capacity_ = 0;
  std::uint64_t used_ = 0;  ///< by records
  std::uint64_t count_ = 0; ///< of entries
  std::vector<run> runs_;   ///< the earliest records first
};

} // namespace troupe
