#include <troupe/messages/type_ids.hpp>

namespace troupe {

void register_types(caf::actor_system_config& config) { announce_to_config<caf::id_block::troupe>(config); }

void init_types() { announce_to_process<caf::id_block::troupe>(); }

} // namespace troupe
