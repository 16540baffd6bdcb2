#include <troupe/runtime/api/compile.hpp>

#include <algorithm>
#include <list>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace troupe::detail {

namespace {

/// Steps that records may go through within one task: each calls the next one, and a thread's stack has an end.
constexpr std::size_t most_steps = 2000;

/// One compilation: stages and profiles as they are found.
class compilation {
public:
  explicit compilation(const compile_options& options) : options_(options) {
    job_.max_task_failures = options.max_task_failures;
    job_.pool = options.pool;
    job_.on_profile_change = options.on_profile_change;
    job_.profiles.emplace_back();
  }

  /// Adds all stages that `last` is computed by, parents first. A lineage may be as long as a loop has rounds, so this
  /// does not call itself.
  result<void> add(const dataset_node& last, const operation& end, const std::string& action) {
    struct open_stage {
      const dataset_node* source;
      const shuffle_edge* written; ///< null: the last one
      std::string reader;          ///< of that shuffle
      std::size_t next = 0;        ///< of the shuffles that the source reads
    };
    std::vector<open_stage> open{{&source_of(last), nullptr, {}}};
    while (!open.empty()) {
      auto& stage = open.back();
      if (stage.next < stage.source->shuffles.size()) {
        const auto* const shuffle = stage.source->shuffles[stage.next++].get();
        if (stage_of_shuffle_.contains(shuffle)) continue;
        open.push_back({&source_of(*shuffle->parent), shuffle, stage.source->name});
        continue;
      }
      const auto* const written = stage.written;
      auto added = written ? add_stage(*written->parent, written->write, "write for " + stage.reader, written->buckets)
                           : add_stage(last, end, action, 0);
      if (!added) return added.error();
      if (written) stage_of_shuffle_.emplace(written, *added);
      open.pop_back();
    }
    return {};
  }

  compiled_job take() { return {std::move(job_), std::move(held_)}; }

private:
  using node_chain = std::vector<const dataset_node*>;

  static const dataset_node& source_of(const dataset_node& last) {
    const auto* node = &last;
    while (node->parent) node = node->parent.get();
    return *node;
  }

  /// Adds the stage that ends with `last`; several where a change of profile cuts it. @pre those that it reads from are
  /// there. @returns the index of the last one, or the error
  result<std::uint32_t> add_stage(const dataset_node& last, const operation& end, const std::string& action,
                                  std::uint32_t buckets) {
    const auto chain = chain_of(last);
    const auto& source = *chain.front();
    std::vector<stage_dependency> reads;
    for (const auto& shuffle : source.shuffles)
      reads.push_back({stage_of_shuffle_.at(shuffle.get()), dependency_kind::shuffle});
    const auto parts = pieces_of(cut(chain));
    std::size_t begin = 0; // behind what another dataset of the job has already, too
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (const auto known = parts[i].keeps ? stage_of_kept_.find(parts[i].keeps->id) : stage_of_kept_.end();
          known != stage_of_kept_.end()) {
        reads = {{known->second, dependency_kind::one_to_one}};
        begin = i + 1;
      }
    for (auto i = begin; i < parts.size(); ++i) {
      const auto& part = parts[i].nodes;
      const bool is_last = i + 1 == parts.size();
      const auto* const records = is_last ? nullptr : parts[i].records();
      if (!is_last && !records)
        return make_error(
            ec::invalid_argument,
            "the profile changes behind dataset '" + mark_of(part)->name +
                "', whose records cannot travel to another stage: write a troupe_serialize for their type "
                "(see serialize.hpp), or give both parts one profile");
      if (part.size() > most_steps)
        return make_error(ec::invalid_argument,
                          "dataset '" + part.back()->name + "' is " + std::to_string(part.size()) +
                              " steps away from where its records are read, and a task does " +
                              std::to_string(most_steps) +
                              " at most: cache() the records now and then, or collect() them and go on with "
                              "parallelize()");
      stage_spec stage;
      stage.dependencies = std::move(reads);
      stage.keeps = parts[i].keeps;
      stage.name = name_of(part, is_last ? action : stage.keeps ? "keep" : "hand over");
      set_profile(stage, *parts[i].marks);
      stage.tasks = source.partitions;
      stage.buckets = is_last ? buckets : 1;
      native_program program{options_.build_id, {}};
      if (i > 0) {
        program.operations.push_back(parts[i - 1].records()->read);
        if (options_.on_profile_change == profile_change::by_matching && parts[i - 1].marks != parts[i].marks) {
          stage.cut_from = carried_by(*parts[i - 1].marks);
          for (auto& mark : carried_by(*parts[i].marks)) stage.cut_from.push_back(std::move(mark));
        }
      }
      for (const auto* node : part) program.operations.push_back(node->step);
      program.operations.push_back(is_last ? end : records->write);
      stage.program = std::move(program);
      if (i == 0) stage.arguments = source.arguments;
      stage.keep_results = is_last && buckets == 0;
      stage.timeout = options_.stage_timeout;
      stage.task_timeout = options_.task_timeout;
      // Its tasks are one to one with the partitions of every dataset in it: nothing narrow here has other parts than
      // its parent, and every action computes all of them (spec BA-4).
      stage.barrier = std::any_of(part.begin(), part.end(), [](const auto* node) { return node->barrier; });
      if (stage.barrier) stage.sync_timeout = options_.sync_timeout;
      stage.indeterminate = std::any_of(part.begin(), part.end(), [](const auto* node) { return node->indeterminate; });
      if (stage.keeps) stage_of_kept_.emplace(stage.keeps->id, static_cast<std::uint32_t>(job_.stages.size()));
      job_.stages.push_back(std::move(stage));
      reads = {{static_cast<std::uint32_t>(job_.stages.size() - 1), dependency_kind::one_to_one}};
    }
    return static_cast<std::uint32_t>(job_.stages.size() - 1);
  }

