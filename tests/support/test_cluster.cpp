#include <troupe/tests/support/test_cluster.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>

#include <unistd.h>

#include <troupe/launcher/executor_entry.hpp>
#include <troupe/launcher/executor_process.hpp>
#include <troupe/runtime/config/cluster_file.hpp>
#include <troupe/runtime/config/job_file.hpp>
#include <troupe/runtime/config/path_text.hpp>
#include <troupe/runtime/execution/cgroup_find.hpp>
#include <troupe/runtime/execution/function_table.hpp>

namespace troupe {

namespace testing {

namespace fs = std::filesystem;

std::optional<int> main_hook(int, char**) {
  enter_executor(true);
  return std::nullopt;
}

temporary_directory::temporary_directory() {
  std::error_code ec;
  auto base = fs::canonical(fs::temp_directory_path(ec), ec); // the product names files by where they are
  if (ec) base = "/tmp";
  auto text = (base / "troupe-test-XXXXXX").string();
  if (!mkdtemp(text.data())) throw std::runtime_error("cannot make " + text + ": " + std::strerror(errno));
  path_ = text;
}

temporary_directory::~temporary_directory() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

} // namespace testing

namespace {

namespace fs = std::filesystem;

settings effective_settings(const test_cluster::options& opts, const std::string& run_directory,
                            const std::optional<yaml_document>& file) {
  settings_builder builder{fs::current_path().string()};
  const auto check = [](const result<void>& taken) {
    if (!taken) throw test_cluster_error(taken.error().message);
  };
  std::vector<std::string> own{"troupe.master=" + opts.master, "troupe.run-directory=" + as_path_text(run_directory),
                               "troupe.progress=none",
                               // The driver lives in the test, which may stand still for some seconds. An executor
                               // begins nothing when its driver may give it up.
                               "troupe.executor.driver-timeout=8s",
                               opts.fake_gpus > 0 ? "troupe.gpu.discovery=fake" : "troupe.gpu.discovery=none"};
  if (opts.fake_gpus > 0) own.push_back("troupe.gpu.fake=" + std::to_string(opts.fake_gpus));
  for (const auto& assignment : own) check(builder.add_default(assignment));
  if (file) check(builder.add_file(*file));
  for (const auto& assignment : opts.conf) check(builder.add_argument(assignment));
  auto built = builder.build();
  if (!built) throw test_cluster_error(built.error().message);
  return std::move(*built);
}

void signal_executor(const test_cluster::executor& which, int signal, const char* verb) {
  if (which.pid > 0 && which.pid != getpid() && !testing::is_alive(which.pid))
    throw test_cluster_error(which.name + " (pid " + std::to_string(which.pid) + ") cannot be " + verb +
                             ": it has ended; was it killed before?");
  if (which.pid <= 0 || which.pid == getpid())
    throw test_cluster_error(which.name + " runs in this process, so it cannot be " + verb +
                             ": use a local-cluster master");
  if (kill(which.pid, signal) != 0)
    throw test_cluster_error(which.name + " (pid " + std::to_string(which.pid) + ") cannot be " + verb + ": " +
                             std::strerror(errno));
}

std::string joined(const std::vector<std::string>& parts) {
  std::string out;
  for (const auto& part : parts) out += (out.empty() ? "" : "; ") + part;
  return out;
}

std::vector<std::string> names_of(const std::vector<test_cluster::executor>& executors) {
  std::vector<std::string> names;
  for (const auto& e : executors) names.push_back(e.name + " (pid " + std::to_string(e.pid) + ")");
  return names;
}

/// Test clusters of this process: what one has opened cannot be told from what another has opened meanwhile.
std::atomic<std::uint64_t> made = 0;
std::atomic<std::uint64_t> living = 0;

} // namespace

test_cluster::presence::presence() {
  end_if_no_executor(); // before anything is made
  ++living;
}
test_cluster::presence::~presence() { --living; }

test_cluster::test_cluster(options opts)
  : options_(std::move(opts)), has_company_(living > 1), number_(++made),
    descriptors_before_(testing::open_descriptors()), ports_before_(testing::listening_ports()) {
  if (auto table = function_table::instance().check(); !table) throw test_cluster_error(table.error().message);
  application::options start;
  std::optional<yaml_document> file;
  if (!options_.cluster_file.empty()) {
    auto document = parse_yaml(options_.cluster_file, "cluster file of the test");
    if (!document) throw test_cluster_error(document.error().message);
    file.emplace(std::move(*document));
    auto cluster = read_cluster(*file, fs::current_path().string());
    if (!cluster) throw test_cluster_error(cluster.error().message);
    start.cluster = std::move(*cluster);
  }
  start.effective = effective_settings(options_, base_.path() + "/run", file);
  job_defaults_ = std::make_shared<const job_defaults>(job_defaults_of(start.effective));
  start.by_hand = options_.published;
  start.on_progress = options_.on_progress;
  auto app = application::start(std::move(start));
  if (!app) throw test_cluster_error(app.error().message);
  app_ = std::move(*app);
  session_id_ = app_->session_id();
  if (app_->address()) own_port_ = app_->address()->port;
}

test_cluster::~test_cluster() noexcept(false) {
  if (checked_) return;
  const auto left = left_behind();
  if (left.empty()) return;
  if (options_.on_left)
    for (const auto& what : left) options_.on_left(what);
  else if (std::uncaught_exceptions() == 0)
    throw test_cluster_error("a test cluster left behind: " + joined(left));
}

application& test_cluster::app() const {
  if (!app_) throw test_cluster_error("this test cluster is closed");
  return *app_;
}

job_end test_cluster::run_job_file(const std::string& text) const {
  const testing::temporary_directory folder;
  const auto file = folder.path() + "/job.yaml";
  std::ofstream{file} << text;
  auto job = load_job(file, *job_defaults_);
  if (!job) throw test_cluster_error{job.error().message};
  return jobs().run(std::make_shared<const job_spec>(std::move(*job)));
}

cluster_jobs& test_cluster::jobs() const { return *app().jobs(); }

session test_cluster::make_session() const {
  auto opts = app().make_session_options();
  opts.arguments = options_.arguments;
  return session{app().jobs(), std::move(opts)};
}

std::vector<test_cluster::executor> test_cluster::executors() const {
  auto status = jobs().status();
  if (!status) throw test_cluster_error("the driver does not answer: " + status.error().message);
  std::vector<executor> out;
  for (auto& e : status->executors)
    out.push_back({e.info.executor, "executor-" + std::to_string(e.info.request.value), static_cast<pid_t>(e.info.pid),
                   std::move(e)});
  std::sort(out.begin(), out.end(), [](const executor& a, const executor& b) { return a.id < b.id; });
  return out;
}

test_cluster::executor test_cluster::find(std::string_view name) const {
  const auto all = executors();
  for (const auto& e : all)
    if (e.name == name) return e;
  throw test_cluster_error("there is no executor " + std::string{name} + " but " + joined(names_of(all)));
}

std::vector<test_cluster::executor> test_cluster::await_executors(std::size_t count, duration deadline) const {
  std::vector<executor> found;
  if (!testing::wait_until([&] { return (found = executors()).size() == count; }, deadline))
    throw test_cluster_error("there are not " + std::to_string(count) + " executors but " +
                             std::to_string(found.size()) + ": " + joined(names_of(found)));
  return found;
}

void test_cluster::await_idle(duration deadline) const {
  std::vector<std::string> busy;
  const auto idle = [&] {
    busy.clear();
    auto status = jobs().status();
    if (!status) {
      busy.push_back("the driver does not answer: " + status.error().message);
      return false;
    }
    for (const auto& job : status->jobs)
      if (job.state == job_state::accepted || job.state == job_state::running)
        busy.push_back("job " + std::to_string(job.job.value) + " is " + std::string{to_string(job.state)});
    for (const auto& e : status->executors)
      if (e.leases != 0 || e.running != 0 || e.kept != 0 || e.block_bytes != 0)
        busy.push_back("executor " + std::to_string(e.info.executor.value) + " has " + std::to_string(e.leases) +
                       " leases, " + std::to_string(e.running) + " tasks, " + std::to_string(e.kept) +
                       " outputs or kept partitions and " + std::to_string(e.block_bytes) + " bytes of blocks");
    return busy.empty();
  };
  if (!testing::wait_until(idle, deadline)) throw test_cluster_error("the cluster is not idle: " + joined(busy));
}

void test_cluster::kill(const executor& which) {
  signal_executor(which, SIGKILL, "killed");
  if (!testing::wait_until([&] { return !testing::is_alive(which.pid); }))
    throw test_cluster_error(which.name + " (pid " + std::to_string(which.pid) + ") was killed and does not end");
}
void test_cluster::stop(const executor& which) { signal_executor(which, SIGSTOP, "stopped"); }
void test_cluster::resume(const executor& which) { signal_executor(which, SIGCONT, "resumed"); }

void test_cluster::close() {
  if (!app_) return;
  // One that the test has left stopped would be killed after its time to end, and be waited for so long.
  for (const auto& process : testing::processes_of(base_.path()))
    if (process.state == 'T') ::kill(process.pid, SIGCONT);
  app_.reset();
}

std::vector<std::string> test_cluster::look_around() const {
  std::vector<std::string> left;
  for (const auto& process : testing::processes_of(base_.path())) left.push_back("process " + process.text());
  const bool is_alone = !has_company_ && made == number_;
  for (const auto& [socket, port] : testing::listening_ports())
    if (is_alone ? !ports_before_.contains(socket) : port == own_port_)
      left.push_back("listening port " + std::to_string(port));
  for (const auto& [fd, target] : testing::open_descriptors()) {
    const auto before = descriptors_before_.find(fd);
    if (before != descriptors_before_.end() && before->second == target) continue;
    if (is_alone || target.starts_with(base_.path() + "/"))
      left.push_back("descriptor " + std::to_string(fd) + " -> " + target);
  }
  std::error_code ec; // of what is being removed at this moment
  for (fs::recursive_directory_iterator entry{base_.path() + "/run", ec}, end; !ec && entry != end; entry.increment(ec))
    left.push_back("file " + entry->path().string());
  if (ec && fs::exists(base_.path() + "/run")) left.push_back("files in " + base_.path() + "/run: " + ec.message());
  using enum cgroup_controller;
  const auto group = find_cgroups({memory, cpu, pids}).base.child("troupe-" + session_id_);
  for (const auto& part : group.parts())
    if (fs::exists(part.directory, ec)) left.push_back("control group " + part.directory);
  return left;
}

std::vector<std::string> test_cluster::left_behind() {
  close();
  checked_ = true;
  std::vector<std::string> left;
  testing::wait_until([&] { return (left = look_around()).empty(); }, options_.patience);
  return left;
}

void test_cluster::check_clean() {
  if (const auto left = left_behind(); !left.empty())
    throw test_cluster_error("a test cluster left behind: " + joined(left));
}

} // namespace troupe
