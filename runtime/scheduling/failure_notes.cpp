#include <troupe/runtime/scheduling/failure_notes.hpp>

#include <utility>

namespace troupe {

namespace {

/// Inside a character of UTF-8.
bool goes_on(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

/// Its beginning and its end, which mostly say the most.
std::string shortened(const std::string& text) {
  auto head = failure_notes::longest / 2;
  auto tail = text.size() - failure_notes::longest / 2;
  constexpr int longest_character = 4;
  for (int i = 1; i < longest_character && goes_on(text[head]); ++i) --head;
  for (int i = 1; i < longest_character && goes_on(text[tail]); ++i) ++tail;
  return text.substr(0, head) + "\n[" + std::to_string(tail - head) + " bytes are left out here]\n" + text.substr(tail);
}

} // namespace

void failure_notes::add(explained_failure note) {
  if (note.why.size() > longest) note.why = shortened(note.why);
  if (first_.size() < most_at_each_end) {
    first_.push_back(std::move(note));
    return;
  }
  last_.push_back(std::move(note));
  if (last_.size() <= most_at_each_end) return;
  last_.pop_front();
  ++left_out_;
}

std::vector<explained_failure> failure_notes::all() const {
  auto all = first_;
  all.insert(all.end(), last_.begin(), last_.end());
  return all;
}

} // namespace troupe
