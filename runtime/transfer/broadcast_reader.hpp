#pragma once

/// The broadcasts of one process that runs tasks: each is read once, from the host's copy or from its program, decoded
/// once, and kept until its program needs it no longer.

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <typeindex>

#include <troupe/runtime/execution/broadcast_source.hpp>
#include <troupe/runtime/result.hpp>
#include <troupe/runtime/time.hpp>
#include <troupe/runtime/transfer/block_client.hpp>

namespace troupe {

class broadcast_reader : public broadcast_source {
public:
  struct options {
    std::string directory;                        ///< of the host's copies; "": this process reads one of its own
    std::string driver_host;                      ///< as this process reaches it
    duration patience = std::chrono::seconds{30}; ///< for another process of this host that reads
  };
  /// Reads nothing but what this process has kept.
  broadcast_reader();
  /// @param client outlives the reader
  broadcast_reader(options opts, block_client* client);

  /// A value of a program in this process, which need not travel.
  void keep(broadcast_id id, std::type_index type, std::shared_ptr<const void> value);

  std::shared_ptr<const void> get(const broadcast_reference& which, std::type_index type,
                                  const decoder& decode) override;
  void drop(broadcast_id id) override;

private:
  struct entry {
    std::shared_ptr<const void> value; ///< null: somebody is reading it, or that has failed
    std::type_index type = typeid(void);
    bool reading = false;
  };
  using entry_pointer = std::shared_ptr<entry>;

  std::string read(const broadcast_reference& which);
  void forget(const broadcast_reference& which, const entry_pointer& e);

  const options options_;
  block_client* const client_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<broadcast_id, entry_pointer> entries_;
};

} // namespace troupe
