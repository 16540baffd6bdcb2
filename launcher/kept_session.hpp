#pragma once

#include <optional>

#include <troupe/runtime/execution/keeper.hpp>

namespace troupe {

/// For a program that runs commands itself: what follows goes on in a process below a keeper (see `keep`), so that
/// nothing that the commands start outlives it, even after kill -9 of this process, which the user knows and which only
/// passes signals on from now on. When the terminal stops it (Ctrl-Z) the process below is stopped meanwhile as well;
/// commands that run go on. In the process below the keeper this returns nothing; in the others the exit code, which
/// main returns at once. To be called before there is any other thread.
/// @param options all but the pipe and its grace, which are this function's own
std::optional<int> run_below_keeper(keeper_options options);

} // namespace troupe
