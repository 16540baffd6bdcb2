#include <troupe/launcher/command_terms.hpp>

#include <troupe/runtime/config/keys.hpp>

namespace troupe {

command_terms command_terms_of(const settings& s) {
  command_terms terms;
  terms.writer_grace = s.get(keys::task_writer_grace);
  terms.thread_variables = s.get(keys::task_thread_variables);
  terms.logs.age = s.get(keys::logs_keep);
  terms.logs.bytes = static_cast<std::uint64_t>(s.get(keys::logs_max_size));
  return terms;
}

} // namespace troupe
