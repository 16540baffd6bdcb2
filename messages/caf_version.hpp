#pragma once

/// Which CAF this is. `CAF_VERSION` itself misleads (1706 for 0.17.6, octal 0100 for 1.1.0); the major number is right
/// in both.

#include <caf/config.hpp>

#if CAF_MAJOR_VERSION >= 1
#define TROUPE_CAF1 1
#else
#define TROUPE_CAF1 0
#endif
