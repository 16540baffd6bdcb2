#include <troupe/runtime/execution/task_context.hpp>

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

thread_local task_context* current_context = nullptr;

} // namespace

std::uint64_t task_resources::memory() const noexcept {
  for (const auto& [name, amount] : amounts)
    if (name == resource_names::memory) return static_cast<std::uint64_t>(amount.ceil());
  return 0;
}

task_context& task_context::current() {
  if (!current_context) throw std::logic_error("task_context::current() was called outside a task");
  return *current_context;
}

task_context* task_context::find_current() noexcept { return current_context; }

task_context::task_context(const environment& env)
  : stage(env.stage->stage), stage_name(env.stage->name), tasks(env.stage->tasks), executor(env.executor),
    buckets(env.stage->buckets), keeps(env.stage->keeps), level(env.stage->level), env_(env) {}

task_context::~task_context() {
  if (current_context == this) current_context = outer_;
}

void task_context::begin(partition_index of_partition, attempt_number of_attempt, const task_batch* batch,
                         std::uint32_t position) {
  if (current_context != this) {
    outer_ = current_context;
    current_context = this;
  }
  partition = of_partition;
  attempt = of_attempt;
  batch_ = batch;
  position_ = position;
  round_ = 0;
  map_output_.reset();
  counted_.clear();
}

const std::vector<task_address>& task_context::addresses(std::string_view resource) const {
  static const std::vector<task_address> none;
  if (env_.resources) {
    for (const auto& [name, list] : env_.resources->addresses) {
      if (name == resource) return list;
    }
  }
  return none;
}

share task_context::amount(std::string_view resource) const noexcept {
  if (env_.resources)
    for (const auto& [name, amount] : env_.resources->amounts)
      if (name == resource) return amount;
  return {};
}

share task_context::cpus() const noexcept { return env_.resources ? env_.resources->cpus : share{}; }

bool task_context::cancelled() const noexcept {
  return env_.cancelled && env_.cancelled->load(std::memory_order_relaxed);
}

void task_context::read_shuffle(std::size_t index, const std::function<void(std::string_view)>& each) {
  const auto& inputs = env_.stage->inputs;
  if (index >= inputs.size())
    throw std::logic_error("stage '" + env_.stage->name + "' has " + std::to_string(inputs.size()) +
                           " shuffle inputs; input " + std::to_string(index) + " was asked for");
  if (!env_.shuffles) throw std::logic_error("this executor reads no shuffle inputs");
  env_.shuffles->read(inputs[index], partition, each);
}

void task_context::read_partition(std::size_t index, const std::function<void(std::string_view)>& each) {
  const auto count = batch_ ? batch_->inputs.size() : 0;
  if (index >= count)
    throw std::logic_error("stage '" + env_.stage->name + "' reads " + std::to_string(count) +
                           " stages task by task; input " + std::to_string(index) + " was asked for");
  if (!env_.shuffles) throw std::logic_error("this executor reads no inputs");
  const auto& input = batch_->inputs[index];
  // The batch came from outside.
  if (position_ >= input.endpoint_of_task.size() || position_ >= input.attempt_of_task.size() ||
      input.endpoint_of_task[position_] >= input.endpoints.size())
    throw std::runtime_error("the batch does not say where the input of partition " + std::to_string(partition) +
                             " lies");
  env_.shuffles->read_partition({input.endpoints[input.endpoint_of_task[position_]], input.stage, partition,
                                 input.attempt_of_task[position_], input.cache},
                                0, each);
}

std::shared_ptr<const void> task_context::broadcast(const broadcast_reference& which, std::type_index type,
                                                    const broadcast_source::decoder& decode) const {
  if (!env_.broadcasts) throw std::logic_error("this executor reads no broadcasts");
  return env_.broadcasts->get(which, type, decode);
}

std::uint64_t task_context::memory_per_buffer() const noexcept {
  const bool both = buckets > 0 && !env_.stage->inputs.empty();
  return both ? env_.memory / 2 : env_.memory;
}

