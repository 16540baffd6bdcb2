#include <troupe/launcher/process_backend.hpp>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <troupe/launcher/executor_entry.hpp>
#include <troupe/runtime/resources/quote.hpp>

namespace troupe {
namespace {

/// One that cannot live is not started over and over.
constexpr duration between_services = std::chrono::seconds{1};

time_point now() { return time_point{std::chrono::steady_clock::now().time_since_epoch()}; }

/// The last line of a file, in quotes, where it has one: the file itself may go with its session. The user's program
/// may have written it.
std::string last_words(const std::string& path) {
  constexpr std::streamoff most = 4096;
  constexpr std::size_t most_quoted = 300;
  std::ifstream file{path, std::ios::binary | std::ios::ate};
  if (!file) return {};
  file.seekg(std::max<std::streamoff>(0, static_cast<std::streamoff>(file.tellg()) - most));
  std::string last;
  for (std::string line; std::getline(file, line);)
    if (!line.empty()) last = std::move(line);
  return last.empty() ? last : ": " + detail::quote(last, most_quoted);
}

/// Where an executor's standard output and error go, to which its native tasks print: that may be large, so it lies in
/// the first local directory that works, and `link` leads there; `link` itself where there is none.
std::string place_for_output(const executor_start& what, const std::string& link) {
  const auto name = std::filesystem::path{link}.filename().string();
  for (const auto& directory : what.local_directories) {
    const auto path = directory + "/" + name;
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) continue;
    close(fd);
    if (path == link || symlink(path.c_str(), link.c_str()) == 0 || errno == EEXIST) return path;
  }
  return link;
}

/// As a new program takes them, ended by null; valid as long as the texts.
std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (auto& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

} // namespace

process_backend::process_backend(options opts)
  : options_(std::move(opts)), carving_(options_.hosts, options_.described_by) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) == 0) {
    liveness_read_ = ends[0];
    liveness_write_ = ends[1];
  }
}

process_backend::~process_backend() {
  converge({});
  if (service_) stop({}, *service_);
  const auto deadline = now() + options_.grace + std::chrono::milliseconds{2500};
  for (;;) {
    reap();
    if (children_.empty() && !service_) break;
    if (now() > deadline) {
      for (auto& [id, c] : children_) kill(c.pid, SIGKILL);
      if (service_) kill(service_->pid, SIGKILL);
    }
    poll(nullptr, 0, 2);
  }
  if (liveness_read_ >= 0) close(liveness_read_);
  if (liveness_write_ >= 0) close(liveness_write_);
}

void process_backend::converge(const std::vector<executor_order>& wanted) {
  std::set<request_id> names;
  for (const auto& order : wanted) {
    names.insert(order.request);
    const auto it = children_.find(order.request);
    if (it == children_.end()) {
      if (!over_.contains(order.request)) start(order);
    } else if (order.parked && !it->second.parked) {
      it->second.parked = true;
      carving_.park(order.request);
    }
  }
  for (auto& [request, c] : children_)
    if (!names.contains(request)) stop(request, c);
  std::erase_if(over_, [&](request_id request) { return !names.contains(request); });
  provide_service();
}

void process_backend::start(const executor_order& order) {
  const auto refuse = [&](std::string why) {
    carving_.free(order.request);
    ended_.push_back({order.request, order.shape.shape, launch_state::refused, std::move(why)});
    over_.insert(order.request);
  };
  auto place = carving_.place(order.request, order.shape.profile);
  if (!place) return refuse(place.error().message);
  auto what = options_.start;
  what.info.request = order.request;
  what.info.shape = order.identity();
  what.info.host = carving_.hosts()[place->host].name;
  what.info.profile = order.shape.profile;
  what.info.capacity = place->capacity;
  if (options_.limits) {
    what.limits = options_.limits->grant(name_of_executor(order.request), place->capacity);
    what.command_processes = options_.limits->command_processes();
  }
  auto pid = spawn(order.request, what);
  if (!pid) {
    remove_group(what.limits);
    if (options_.limits) options_.limits->give_back(what.limits);
    return refuse(pid.error().message);
  }
  child c;
  c.limits = std::move(what.limits);
  c.shape = order.shape.shape;
  c.pid = *pid;
  children_.emplace(order.request, c);
}

/// As long as there are executors that are to go although their output is needed. It takes no room: it runs nothing.
void process_backend::provide_service() {
  if (service_ || !options_.shuffle_service || now() < next_service_) return;
  if (std::none_of(children_.begin(), children_.end(),
                   [](const auto& c) { return c.second.parked && !c.second.stopping; }))
    return;
  next_service_ = now() + between_services;
  auto what = options_.start;
  what.shuffle_service = true;
  what.info.profile.executor["cores"] = {1, {}, {}};
  what.info.profile.task["cpus"] = share::whole(1);
  what.info.capacity.cores = 1;
  auto pid = spawn({}, what);
  if (!pid) return; // those that are parked go on serving
  child service;
  service.pid = *pid;
  service_ = service;
}

