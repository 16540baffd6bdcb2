#include <troupe/runtime/api/graph.hpp>

#include <exception>

namespace troupe::detail {
namespace {

/// What a thread has still to give up.
using given_up = std::vector<std::shared_ptr<const void>>;

} // namespace

void let_go(std::shared_ptr<const void> part) noexcept {
  thread_local given_up* mine = nullptr; // of the outermost call
  if (!part) return;
  if (mine) {
    try {
      mine->push_back(std::move(part));
    } catch (const std::exception&) { // no memory: within this one, then
    }
    return;
  }
  given_up outermost;
  mine = &outermost;
  part.reset();
  while (!outermost.empty()) {
    auto next = std::move(outermost.back());
    outermost.pop_back();
    next.reset();
  }
  mine = nullptr;
}

} // namespace troupe::detail
