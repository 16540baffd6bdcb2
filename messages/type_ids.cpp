#include <troupe/messages/type_ids.hpp>

#if TROUPE_CAF1
#include <mutex>

#include <caf/init_global_meta_objects.hpp>
#include <caf/io/middleman.hpp>
#endif

namespace troupe {

void register_types([[maybe_unused]] caf::actor_system_config& config) {
#if !TROUPE_CAF1
  config.add_message_types<caf::id_block::troupe>();
#endif
}

void init_types() {
#if TROUPE_CAF1
  static std::once_flag once;
  std::call_once(once, [] {
    caf::init_global_meta_objects<caf::id_block::troupe>();
    caf::io::middleman::init_global_meta_objects();
    caf::core::init_global_meta_objects();
  });
#endif
}

} // namespace troupe