  /// The nodes of the stage, source first.
  static node_chain chain_of(const dataset_node& last) {
    node_chain chain;
    for (const auto* node = &last; node; node = node->parent.get()) chain.push_back(node);
    std::reverse(chain.begin(), chain.end());
    return chain;
  }

  /// Cut where a mark is followed by one with another content. A mark covers what is before it, up to the one before,
  /// and the last one also what is behind it; where there is one alone, that is all (spec AT-3).
  std::vector<node_chain> cut(const node_chain& chain) const {
    std::vector<node_chain> parts{{}};
    if (options_.on_profile_change != profile_change::cut && options_.on_profile_change != profile_change::by_matching)
      return {chain};
    const dataset_node* mark = nullptr; // the last one so far
    node_chain since;                   // behind it
    for (const auto* node : chain) {
      since.push_back(node);
      if (!node->profile) continue;
      if (mark && !(*node->profile == *mark->profile)) parts.emplace_back();
      parts.back().insert(parts.back().end(), since.begin(), since.end());
      since.clear();
      mark = node;
    }
    parts.back().insert(parts.back().end(), since.begin(), since.end());
    return parts;
  }

  /// What becomes a stage.
  struct piece {
    node_chain nodes;
    const node_chain* marks;           ///< the part of one profile that it belongs to
    std::optional<kept_dataset> keeps; ///< its records

    /// How they pass on; null: they cannot.
    const hand_over* records() const {
      if (keeps) return &nodes.back()->kept->records();
      const auto* const mark = mark_of(nodes);
      return mark && mark->records ? &*mark->records : nullptr;
    }
  };

  /// Parts end also behind what is kept, except where they end there anyway.
  std::vector<piece> pieces_of(std::vector<node_chain> parts) {
    parts_.push_back(std::move(parts));
    std::vector<piece> pieces;
    for (const auto& part : parts_.back()) {
      pieces.push_back({{}, &part, {}});
      for (const auto* node : part) {
        if (pieces.back().keeps) pieces.push_back({{}, &part, {}});
        pieces.back().nodes.push_back(node);
        if (auto use = node->kept ? node->kept->begin_use() : std::nullopt) {
          pieces.back().keeps = use->what;
          held_.push_back(std::move(use->held));
        }
      }
    }
    // An action on what is kept reads it in a stage of its own.
    if (pieces.back().keeps) pieces.push_back({{}, &parts_.back().back(), {}});
    return pieces;
  }

  /// The last one that carries a profile; null: none does.
  static const dataset_node* mark_of(const node_chain& part) {
    const auto found = std::find_if(part.rbegin(), part.rend(), [](const auto* node) { return node->profile; });
    return found == part.rend() ? nullptr : *found;
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

  /// The profiles that the nodes carry; nodes without one have no say (spec AT-4).
  std::vector<carried_profile> carried_by(const node_chain& chain) {
    std::vector<carried_profile> carried;
    for (const auto* node : chain)
      if (node->profile) carried.push_back({add_profile(job_, *node->profile), node->name});
    return carried;
  }

  void set_profile(stage_spec& stage, const node_chain& chain) {
    auto carried = carried_by(chain);
    if (carried.empty()) return;
    stage.profile = carried.front().profile;
    const auto is_first = [&](const carried_profile& c) { return c.profile == stage.profile; };
    if (!std::all_of(carried.begin(), carried.end(), is_first)) stage.carried = std::move(carried);
  }

  const compile_options& options_;
  std::list<std::vector<node_chain>> parts_; ///< that pieces refer to
  job_spec job_;
  std::map<const shuffle_edge*, std::uint32_t> stage_of_shuffle_;
  std::map<broadcast_id, std::uint32_t> stage_of_kept_;
  std::vector<std::shared_ptr<const void>> held_;
};

} // namespace

result<compiled_job> compile(const dataset_node& last, const operation& end, const std::string& action,
                             const compile_options& options) {
  compilation work{options};
  if (auto added = work.add(last, end, action); !added) return added.error();
  auto job = work.take();
  job.spec.name = job.spec.stages.back().name;
  return job;
}

} // namespace troupe::detail
