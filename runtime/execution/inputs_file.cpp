#include <troupe/runtime/execution/inputs_file.hpp>

#include <cerrno>
#include <cstring>

#include <fcntl.h>

#include <troupe/runtime/storage/descriptor.hpp>
#include <troupe/runtime/storage/file_io.hpp>

namespace troupe {

result<void> write_inputs_file(const std::string& file, const std::vector<std::string>& inputs) {
  std::string text;
  for (const auto& path : inputs) (text += path) += '\n';
  descriptor out{::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600)};
  int why = out ? write_all(out.get(), text) : errno;
  if (why == 0 && !out.close()) why = errno;
  if (why == 0) return {};
  return make_error(ec::io, "cannot write the list of its inputs, " + file + ": " + std::strerror(why));
}

} // namespace troupe
