#include <troupe/runtime/api/session.hpp>

#include <algorithm>
#include <utility>

#include <troupe/runtime/api/input_files.hpp>
#include <troupe/runtime/api/text_source.hpp>

namespace troupe {

namespace detail {

session_core::session_core(std::shared_ptr<job_client> client, session_options options, std::string group,
                           std::shared_ptr<accumulator_totals> totals)
  : client_(std::move(client)), options_(std::move(options)), group_(std::move(group)), totals_(std::move(totals)) {
  options_.default_parallelism = std::max(options_.default_parallelism, 1u);
}

std::uint32_t session_core::partitions_or_default(std::uint32_t wanted) const noexcept {
  return wanted == 0 ? options_.default_parallelism : wanted;
}

std::shared_ptr<session_core> session_core::in_group(std::string group) const {
  return std::make_shared<session_core>(client_, options_, std::move(group), totals_);
}

std::shared_ptr<session_core> session_core::in_pool(std::string pool) const {
  auto options = options_;
  options.jobs.pool = std::move(pool);
  return std::make_shared<session_core>(client_, std::move(options), group_, totals_);
}

std::pair<broadcast_reference, std::shared_ptr<const void>> session_core::publish(const broadcast_content& content) {
  struct published {
    std::shared_ptr<job_client> client;
    broadcast_id id;
    published(std::shared_ptr<job_client> by, broadcast_id which) : client(std::move(by)), id(which) {}
    published(const published&) = delete;
    ~published() { client->withdraw(id); }
  };
  auto made = client_->publish(content);
  if (!made) throw job_error(made.error());
  return {*made, std::make_shared<const published>(client_, made->id)};
}

std::size_t session_core::cancel_group(std::string_view group) {
  const auto ended = client_->cancel_group(group, "asked for by the program");
  if (!ended) throw job_error(ended.error());
  return ended->size();
}

void session_core::run(job_spec job, const visitor& each) {
  job.group = group_;
  const auto end = client_->run(std::make_shared<const job_spec>(std::move(job)));
  if (end.job) {
    const std::lock_guard lock{mutex_};
    last_ = end.progress;
    last_.job = end.job;
  }
  for (const auto& [name, amount] : end.progress.counted) totals_->add(name, amount);
  if (end.failure) throw job_error(end.failure, end.progress);
  visit(end, each);
}

void session_core::run(const dataset_node& last, const operation& end, const std::string& action, const visitor& each) {
  auto job = compile(last, end, action, options_.jobs);
  if (!job) throw job_error(job.error());
  run(std::move(job->spec), each);
}

void session_core::visit(const job_end& end, const visitor& each) {
  if (!end.results) return;
  // Executors keep what is to be fetched until they are told otherwise, whatever a visitor throws.
  const auto release = [this, job = end.job](const job_results* results) {
    if (!results->elsewhere.empty()) client_->release(job);
  };
  const std::unique_ptr<const job_results, decltype(release)> released{end.results.get(), release};
  auto elsewhere = end.results->elsewhere.begin();
  for (std::size_t i = 0; i < end.results->values.size(); ++i) {
    if (elsewhere == end.results->elsewhere.end() || elsewhere->partition != i) {
      each(end.results->values[i]);
      continue;
    }
    const auto bytes = client_->fetch(*elsewhere++);
    if (!bytes) throw job_error(bytes.error(), end.progress);
    each(*bytes);
  }
}

job_progress session_core::last_job() const {
  const std::lock_guard lock{mutex_};
  return last_;
}

std::vector<task_placement> session_core::last_placements() const {
  const auto job = last_job().job;
  if (!job) return {};
  auto placements = client_->placements(job);
  if (!placements) throw job_error(placements.error());
  return *std::move(placements);
}

} // namespace detail

session::session(std::shared_ptr<job_client> client, session_options options)
  : core_(std::make_shared<detail::session_core>(std::move(client), std::move(options))) {}

dataset<std::int64_t> session::range(std::int64_t begin, std::int64_t end, std::uint32_t partitions) {
  const auto count = end > begin ? static_cast<std::uint64_t>(end) - static_cast<std::uint64_t>(begin) : 0;
  auto node = source("range", core_->partitions_or_default(partitions));
  node->step = detail::make_operation<detail::range_source>(encode_value(std::pair{begin, count}));
  return {core_, std::move(node)};
}

dataset<std::string> session::text_files(const std::vector<std::string>& patterns, std::uint32_t partitions) {
  const auto files = find_input_files(patterns);
  if (!files) throw job_error(files.error());
  detail::cutting how;
  how.most = core_->options().max_partition_bytes;
  how.parallelism = core_->options().default_parallelism;
  return {core_, file_source("text_files", detail::text_lines_source(), detail::cut_files(*files, partitions, how))};
}

dataset<std::pair<std::string, std::string>> session::whole_text_files(const std::vector<std::string>& patterns,
                                                                       std::uint32_t partitions) {
  const auto files = find_input_files(patterns);
  if (!files) throw job_error(files.error());
  return {core_, file_source("whole_text_files", detail::whole_text_source(), detail::group_files(*files, partitions))};
}

accumulator session::accumulator(std::string name) const {
  if (name.empty()) throw std::invalid_argument("an accumulator needs a name");
  if (name.size() > max_accumulator_name)
    throw std::invalid_argument("the name of an accumulator has " + std::to_string(name.size()) + " bytes, at most " +
                                std::to_string(max_accumulator_name) + " are allowed");
  return {std::move(name), core_->totals()};
}

void session::run(const job& j) {
  auto [spec, held] = j.build(core_->options().jobs, std::nullopt, core_->publisher());
  core_->run(std::move(spec), [](std::string_view) {});
}

std::shared_ptr<detail::dataset_node> session::source(std::string name, std::uint32_t partitions) {
  auto node = std::make_shared<detail::dataset_node>();
  node->name = std::move(name);
  node->partitions = partitions;
  return node;
}

std::shared_ptr<detail::dataset_node> session::file_source(std::string name, operation step,
                                                           std::shared_ptr<const packed_column> arguments) {
  auto node = source(std::move(name), static_cast<std::uint32_t>(arguments->size()));
  node->step = std::move(step);
  node->arguments = std::move(arguments);
  return node;
}

} // namespace troupe
