#pragma once

/// What the programs of this folder share; each must fail to compile for the reason that its first line gives.

#include <troupe/troupe.hpp>

troupe::session& session();