result<pid_t> process_backend::spawn(request_id request, const executor_start& what) {
  const auto base = what.run_directory + "/" + name_of_executor(request);
  const auto stderr_file = place_for_output(what, base + ".err");
  auto text = encode_executor_start(what, options_.effective);
  if (!text) return text.error();
  auto sealed = make_sealed_file(*text);
  if (!sealed) return sealed.error();
  // Numbers above those of the standard streams, which the child opens anew.
  const int start_fd = fcntl(*sealed, F_DUPFD_CLOEXEC, 3);
  const int liveness_fd = fcntl(liveness_read_, F_DUPFD_CLOEXEC, 3);
  close(*sealed);
  const auto close_both = [&] {
    if (start_fd >= 0) close(start_fd);
    if (liveness_fd >= 0) close(liveness_fd);
  };
  if (start_fd < 0 || liveness_fd < 0) {
    const auto why = make_error(ec::io, "no file descriptor is left: " + std::string{std::strerror(errno)});
    close_both();
    return why;
  }
  auto words = program_arguments();
  if (words.empty()) words.push_back(options_.program);
  auto environment = executor_environment(start_fd, liveness_fd, base);
  const auto arguments = pointers_to(words);
  const auto variables = pointers_to(environment);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  // Arguments mean what they meant when this program was started.
  if (const int folder = folder_at_start(); folder >= 0) posix_spawn_file_actions_addfchdir_np(&files, folder);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, stderr_file.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&files, 1, 2);
  // A descriptor that is made itself survives in the child alone: another one that is started meanwhile gets neither.
  posix_spawn_file_actions_adddup2(&files, start_fd, start_fd);
  posix_spawn_file_actions_adddup2(&files, liveness_fd, liveness_fd);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  sigset_t defaults;
  sigfillset(&defaults);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  // A group of its own: Ctrl-C at the terminal is for the driver, which then ends its executors in order.
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  pid_t pid = 0;
  const int failure =
      posix_spawn(&pid, options_.program.c_str(), &files, &attributes, arguments.data(), variables.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  close_both();
  if (failure != 0)
    return make_error(ec::io, "cannot start " + options_.program + ": " + std::string{std::strerror(failure)});
  return pid;
}

void process_backend::stop(request_id, child& c) {
  if (c.stopping) return;
  c.stopping = true;
  // Before that its keeper has ended it in order, with all that it had started.
  c.kill_at = now() + options_.grace + std::chrono::milliseconds{1500};
  kill(c.pid, SIGTERM);
}

void process_backend::reap() {
  const auto moment = now();
  if (service_) {
    int status = 0;
    const auto got = waitpid(service_->pid, &status, WNOHANG);
    if (got == 0 && service_->stopping && moment > service_->kill_at) kill(service_->pid, SIGKILL);
    if (got != 0) {
      clear_up_after_executor(options_.start, {}, got > 0 && WIFSIGNALED(status));
      service_.reset(); // what it kept is lost
    }
  }
  for (auto it = children_.begin(); it != children_.end();) {
    auto& c = it->second;
    int status = 0;
    const auto got = waitpid(c.pid, &status, WNOHANG);
    if (got == 0) {
      if (c.stopping && moment > c.kill_at) kill(c.pid, SIGKILL);
      ++it;
      continue;
    }
    carving_.free(it->first);
    const auto exit = got == c.pid ? describe_exit(status, c.limits) : executor_exit{};
    auto detail = got == c.pid ? to_string(exit) : std::string{"it is gone"};
    if (!c.stopping) {
      const auto errors = options_.start.run_directory + "/" + name_of_executor(it->first) + ".err";
      detail += last_words(errors) + "; see " + errors;
    }
    ended_.push_back({it->first, c.shape, launch_state::gone, std::move(detail), exit});
    over_.insert(it->first);
    const bool killed = got == c.pid && WIFSIGNALED(status);
    // Many blocks take a while, and an actor waits for this function.
    std::erase_if(removals_,
                  [](const auto& r) { return r.wait_for(std::chrono::seconds{0}) == std::future_status::ready; });
    if (options_.limits) options_.limits->give_back(c.limits);
    auto what = options_.start;
    what.limits = std::move(c.limits);
    removals_.push_back(std::async(std::launch::async, clear_up_after_executor, std::move(what), it->first, killed));
    it = children_.erase(it);
  }
}

std::vector<launch_status> process_backend::snapshot() {
  reap();
  provide_service();
  auto out = std::exchange(ended_, {});
  for (const auto& [request, c] : children_) out.push_back({request, c.shape, launch_state::running, {}});
  return out;
}

feasibility process_backend::check(const executor_shape& shape) { return carving_.check(shape.profile); }

std::uint32_t process_backend::room_for(const executor_shape& shape) {
  reap();
  return carving_.room_for(shape.profile);
}

std::optional<way_answer> process_backend::who_makes_way(const way_question& question) {
  reap();
  return carving_.who_makes_way(question.shape.profile, question.count, question.leaving, question.may_go);
}

} // namespace troupe
