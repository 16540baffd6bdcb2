#pragma once

#include <troupe/runtime/config/settings.hpp>
#include <troupe/runtime/execution/command_terms.hpp>

namespace troupe {

/// What the settings say of commands.
command_terms command_terms_of(const settings& s);

} // namespace troupe