std::string task_context::file_name() const {
  return std::to_string(stage.value) + "." + std::to_string(partition) + "." + std::to_string(attempt);
}

std::optional<record_spill::options> task_context::spill_options(std::size_t page_content) const {
  if (!env_.directories) return std::nullopt;
  return record_spill::options{env_.directories, file_name(), env_.compression, page_content};
}

bucket_writer& task_context::map_output() {
  if (buckets == 0)
    throw std::logic_error("stage '" + env_.stage->name + "' is no shuffle map stage: it has no buckets");
  if (!map_output_) {
    bucket_writer::options options;
    options.buckets = buckets;
    options.memory = memory_per_buffer();
    options.compression = env_.compression;
    options.directories = env_.directories;
    options.name = file_name();
    map_output_.emplace(std::move(options));
  }
  return *map_output_;
}

void task_context::set_map_output(const std::vector<std::string>& by_bucket) {
  if (has_map_output()) throw std::logic_error("set_map_output was called twice by one attempt");
  auto& output = map_output();
  if (by_bucket.size() != buckets)
    throw std::logic_error("a map output of " + std::to_string(by_bucket.size()) + " buckets was handed over; stage '" +
                           env_.stage->name + "' has " + std::to_string(buckets));
  for (std::uint32_t b = 0; b < buckets; ++b) output.write_whole(b, by_bucket[b]);
}

void task_context::count(std::string_view accumulator, std::int64_t amount) {
  // Few of them: a list is faster than any table.
  const auto known = std::ranges::find(counted_, accumulator, &accumulated::accumulator);
  if (known != counted_.end()) {
    known->amount = add_wrapping(known->amount, amount);
    return;
  }
  if (accumulator.empty() || accumulator.size() > max_accumulator_name)
    throw std::length_error("the name of an accumulator has " + std::to_string(accumulator.size()) + " bytes; 1 to " +
                            std::to_string(max_accumulator_name) + " are allowed");
  if (counted_.size() == max_accumulators)
    throw std::length_error("this task counts in more than " + std::to_string(max_accumulators) + " accumulators");
  counted_.push_back({std::string{accumulator}, amount});
}

const packed_column& task_context::gang_of(std::string_view call) const {
  if (!env_.stage->gang)
    throw std::logic_error(std::string{call} + "() was called in stage '" + env_.stage->name +
                           "', which is no barrier stage: make it one with dataset::barrier(), stage::barrier() or "
                           "`barrier: true` in the job file");
  return *env_.stage->gang;
}

gang_gate::texts task_context::synchronize(std::string_view call, sync_kind kind, std::string_view text) {
  gang_of(call);
  if (find_current() != this)
    throw std::logic_error(std::string{call} + "() was called on another thread than that of the task");
  if (!env_.gang) throw std::logic_error("this executor has no gate that a gang could wait at");
  return env_.gang->wait({stage, env_.stage_attempt, partition, attempt, round_++, kind, std::string{text}},
                         env_.cancelled);
}

void task_context::barrier() { synchronize("barrier", sync_kind::barrier, {}); }

std::vector<std::string> task_context::all_gather(std::string_view text) {
  if (text.size() > max_gather_text)
    throw std::length_error("all_gather() was called with " + std::to_string(text.size()) + " bytes, at most " +
                            std::to_string(max_gather_text) + " are allowed");
  const auto texts = synchronize("all_gather", sync_kind::all_gather, text);
  // The release came from outside.
  if (!texts || texts->size() != tasks)
    throw barrier_failure("all_gather() got " + std::to_string(texts ? texts->size() : 0) + " texts of " +
                          std::to_string(tasks) + " tasks");
  std::vector<std::string> all;
  all.reserve(texts->size());
  for (std::size_t i = 0; i < texts->size(); ++i) all.emplace_back((*texts)[i]);
  return all;
}

const packed_column& task_context::gang_addresses() const { return gang_of("gang_addresses"); }

block_content task_context::take_map_output() {
  auto content = map_output_->finish();
  map_output_.reset();
  return content;
}

} // namespace troupe
