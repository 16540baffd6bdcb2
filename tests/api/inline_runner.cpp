#include "inline_runner.hpp"

#include <exception>
#include <utility>

#include <troupe/runtime/dag/accumulator_book.hpp>
#include <troupe/runtime/execution/function_table.hpp>
#include <troupe/runtime/execution/native_plan.hpp>
#include <troupe/runtime/execution/task_context.hpp>

namespace troupe::test {

namespace {

constexpr executor_id the_executor{1};

/// Map outputs by stage and partition.
using map_outputs = std::map<stage_id, std::vector<block_content>>;

class local_shuffles : public shuffle_source {
public:
  explicit local_shuffles(const map_outputs& outputs) : outputs_(outputs) {}
  void read(const shuffle_input& input, std::uint32_t bucket,
            const std::function<void(std::string_view)>& each) override {
    for (const auto& output : outputs_.at(input.shuffle)) read_pages(output.pages.at(bucket), each);
  }
  void read_partition(const partition_place& what, std::uint32_t,
                      const std::function<void(std::string_view)>& each) override {
    read_pages(outputs_.at(what.stage).at(what.partition).pages.at(0), each);
  }
  void forget(executor_id) override {}

private:
  template <class Pages>
  static void read_pages(const Pages& pages, const std::function<void(std::string_view)>& each) {
    for (const auto& page : pages) {
      page_reader reader{page};
      const auto content = reader.next();
      if (!content) throw std::runtime_error(content.error().message);
      each(*content);
    }
  }

