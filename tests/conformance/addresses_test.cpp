// Which addresses a task gets, and what is refused (AD); slots on an executor that is there (TS-16).

#include <troupe/runtime/execution/command_environment.hpp>
#include <troupe/tests/conformance/profile_texts.hpp>
#include <troupe/tests/conformance/rule.hpp>

namespace troupe::conformance {
namespace {

/// An executor with many cores and the gpus `0`, `1`, …, and the one way in which rows ask it.
class gpu_executor {
public:
  gpu_executor(std::int64_t gpus, const profile_rules& rules) : gpu_executor(addresses(gpus), rules) {}
  gpu_executor(const std::vector<std::string>& gpus, const profile_rules& rules) {
    auto capacity = capacity_of("cores 64");
    capacity.custom["gpu"] = {static_cast<std::int64_t>(gpus.size()), gpus};
    book_ = ledger{capacity, rules.matching};
  }

  /// What a task that takes so much would hold.
  std::optional<allotment> choose(const std::string& gpu) const { return book_.choose(profile_of("; gpu " + gpu)); }
  /// Takes it, and tells.
  std::string take(const std::string& gpu) {
    const auto chosen = choose(gpu);
    if (chosen)
      if (auto ok = book_.acquire(*chosen); !ok) return refused(ok.error());
    return to_text(chosen);
  }
  /// The same for one after another, separated by bars.
  std::string take_each(std::initializer_list<const char*> gpus) {
    std::string text;
    for (const auto* gpu : gpus) text += (text.empty() ? "" : " | ") + take(gpu);
    return text;
  }
  /// How many tasks of this size fit one after another, up to a limit.
  int fill(const std::string& gpu, int most = 100'000) {
    const auto profile = profile_of("; gpu " + gpu);
    int tasks = 0;
    for (auto next = book_.choose(profile); next && tasks < most; next = book_.choose(profile)) {
      if (!book_.acquire(*next)) return -1;
      ++tasks;
    }
    return tasks;
  }
  ledger& book() { return book_; }
  std::string free(const std::string& address) const { return troupe::to_string(book_.free_of("gpu", address)); }

private:
  static std::vector<std::string> addresses(std::int64_t count) {
    std::vector<std::string> all;
    for (std::int64_t i = 0; i < count; ++i) all.push_back(std::to_string(i));
    return all;
  }
  ledger book_;
};

allotment on_gpu(const std::string& address, std::string_view amount) {
  allotment a;
  a.resources["gpu"] = {{address, *parse_share(amount)}};
  return a;
}

std::string without_custom_resources(const profile_rules& rules) {
  return to_text(gpu_executor{2, rules}.book().choose(profile_of("; cpus 1")));
}

std::string three_of_addresses_in_another_order(const profile_rules& rules) {
  return gpu_executor{{"2", "10", "1", "0"}, rules}.take("3");
}

std::string whole_beside_a_part(const profile_rules& rules) {
  return gpu_executor{3, rules}.take_each({"0.5", "2", "1"});
}

std::string parts_that_do_not_add_up(const profile_rules& rules) {
  return gpu_executor{2, rules}.take_each({"0.6", "0.6", "0.8"});
}

std::string part_beside_a_fuller_one(const profile_rules& rules) {
  gpu_executor e{2, rules};
  if (!e.book().acquire(on_gpu("1", "0.5"))) return "refused";
  return e.take_each({"0.5", "1"});
}

std::string more_than_there_is(const profile_rules& rules) {
  gpu_executor e{2, rules};
  const auto none = e.take("3");
  return none + " | " + e.free("0") + ", " + e.free("1");
}

std::string choose_take_give_back(const profile_rules& rules) {
  gpu_executor e{2, rules};
  const auto chosen = e.choose("0.5");
  auto out = e.free("0");
  if (!e.book().acquire(*chosen)) return "refused";
  out += ", " + e.free("0");
  if (!e.book().release(*chosen)) return "refused";
  return out + ", " + e.free("0");
}

std::string two_resources_of_which_one_lacks(const profile_rules& rules) {
  auto capacity = capacity_of("cores 4, gpu 1, fpga 1");
  ledger book{capacity, rules.matching};
  const auto first = book.choose(profile_of("; fpga 1"));
  if (!book.acquire(*first)) return "refused";
  return to_text(book.choose(profile_of("; gpu 1, fpga 1"))) + ", gpu free " + to_string(book.free_of("gpu", "0"));
}

std::string fractions_of_one(const profile_rules& rules) {
  std::string out;
  for (const int n : {3, 9, 93, 353, 1409, 39'999})
    if (const auto tasks = gpu_executor{1, rules}.fill("1/" + std::to_string(n)); tasks != n)
      out += "1/" + std::to_string(n) + " fits " + std::to_string(tasks) + " times; ";
  return out.empty() ? "n tasks of 1/n" : out;
}

std::string decimal_fractions_of_one(const profile_rules& rules) {
  gpu_executor ninths{1, rules};
  return std::to_string(ninths.fill("0.1")) + " of 0.1, " +
         std::to_string(gpu_executor{1, rules}.fill("0.111111111111"));
}

std::string pairs_that_add_up(const profile_rules& rules) {
  return gpu_executor{2, rules}.take_each({"0.19", "0.81", "0.44", "0.56"});
}

std::string worked_sequence(const profile_rules& rules) {
  gpu_executor e{4, rules};
  auto out = e.take_each({"0.2", "0.2", "2"});
  if (!e.book().release(on_gpu("0", "0.1")) || !e.book().release(on_gpu("2", "0.8"))) return "refused";
  out += " | " + e.take_each({"0.50002", "1", "0.2"});
  return out + " | left " + e.free("0") + ", " + e.free("1") + ", " + e.free("2") + ", " + e.free("3");
}

std::string text_of(const result<void>& answer) { return answer ? "done" : refused(answer.error()); }

std::string take_unknown(const profile_rules& rules) {
  return text_of(gpu_executor{2, rules}.book().acquire(on_gpu("7", "1")));
}
std::string take_too_much(const profile_rules& rules) {
  gpu_executor e{2, rules};
  if (!e.book().acquire(on_gpu("1", "1"))) return "refused";
  return text_of(e.book().acquire(on_gpu("1", "1")));
}
std::string give_back_unknown(const profile_rules& rules) {
  return text_of(gpu_executor{2, rules}.book().release(on_gpu("7", "1")));
}
std::string give_back_too_much(const profile_rules& rules) {
  return text_of(gpu_executor{2, rules}.book().release(on_gpu("1", "1")));
}
std::string take_another_resource(const profile_rules& rules) {
  auto other = on_gpu("0", "1");
  other.resources["fpga"] = other.resources.at("gpu");
  other.resources.erase("gpu");
  return text_of(gpu_executor{2, rules}.book().acquire(other));
}

std::string shared_by_profiles(const profile_rules& rules) {
  gpu_executor e{4, rules};
  const auto large = e.fill("0.7");
  const auto too_large = e.fill("0.4");
  return std::to_string(large) + " of 0.7, " + std::to_string(too_large) + " of 0.4, " + std::to_string(e.fill("0.3")) +
         " of 0.3";
}

/// What CUDA_VISIBLE_DEVICES says to a command with these addresses of the executor's gpus.
std::string devices_of_a_command(const std::vector<std::pair<std::string, std::vector<task_address>>>& addresses) {
  std::string found = "not set";
  for (const auto& variable : make_command_environment({{"CUDA_VISIBLE_DEVICES", "0,1,2,3"}}, {}, {},
                                                       {share::whole(1), addresses, {}}, true, {}, {}))
    if (variable.starts_with("CUDA_VISIBLE_DEVICES=")) found = variable;
  return found;
}

std::string devices_of_commands(const profile_rules&) {
  const task_address third{"3", 3, share::whole(1)};
  return devices_of_a_command({{"gpu", {third}}}) + " | " + devices_of_a_command({});
}

const table address_rules_rows{
    "address_rules",
    {
        {"AD-1", "a task of cpus alone", without_custom_resources, same("nothing")},
        {"AD-2", "3 of the gpus 2, 10, 1, 0", three_of_addresses_in_another_order,
         differs("gpu 0:1, gpu 1:1, gpu 10:1", "gpu 2:1, gpu 10:1, gpu 1:1")},
        {"AD-3", "0.5, then 2, then 1 of three gpus", whole_beside_a_part,
         same("gpu 0:0.5 | gpu 1:1, gpu 2:1 | does not fit")},
        {"AD-4", "0.6, 0.6 and 0.8 of two gpus", parts_that_do_not_add_up,
         same("gpu 0:0.6 | gpu 1:0.6 | does not fit")},
        {"AD-4", "0.5 where gpu 1 has half left", part_beside_a_fuller_one,
         differs("gpu 0:0.5 | does not fit", "gpu 1:0.5 | gpu 0:1")},
        {"AD-5", "3 of two gpus", more_than_there_is, same("does not fit | 1, 1")},
        {"AD-6", "what is free before taking, after, and after giving back", choose_take_give_back, same("1, 0.5, 1")},
        {"AD-6", "a gpu and an fpga, which is taken", two_resources_of_which_one_lacks,
         same("does not fit, gpu free 1")},
        {"AD-7", "1/n for several n", fractions_of_one, same("n tasks of 1/n")},
        {"AD-7", "0.1, and twelve digits of 1/9", decimal_fractions_of_one, same("10 of 0.1, 9")},
        {"AD-8", "0.19 + 0.81 and 0.44 + 0.56", pairs_that_add_up,
         same("gpu 0:0.19 | gpu 0:0.81 | gpu 1:0.44 | gpu 1:0.56")},
        {"AD-9", "0.2, 0.2, 2; less 0.1 of 0 and 0.8 of 2; 0.50002, 1, 0.2", worked_sequence,
         same("gpu 0:0.2 | gpu 0:0.2 | gpu 1:1, gpu 2:1 | gpu 0:0.50002 | gpu 3:1 | gpu 2:0.2 | "
              "left 0.19998, 0, 0.6, 0")},
        {"AD-10", "taking an unknown address", take_unknown, same("refused: …gpu…7…does not exist…")},
        {"AD-10", "taking what is taken", take_too_much, same("refused: …gpu…1…cannot take 1, only 0 free")},
        {"AD-10", "giving back an unknown address", give_back_unknown, same("refused: …gpu…7…does not exist…")},
        {"AD-10", "giving back what is free", give_back_too_much, same("refused: …gpu…1…cannot give back 1, only 0 …")},
        {"AD-11", "taking of a resource that is not there", take_another_resource,
         same("refused: …fpga…does not exist…")},
        {"AD-12", "0.5 where gpu 1 has half left, then a whole one", part_beside_a_fuller_one,
         differs("gpu 0:0.5 | does not fit", "gpu 1:0.5 | gpu 0:1")},
        {"AD-13", "four gpus filled with 0.7, then 0.4, then 0.3", shared_by_profiles,
         same("4 of 0.7, 0 of 0.4, 4 of 0.3")},
        {"AD-14", "a command with gpu 3, one without", devices_of_commands,
         same("CUDA_VISIBLE_DEVICES=3 | CUDA_VISIBLE_DEVICES=")},
    }};

/// Slots on an executor with 20 cores and 4 gpus.
std::string slots_on_twenty_cores(const std::string& gpu, const profile_rules& rules) {
  const auto profile = profile_of("; cpus 1, gpu " + gpu);
  const auto capacity = capacity_of("cores 20, gpu 4");
  const auto all = slots_of(capacity, profile).slots;
  const auto free = ledger{capacity, rules.matching}.free_slots(profile);
  return all == free ? std::to_string(all) : std::to_string(all) + ", but free " + std::to_string(free);
}

const table slots_of_executors_rows{"slots_of_executors",
                                    slots_on_twenty_cores,
                                    {
                                        {"TS-16", "0.2", same("20")},
                                        {"TS-16", "0.3", same("12")},
                                        {"TS-16", "0.4", same("8")},
                                        {"TS-16", "0.5", same("8")},
                                        {"TS-16", "0.8", same("4")},
                                        {"TS-16", "1", same("4")},
                                        {"TS-16", "2", same("2")},
                                        {"TS-16", "3", same("1")},
                                        {"TS-16", "4", same("1")},
                                    }};

} // namespace
} // namespace troupe::conformance
