#pragma once

/// The broadcasts of a program whose tasks run in other processes: each lies in a file, which the processes of this
/// host read, and which a block server sends to others. Any thread.

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include <troupe/runtime/execution/broadcast_source.hpp>
#include <troupe/runtime/result.hpp>
#include <troupe/runtime/storage/block_store.hpp>
#include <troupe/runtime/storage/page.hpp>
#include <troupe/runtime/transfer/block_server.hpp>

namespace troupe {

class broadcast_publisher {
public:
  struct options {
    incarnation program = 0;       ///< drawn at random; tells this program from others
    std::string directory;         ///< for the files; exists, of this user alone
    block_server::options serving; ///< started with the first broadcast
    std::string host;              ///< under which the server is reached; "": the driver's
    page_compression compression{};
  };
  broadcast_publisher(options opts, const session_secret& secret);
  ~broadcast_publisher(); ///< withdraws all
  broadcast_publisher(const broadcast_publisher&) = delete;
  broadcast_publisher& operator=(const broadcast_publisher&) = delete;

  /// Errors: io where the file cannot be written, and those of block_server::start.
  result<broadcast_reference> publish(std::string_view encoded);
  /// Nobody else needs it from now on. Another program's is ignored.
  void withdraw(broadcast_id id);

private:
  const options options_;
  const session_secret secret_;
  block_store blocks_;
  std::mutex mutex_;
  std::unique_ptr<block_server> server_;
  std::uint64_t last_ = 0;
};

} // namespace troupe
