#include <troupe/runtime/api/record_sorter.hpp>

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

#include <troupe/runtime/api/serialize.hpp>

namespace troupe {

namespace {

constexpr std::uint64_t first_capacity = 64 << 10;

} // namespace

/// So many records ahead memory is asked for: they lie in another order than they are looked at.
static constexpr std::ptrdiff_t prefetched = 8;

/// Several runs, and what is in memory behind them, as one sequence. The run that has the next record is on top of a
/// heap; of equal ones the earlier run.
class record_sorter::merge {
public:
  merge(record_sorter& of, std::size_t first_run, bool with_memory) : of_(of) {
    for (auto i = first_run; i < of.runs_.size(); ++i)
      sources_.push_back(std::make_unique<source>(record_spill::cursor{of.runs_[i].records}));
    if (with_memory && of.count_ > 0) {
      sources_.push_back(std::make_unique<source>());
      sources_.back()->next_entry = of.entries();
      sources_.back()->last_entry = of.entries() + of.count_;
    }
    for (std::size_t i = 0; i < sources_.size(); ++i)
      if (advance(*sources_[i])) heap_.push_back(i);
    const auto later = [this](std::size_t a, std::size_t b) { return comes_later(a, b); };
    std::make_heap(heap_.begin(), heap_.end(), later);
  }

  template <class Each>
  void for_each(Each each) {
    const auto later = [this](std::size_t a, std::size_t b) { return comes_later(a, b); };
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), later);
      auto& from = *sources_[heap_.back()];
      each(from.record);
      if (advance(from))
        std::push_heap(heap_.begin(), heap_.end(), later);
      else
        heap_.pop_back();
    }
  }

private:
  struct source {
    source() = default;
    explicit source(record_spill::cursor c) : pages(std::move(c)) {}
    std::optional<record_spill::cursor> pages; ///< of a run; else of memory:
    const entry* next_entry = nullptr;
    const entry* last_entry = nullptr;
    std::string_view page;
    std::uint64_t prefix = 0;
    sorted_record record;
  };

  bool advance(source& s) {
    if (!s.pages) {
      if (s.next_entry == s.last_entry) return false;
      s.prefix = s.next_entry->prefix;
      if (s.last_entry - s.next_entry > prefetched) of_.prefetch(s.next_entry + prefetched);
      s.record = of_.record_of(*s.next_entry++);
      return true;
    }
    if (s.page.empty()) {
      if (of_.opts_.check) of_.opts_.check();
      s.page = s.pages->next();
    }
    if (s.page.empty()) return false;
    decoder in{s.page};
    s.record.key = in.bytes(in.count());
    s.record.value = in.bytes(in.count());
    s.page = in.rest();
    s.prefix = of_.opts_.prefix(s.record.key);
    return true;
  }

  bool comes_later(std::size_t a, std::size_t b) const {
    const auto& x = *sources_[a];
    const auto& y = *sources_[b];
    if (x.prefix != y.prefix) return x.prefix > y.prefix;
    if (of_.opts_.compare)
      if (const int order = of_.opts_.compare(x.record.key, y.record.key); order != 0) return order > 0;
    return a > b;
  }

  record_sorter& of_;
  std::vector<std::unique_ptr<source>> sources_;
  std::vector<std::size_t> heap_;
};

record_sorter::record_sorter(options opts) : opts_(std::move(opts)) {}
record_sorter::~record_sorter() = default;

record_sorter::entry* record_sorter::entries() noexcept {
  return reinterpret_cast<entry*>(bytes_.get() + capacity_) - count_;
}

sorted_record record_sorter::record_of(const entry& e) const noexcept {
  const std::string_view all{bytes_.get() + e.at, std::size_t{e.key_size} + e.value_size};
  return {all.substr(0, e.key_size), all.substr(e.key_size)};
}

/// A quarter of the memory is for the runs that are read at the end.
std::size_t record_sorter::page_content() const noexcept {
  return static_cast<std::size_t>(std::clamp<std::uint64_t>(opts_.memory / 256, 4 << 10, 64 << 10));
}
std::size_t record_sorter::most_runs() const noexcept {
  return std::max<std::size_t>(4, static_cast<std::size_t>(opts_.memory / 4 / (2 * page_content())));
}

void record_sorter::add(std::string_view key, std::string_view value) {
  if (key.size() + value.size() > std::numeric_limits<std::uint32_t>::max())
    throw std::length_error("a record of more than 4 GiB cannot be sorted");
  const auto size = key.size() + value.size();
  if (capacity_ - used_ - count_ * sizeof(entry) < size + sizeof(entry)) make_room(size + sizeof(entry));
  std::memcpy(bytes_.get() + used_, key.data(), key.size());
  std::memcpy(bytes_.get() + used_ + key.size(), value.data(), value.size());
  ++count_;
  *entries() = {opts_.prefix(key), used_, static_cast<std::uint32_t>(key.size()),
                static_cast<std::uint32_t>(value.size())};
  used_ += size;
}

void record_sorter::make_room(std::uint64_t bytes) {
  const auto most = opts_.memory - opts_.memory / 4;
  const auto needed = used_ + count_ * sizeof(entry) + bytes;
  if (needed > most && put_aside()) {
    if (bytes > capacity_) grow(bytes);
    return;
  }
  // Where nothing can be put aside, it doubles beyond what it may: else every further record would copy all.
  const auto doubled = std::max(2 * capacity_, first_capacity);
  grow(std::max(needed, needed > most ? doubled : std::min(doubled, most)));
}

