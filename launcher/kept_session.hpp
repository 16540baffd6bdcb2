#pragma once

#include <functional>
#include <optional>

#include <troupe/runtime/time.hpp>

namespace troupe {

/// For a program that runs commands itself: what follows goes on in a process below a keeper (see `keep`), so that
/// nothing that the commands start outlives it, even after kill -9 of this process, which the user knows and which only
/// passes signals on from now on. In the process below the keeper this returns nothing; in the others the exit code,
/// which main returns at once. To be called before there is any other thread.
/// @param end_grace how long the process may live on after TERM or INT
/// @param clear_up called by the keeper when nothing else is left
std::optional<int> run_below_keeper(duration end_grace, std::function<void()> clear_up);

} // namespace troupe