  const map_outputs& outputs_;
};

/// What one task of `profile` holds on an executor with enough of everything: addresses `0`, `1`, …
allotment holding_of(const resource_profile& profile) {
  allotment holding;
  for (const auto& [name, amount] : profile.task) {
    if (name == resource_names::cpus)
      holding.cpus = amount;
    else
      for (std::int64_t i = 0; i < amount.ceil(); ++i)
        holding.resources[name].push_back({std::to_string(i), std::min(amount, share::whole(1))});
  }
  return holding;
}

task_resources resources_of(const allotment& holding) {
  task_resources resources;
  resources.cpus = holding.cpus;
  for (const auto& [name, shares] : holding.resources) {
    auto& list = resources.addresses.emplace_back(name, std::vector<task_address>{}).second;
    for (const auto& s : shares) list.push_back({s.address, static_cast<int>(list.size()), s.amount});
  }
  return resources;
}

} // namespace

job_end inline_runner::run(std::shared_ptr<const job_spec> job) {
  if (const auto valid = validate(*job); !valid) {
    job_end refused;
    refused.failure = valid.error();
    return refused;
  }
  jobs.push_back(job);
  const job_id id{jobs.size()};
  return finished_.emplace(id, execute(id, *job)).first->second.end;
}

inline_runner::finished_job inline_runner::execute(job_id id, const job_spec& job) {
  finished_job done;
  done.end.job = id;
  done.end.progress.name = job.name;
  auto results = std::make_shared<job_results>();
  map_outputs outputs;
  accumulator_book accumulators;
  local_shuffles shuffles{outputs};
  const auto first_stage = next_stage_;
  next_stage_ += job.stages.size();

  for (std::size_t s = 0; s < job.stages.size(); ++s) {
    const auto& spec = job.stages[s];
    stage_install install;
    install.stage = stage_id{first_stage + s};
    install.name = spec.name;
    install.tasks = spec.tasks;
    install.buckets = spec.buckets;
    for (const auto& dependency : spec.dependencies)
      if (dependency.kind == dependency_kind::shuffle) {
        shuffle_input input;
        input.shuffle = stage_id{first_stage + dependency.stage};
        install.inputs.push_back(std::move(input));
      }

    const auto holding = holding_of(job.profiles[spec.profile]);
    const auto resources = resources_of(holding);
    task_context::environment environment;
    environment.executor = the_executor;
    environment.resources = &resources;
    environment.shuffles = &shuffles;
    environment.broadcasts = &broadcasts_;
    environment.stage = &install;

    stage_progress progress;
    progress.stage = install.stage;
    progress.name = spec.name;
    progress.tasks = spec.tasks;
    const auto fail = [&](error why) {
      done.end.failure = std::move(why);
      done.end.progress.state = job_state::failed;
      done.end.progress.counted = accumulators.totals();
      done.end.progress.stages.push_back(progress);
      return std::move(done);
    };
    const auto plan = native_plan::make(std::get<native_program>(spec.program), function_table::instance());
    if (!plan) return fail(plan.error());
    for (partition_index p = 0; p < spec.tasks; ++p) {
      task_context context{environment};
      task_batch batch;
      for (const auto& dependency : spec.dependencies)
        if (dependency.kind == dependency_kind::one_to_one && job.stages[dependency.stage].is_shuffle_map())
          batch.inputs.push_back({stage_id{first_stage + dependency.stage}, {}, {{}}, {0}, {0}});
      context.begin(p, 0, &batch, 0);
      std::string value;
      try {
        value = plan->run(context, spec.arguments ? (*spec.arguments)[p] : std::string_view{});
      } catch (const std::exception& e) {
        return fail(
            make_error(ec::task_failed, "stage '" + spec.name + "', partition " + std::to_string(p) + ": " + e.what()));
      }
      ++progress.done;
      std::vector<std::string> names;
      std::vector<counted_amount> counted;
      for (auto& [name, amount] : context.take_counted()) {
        counted.push_back({0, static_cast<std::uint32_t>(names.size()), amount});
        names.push_back(name);
      }
      accumulators.accept(static_cast<std::uint32_t>(s), p, counted, names);
      most_result = std::max(most_result, value.size());
      task_placement placement;
      placement.stage = install.stage;
      placement.partition = p;
      placement.executor = the_executor;
      placement.host = "here";
      placement.holding = holding;
      done.placements.push_back(std::move(placement));
      if (spec.is_shuffle_map()) {
        outputs[install.stage].push_back(context.take_map_output());
      } else if (s + 1 == job.stages.size() && spec.keep_results) {
        if (value.size() > max_inline_result) {
          result_location where;
          where.partition = p;
          where.stage = install.stage;
          where.bytes = value.size();
          results->elsewhere.push_back(where);
          stored_[{install.stage, p}] = std::move(value);
          value.clear();
        }
        results->values.push_back(value);
      }
    }
    done.end.progress.stages.push_back(std::move(progress));
  }
  done.end.progress.counted = accumulators.totals();
  done.end.progress.state = job_state::succeeded;
  done.end.results = std::move(results);
  return done;
}

result<std::string> inline_runner::fetch(const result_location& where) {
  const auto found = stored_.find({where.stage, where.partition});
  if (found == stored_.end()) return make_error(ec::not_found, "no such result");
  return found->second;
}

void inline_runner::release(job_id job) {
  for (const auto& where : finished_.at(job).end.results->elsewhere) stored_.erase({where.stage, where.partition});
}

result<std::vector<task_placement>> inline_runner::placements(job_id job) { return finished_.at(job).placements; }

result<void> inline_runner::cancel(job_id, std::string_view) { return {}; } // a job has ended when submit returns

result<void> inline_runner::cancel_stage(job_id, std::uint32_t, std::string_view) { return {}; }

result<std::vector<job_id>> inline_runner::cancel_group(std::string_view group, std::string_view) {
  for (const auto& job : jobs)
    if (job->group == group) return std::vector<job_id>{};
  return make_error(ec::not_found, "no such group");
}

result<broadcast_reference> inline_runner::publish(const broadcast_content& content) {
  const broadcast_id id{1, next_broadcast_++};
  broadcasts_.values.emplace(id, published::entry{content.encode(), nullptr});
  most_broadcasts_ = std::max(most_broadcasts_, broadcasts_.values.size());
  return broadcast_reference{id, {}, 0};
}

void inline_runner::withdraw(broadcast_id id) { broadcasts_.drop(id); }

std::shared_ptr<const void> inline_runner::published::get(const broadcast_reference& which, std::type_index,
                                                          const decoder& decode) {
  const auto known = values.find(which.id);
  if (known == values.end()) throw std::runtime_error("the broadcast was withdrawn");
  auto& [bytes, value] = known->second;
  if (!value) value = decode(bytes);
  return value;
}

} // namespace troupe::test
