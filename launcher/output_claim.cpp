#include <troupe/launcher/output_claim.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <thread>
#include <unordered_map>
#include <utility>
#include <variant>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <troupe/runtime/scheduling/command_arguments.hpp>
#include <troupe/runtime/storage/descriptor.hpp>
#include <troupe/runtime/storage/file_lock.hpp>
#include <troupe/runtime/transfer/handshake.hpp>

namespace troupe {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr std::size_t most_outputs = 100'000;
/// For which another run is waited for: one that was killed may be in the hands of who clears up.
constexpr auto patience_with_others = 3s;
constexpr auto time_between_looks = 50ms;

constexpr const char* claim_beginning = "outputs-";
/// The files in a claim: whose it is, and the checksums of the paths of its outputs.
constexpr const char* holder_name = "/holder";
constexpr const char* outputs_name = "/outputs";

struct output {
  const stage_spec* stage;
  std::string path;
};
/// By the checksum of its path.
using outputs = std::unordered_map<std::uint64_t, output>;

/// What paths mean: in a container they may lead to other files.
std::string file_systems() {
  struct stat space {};
  return ::stat("/proc/self/ns/mnt", &space) == 0 ? std::to_string(space.st_ino) : "";
}

outputs outputs_of(const job_spec& job, const std::string& cluster) {
  outputs all;
  const auto where = (cluster.empty() ? file_systems() : cluster) + '\0';
  for (const auto& stage : job.stages) {
    if (stage.is_native() || !stage.arguments) continue;
    std::error_code unknown;
    const auto& named = std::get<command_program>(stage.program).output_directory;
    const auto real = fs::weakly_canonical(named, unknown).string();
    const auto folder = (unknown ? named : real) + "/";
    for (std::size_t p = 0; p < stage.arguments->size(); ++p) {
      const auto decoded = decode_command_arguments((*stage.arguments)[p]);
      if (!decoded) continue;
      for (const auto& name : decoded->outputs) {
        if (all.size() == most_outputs) return all;
        auto path = folder + name;
        const auto text = where + path;
        all.try_emplace(XXH3_64bits(text.data(), text.size()), output{&stage, std::move(path)});
      }
    }
  }
  return all;
}

void write_claim(const std::string& directory, const outputs& all, const std::string& job) {
  std::ofstream sums{directory + outputs_name, std::ios::binary};
  for (const auto& [sum, output] : all) sums.write(reinterpret_cast<const char*>(&sum), sizeof sum);
  std::ofstream{directory + holder_name} << "process " << ::getpid() << ", job " << job;
}

/// Whether somebody holds it, as run_directory does.
bool is_held(const std::string& directory) {
  const descriptor lock{::open((directory + "/lock").c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW)};
  return lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0;
}

struct conflict {
  output mine;
  std::string holder; ///< "" where it is not known
};

/// Somebody else's claim to one of the outputs.
std::optional<conflict> find_conflict(const std::string& base, const std::string& own, const outputs& all) {
  std::error_code gone;
  for (fs::directory_iterator entry{base, gone}, end; !gone && entry != end; entry.increment(gone)) {
    const auto claim = entry->path().string();
    struct stat status {};
    if (!entry->path().filename().string().starts_with(claim_beginning) || claim == own ||
        ::lstat(claim.c_str(), &status) != 0 || status.st_uid != ::geteuid())
      continue;
    std::ifstream sums{claim + outputs_name, std::ios::binary};
    for (std::uint64_t sum = 0; sums.read(reinterpret_cast<char*>(&sum), sizeof sum);) {
      const auto mine = all.find(sum);
      if (mine == all.end()) continue;
      if (!is_held(claim)) break;
      conflict found{mine->second, {}};
      std::getline(std::ifstream{claim + holder_name}, found.holder);
      return found;
    }
  }
  return {};
}

error taken(const conflict& by) {
  const auto holder = by.holder.empty() ? "" : " (" + by.holder + ")";
  return make_error(ec::invalid_configuration,
                    "stage " + by.mine.stage->name + ": another run" + holder + " is making " + by.mine.path +
                        " as well, and each would take the other's files for its own; wait for its end, or give "
                        "another output:");
}

} // namespace

result<output_claim> output_claim::take(const job_spec& job, const std::string& base, const std::string& cluster,
                                        std::set<std::string> others) {
  output_claim claim;
  const auto all = outputs_of(job, cluster);
  if (all.empty()) return claim;
  auto made = run_directory::create(base, claim_beginning + make_random_name());
  if (!made) return claim;
  others.insert(base);
  const auto find = [&]() -> std::optional<conflict> {
    // Of two that begin at once, one looks when the other has written what it claims.
    const descriptor turn{::open(base.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (turn) lock_within(turn.get(), patience_with_others); // who has it may stand still
    for (const auto& place : others)
      if (auto found = find_conflict(place, made->path(), all)) return found;
    write_claim(made->path(), all, job.name);
    return {};
  };
  const auto deadline = std::chrono::steady_clock::now() + patience_with_others;
  while (const auto other = find()) {
    if (std::chrono::steady_clock::now() >= deadline) return taken(*other);
    std::this_thread::sleep_for(time_between_looks);
  }
  claim.held_.emplace(std::move(*made));
  return claim;
}

} // namespace troupe