void record_sorter::grow(std::uint64_t capacity) {
  capacity = (capacity + alignof(entry) - 1) / alignof(entry) * alignof(entry);
  std::unique_ptr<char[]> larger{new char[capacity]}; // not touched before it is used
  if (count_ > 0) {
    std::memcpy(larger.get(), bytes_.get(), used_);
    std::memcpy(larger.get() + capacity - count_ * sizeof(entry), entries(), count_ * sizeof(entry));
  }
  bytes_ = std::move(larger);
  capacity_ = capacity;
}

namespace {

/// Calls `each(first, last)` for all that follow each other and have one prefix, where they are several.
template <class Entry, class Each>
void for_equals(Entry* first, Entry* last, Each each) {
  while (first != last) {
    auto* const end = std::find_if(first + 1, last, [&](const Entry& e) { return e.prefix != first->prefix; });
    if (end - first > 1) each(first, end);
    first = end;
  }
}

/// So many pieces are looked at before keys are compared as a whole.
constexpr unsigned most_pieces = 8;

} // namespace

void record_sorter::sort() {
  sort_by_prefix(entries(), entries() + count_);
  if (opts_.compare)
    for_equals(entries(), entries() + count_, [this](entry* first, entry* last) { sort_equals(first, last, 1); });
}

/// Sorts what has one prefix. Keys lie anywhere in memory: each is looked at once for each piece, and not with every
/// comparison.
void record_sorter::sort_equals(entry* first, entry* last, unsigned level) {
  if (!opts_.piece || level > most_pieces) {
    std::sort(first, last, [this](const entry& a, const entry& b) {
      const int order = opts_.compare(record_of(a).key, record_of(b).key);
      return order != 0 ? order < 0 : a.at < b.at;
    });
    return;
  }
  const auto prefix = first->prefix;
  bool ended = false;
  for (auto* e = first; e != last; ++e) {
    if (last - e > prefetched) prefetch(e + prefetched, level);
    e->prefix = opts_.piece(record_of(*e).key, level, ended);
  }
  sort_by_prefix(first, last);
  for_equals(first, last, [&](entry* from, entry* to) {
    bool all_is_said = false;
    opts_.piece(record_of(*from).key, level, all_is_said);
    if (!all_is_said) sort_equals(from, to, level + 1);
  });
  std::for_each(first, last, [&](entry& e) { e.prefix = prefix; });
}

void record_sorter::sort_by_prefix(entry* first, entry* last) {
  std::sort(first, last,
            [](const entry& a, const entry& b) { return a.prefix != b.prefix ? a.prefix < b.prefix : a.at < b.at; });
}

/// The record will be looked at soon, from the begin or at this piece of its key.
void record_sorter::prefetch(const entry* e, unsigned level) const noexcept {
  __builtin_prefetch(bytes_.get() + e->at + 8 * level);
}

record_spill record_sorter::new_spill() const { return record_spill{*opts_.spill(page_content())}; }

void record_sorter::write(record_spill& to, const sorted_record& record) {
  encoder out{to.page()};
  out.size(record.key.size());
  out.bytes(record.key);
  out.size(record.value.size());
  out.bytes(record.value);
  to.wrote();
}

/// What is in memory becomes a run. @returns false where there is nothing, or no place for it
bool record_sorter::put_aside() {
  if (count_ == 0 || !opts_.spill || !opts_.spill(page_content())) return false;
  sort();
  auto spill = new_spill();
  for (const auto *e = entries(), *last = e + count_; e != last; ++e) {
    if (last - e > prefetched) prefetch(e + prefetched);
    write(spill, record_of(*e));
  }
  spill.finish();
  runs_.push_back({0, std::move(spill)});
  used_ = count_ = 0;
  // As many of one level as can be merged at once become one of the next.
  for (;;) {
    const auto level = runs_.back().level;
    const auto same = static_cast<std::size_t>(
        std::find_if(runs_.rbegin(), runs_.rend(), [&](const run& r) { return r.level != level; }) - runs_.rbegin());
    if (same < most_runs() && (same < 2 || read_memory(same) <= opts_.memory / 4)) return true;
    merge_last(same, level + 1);
  }
}

/// What reading the last so many runs takes.
std::uint64_t record_sorter::read_memory(std::size_t count) const noexcept {
  std::uint64_t bytes = 0;
  for (auto at = runs_.end() - static_cast<std::ptrdiff_t>(count); at != runs_.end(); ++at)
    bytes += at->records.largest_page();
  return bytes;
}

void record_sorter::merge_last(std::size_t count, unsigned level) {
  auto spill = new_spill();
  {
    merge all{*this, runs_.size() - count, false};
    all.for_each([&](const sorted_record& record) { write(spill, record); });
  }
  spill.finish();
  runs_.erase(runs_.end() - static_cast<std::ptrdiff_t>(count), runs_.end());
  runs_.push_back({level, std::move(spill)});
}

void record_sorter::for_each(const std::function<void(const sorted_record&)>& each) {
  sort();
  while (runs_.size() > most_runs()) merge_last(std::min(most_runs(), runs_.size() - most_runs() + 1), 0);
  while (runs_.size() > 2 && read_memory(runs_.size()) > opts_.memory / 4) merge_last(2, 0);
  merge all{*this, 0, true};
  all.for_each(each);
  runs_.clear();
  bytes_.reset();
  capacity_ = used_ = count_ = 0;
}

} // namespace troupe
