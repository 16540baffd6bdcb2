#include <troupe/runtime/api/compile.hpp>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace troupe::detail {

namespace {

/// One compilation: stages and profiles as they are found.
class compilation {
public:
  explicit compilation(const compile_options& options) : options_(options) {
    job_.max_task_failures = options.max_task_failures;
    job_.pool = options.pool;
    job_.on_profile_change = options.on_profile_change;
    job_.profiles.emplace_back();
  }

  /// Adds the stage that ends with `last`, after those that it reads from.
  /// @returns its index, or the error
  result<std::uint32_t> add_stage(const dataset_node& last, const operation& end, const std::string& action,
                                  std::uint32_t buckets) {
    const auto chain = chain_of(last);
    const auto& source = *chain.front();
    stage_spec stage;
    for (const auto& shuffle : source.shuffles) {
      const auto parent = add_shuffle(shuffle, source.name);
      if (!parent) return parent.error();
      stage.dependencies.push_back({*parent, dependency_kind::shuffle});
    }
    stage.name = name_of(chain, action);
    set_profile(stage, chain);
    stage.tasks = source.partitions;
    stage.buckets = buckets;
    native_program program{options_.build_id, {}};
    for (const auto* node : chain) program.operations.push_back(node->step);
    program.operations.push_back(end);
    stage.program = std::move(program);
    stage.arguments = source.arguments;
    stage.keep_results = buckets == 0;
    stage.timeout = options_.stage_timeout;
    stage.task_timeout = options_.task_timeout;
    // Its tasks are one to one with the partitions of every dataset in it: nothing narrow here has other parts than its
    // parent, and every action computes all of them (spec BA-4).
    stage.barrier = std::any_of(chain.begin(), chain.end(), [](const auto* node) { return node->barrier; });
    if (stage.barrier) stage.sync_timeout = options_.sync_timeout;
    job_.stages.push_back(std::move(stage));
    return static_cast<std::uint32_t>(job_.stages.size() - 1);
  }

  job_spec take() { return std::move(job_); }

private:
  using node_chain = std::vector<const dataset_node*>;

  /// The nodes of the stage, source first.
  static node_chain chain_of(const dataset_node& last) {
    node_chain chain;
    for (const auto* node = &last; node; node = node->parent.get()) chain.push_back(node);
    std::reverse(chain.begin(), chain.end());
    return chain;
  }

  /// The name that the author gave last, else the operations.
  static std::string name_of(const node_chain& chain, const std::string& action) {
    for (auto node = chain.rbegin(); node != chain.rend(); ++node)
      if ((*node)->named) return (*node)->name;
    constexpr std::size_t shown = 6;
    std::string name;
    for (std::size_t i = 0; i < chain.size(); ++i) {
      if (chain.size() > shown && i == shown / 2) {
        name += "…, ";
        i = chain.size() - shown / 2;
      }
      name += chain[i]->name + ", ";
    }
    return name + action;
  }

  result<std::uint32_t> add_shuffle(const std::shared_ptr<const shuffle_edge>& shuffle, const std::string& reader) {
    const auto known = stage_of_shuffle_.find(shuffle.get());
    if (known != stage_of_shuffle_.end()) return known->second;
    auto stage = add_stage(*shuffle->parent, shuffle->write, "write for " + reader, shuffle->buckets);
    if (stage) stage_of_shuffle_.emplace(shuffle.get(), *stage);
    return stage;
  }

  /// The profile that the nodes carry; nodes without one have no say (spec AT-4).
  void set_profile(stage_spec& stage, const node_chain& chain) {
    std::vector<carried_profile> carried;
    for (const auto* node : chain)
      if (node->profile) carried.push_back({add_profile(job_, *node->profile), node->name});
    if (carried.empty()) return;
    stage.profile = carried.front().profile;
    const auto is_first = [&](const carried_profile& c) { return c.profile == stage.profile; };
    if (!std::all_of(carried.begin(), carried.end(), is_first)) stage.carried = std::move(carried);
  }

  const compile_options& options_;
  job_spec job_;
  std::map<const shuffle_edge*, std::uint32_t> stage_of_shuffle_;
};

} // namespace

result<job_spec> compile(const dataset_node& last, const operation& end, const std::string& action,
                         const compile_options& options) {
  compilation work{options};
  if (const auto stage = work.add_stage(last, end, action, 0); !stage) return stage.error();
  auto job = work.take();
  job.name = job.stages.back().name;
  return job;
}

} // namespace troupe::detail
