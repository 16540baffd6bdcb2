#pragma once

/// Reads a block that lies in this process or in a file that it has open.

#include <functional>
#include <string_view>

#include <troupe/runtime/result.hpp>
#include <troupe/runtime/storage/block_store.hpp>
#include <troupe/runtime/storage/page_buffer.hpp>

namespace troupe {

/// Calls `each` with the content of every page, in their order; what it is given is valid during the call. Errors:
/// malformed where the bytes are not what was written, overloaded without memory for a page, io.
result<void> read_pages(const block_view& view, page_buffer& buffer, const std::function<void(std::string_view)>& each);

} // namespace troupe
