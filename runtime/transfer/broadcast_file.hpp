#pragma once

/// The one copy of a broadcast that the processes of a host share: a block file of one bucket, in a directory of this
/// user's that they all know. Whoever needs it first gets it from the program; a lock makes the others wait for it, and
/// is free again when its holder is gone.

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/result.hpp>
#include <troupe/runtime/storage/block_file.hpp>
#include <troupe/runtime/storage/page.hpp>
#include <troupe/runtime/time.hpp>

namespace troupe {

std::string broadcast_path(const std::string& directory, broadcast_id id);

/// Writes an encoded value there, for the program that has made it; the file goes with the object. Error io.
result<std::unique_ptr<block_file>> write_broadcast(const std::string& path, std::string_view encoded,
                                                    page_compression how);

/// Calls the function that it is given with every page's content, in their order.
using broadcast_fetch = std::function<result<void>(const std::function<void(std::string_view)>& each)>;

/// The encoded value out of the file at `path`; where none is there, or a damaged one, `fetch` gets it first. Errors:
/// those of `fetch`; io where the file cannot be written, or there is one that cannot be opened; overloaded without
/// memory; cancelled where `stop` says so; unreachable where somebody else has held the lock for longer than `patience`
/// without getting on. What `each` throws passes through `fetch`.
result<std::string> read_broadcast(const std::string& path, const broadcast_fetch& fetch, duration patience,
                                   const std::function<bool()>& stop);

/// Removes the file, with its lock.
void remove_broadcast(const std::string& path) noexcept;

} // namespace troupe
