#include <troupe/runtime/storage/block_directories.hpp>

namespace troupe {

result<void> block_directories::make_file(const std::string& name,
                                          const std::function<result<void>(const std::string& path)>& make) {
  const auto number = files_.fetch_add(1, std::memory_order_relaxed);
  result<void> made;
  for (std::size_t i = 0; i < directories_.size(); ++i) {
    const auto& directory = directories_[(number + i) % directories_.size()];
    made = make(directory + "/" + name + "." + std::to_string(number));
    if (made || made.error().code != ec::io) return made;
  }
  if (directories_.size() == 1) return made;
  return make_error(ec::io, made.error().message + " (nor in the other directories: there are " +
                                std::to_string(directories_.size()) + ")");
}

} // namespace troupe
