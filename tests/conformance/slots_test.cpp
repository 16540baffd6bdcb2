// How many tasks an executor runs at once, what limits them, and what stays idle (SL).

#include <troupe/tests/conformance/profile_texts.hpp>
#include <troupe/tests/conformance/rule.hpp>

namespace troupe::conformance {
namespace {

std::string slots_text(const slot_count& count) { return std::to_string(count.slots) + " " + count.limiting_resource; }

/// Slots of a profile that is registered beside `defaults`.
std::string slots_beside(std::string_view defaults, std::string_view text, const profile_rules& rules) {
  auto registry = registry_with(defaults, rules);
  const auto known = registry.register_profile(profile_of(text));
  return known ? slots_text(registry.find(known->profile)->slots) : refused(known.error());
}

std::string slots_with_known_cores(const std::string& text, const profile_rules& rules) {
  auto configured = rules;
  configured.cores_configured = true;
  return slots_beside("cores 1; cpus 1", text, configured);
}

const table known_cores_rows{"known_cores",
                             slots_with_known_cores,
                             {
                                 {"SL-1", "cores 4; cpus 2", in_compatible("2 cpus")},
                                 {"SL-3", "cores 7; cpus 2", in_compatible("3 cpus")},
                                 {"SL-3", "; cpus 2", in_compatible("refused: …cpus…")},
                                 {"SL-5", "cores 4, gpu 2; cpus 1, gpu 1", in_compatible("2 gpu")},
                                 {"SL-5", "cores 8, gpu 1; cpus 1, gpu 0.25", in_compatible("4 gpu")},
                                 {"SL-5", "cores 4, gpu 4; cpus 1, gpu 1", in_compatible("4 cpus")},
                                 {"SL-5", "cores 1, gpu 2; cpus 1, gpu 1", in_compatible("1 cpus")},
                                 {"SL-5", "cores 16, gpu 4; cpus 1, gpu 0.3", in_compatible("12 gpu")},
                                 {"SL-5", "cores 10, fpga 3, gpu 2; fpga 2, gpu 0.5", in_compatible("1 fpga")},
                                 {"SL-5", "cores 70, gpu 7; cpus 2, gpu 0.5", in_compatible("14 gpu")},
                                 {"SL-5", "cores 80, gpu 9; cpus 3, gpu 2", in_compatible("4 gpu")},
                                 {"SL-5", "cores 10, gpu 1; cpus 1, gpu 0.1", in_compatible("10 cpus")},
                                 {"SL-5", "cores 20, gpu 2; cpus 2, gpu 0.2", in_compatible("10 cpus")},
                                 {"SL-5", "cores 1, gpu 4; cpus 1, gpu 3", in_compatible("1 cpus")},
                                 {"SL-5", "cores 4, gpu 1; gpu 1", in_compatible("1 gpu")},
                                 {"SL-7", "cores 4;", in_compatible("4 cpus")},
                                 {"SL-8", "cores 99, gpu 3; gpu 0.3", in_compatible("9 gpu")},
                             }};

std::string slots_of_task_only(const std::string& text, const profile_rules& rules) {
  auto fixed = rules;
  fixed.cores_configured = true;
  fixed.dynamic_allocation = false;
  const auto border = text.find('|');
  return slots_beside(text.substr(0, border), text.substr(border + 1), fixed);
}

const table task_only_slots_rows{"task_only_slots",
                                 slots_of_task_only,
                                 {
                                     {"SL-5", "cores 2, gpu 2; cpus 1 | ; gpu 1", in_compatible("2 cpus")},
                                     {"SL-5", "cores 2, gpu 2; cpus 1 | ; gpu 2", in_compatible("1 gpu")},
                                     {"SL-5", "cores 10, gpu 1; cpus 1 | ; gpu 0.6", in_compatible("1 gpu")},
                                 }};

std::string slots_on_a_standalone_cluster(const std::string& text, const profile_rules& rules) {
  auto standalone = rules;
  standalone.master = master_kind::local_cluster;
  return slots_beside("cores 1; cpus 1", text, standalone);
}

const table unknown_cores_rows{"unknown_cores",
                               slots_on_a_standalone_cluster,
                               {
                                   {"SL-2", "cores 4; cpus 1", in_compatible("4 cpus")},
                                   {"SL-4", "cores 4, gpu 8; cpus 1, gpu 1", in_compatible("4 cpus")},
                                   {"SL-7", ";", in_compatible("1 cpus")},
                               }};

std::string build_error(const std::string& text, const profile_rules&) {
  const auto profile = built(text);
  return profile ? "no error" : refused(profile.error());
}

const table impossible_tasks_rows{"impossible_tasks",
                                  build_error,
                                  {
                                      {"SL-3", "cores 1; cpus 2", same("refused: …cores…")},
                                      {"SL-3", "cores 2; cpus 2", same("no error")},
                                      {"SL-5", "cores 4, gpu 1; gpu 2", same("refused: …gpu…")},
                                      {"SL-5", "cores 4, gpu 2; gpu 2", same("no error")},
                                      {"SL-6", "cores 4, fpga 1; gpu 1, npu 1, fpga 1", same("refused: …gpu, npu…")},
                                  }};

std::string slots_on_a_real_executor(const profile_rules&) {
  return slots_text(slots_of(capacity_of("cores 2, gpu 4"), profile_of("cores 8, gpu 4; cpus 1, gpu 1")));
}

std::string notes_of(const std::string& text, const profile_rules& rules) {
  auto configured = rules;
  configured.cores_configured = true;
  auto registry = registry_with("cores 1; cpus 1", configured);
  const auto known = registry.register_profile(profile_of(text));
  if (!known) return refused(known.error());
  std::string notes;
  for (const auto& note : known->notes) notes += (notes.empty() ? "" : "; ") + note;
  return notes;
}

const table idle_notes_rows{
    "idle_notes",
    notes_of,
    {
        {"SL-10", "cores 4, gpu 2; cpus 1, gpu 1", in_compatible("2 of 4 cores stay idle: …")},
        {"SL-10", "cores 4, gpu 4; cpus 1, gpu 1", in_compatible("")},
        {"SL-11", "cores 10, gpu 9; cpus 1, gpu 1",
         in_compatible("1 of 10 cores stay idle: an executor of this profile runs 9 tasks at once, limited by gpu")},
        {"SL-11", "cores 10, fpga 3, gpu 2; cpus 1, fpga 2, gpu 0.5", in_compatible("9 of 10 cores …limited by fpga…")},
        {"SL-12", "cores 5, gpu 1; cpus 1, gpu 0.1",
         in_compatible("0.5 of 1 gpu stay idle: an executor of this profile runs 5 tasks at once, limited by cpus")},
        {"SL-12", "cores 1, gpu 2; cpus 1, gpu 1", in_compatible("1 of 2 gpu stay idle: …")},
        {"SL-14", "cores 12, gpu 4; cpus 1, gpu 0.3", in_compatible("0.4 of 4 gpu stay idle: …")},
        {"SL-14", "cores 1, gpu 4; cpus 1, gpu 3", in_compatible("1 of 4 gpu stay idle: …")},
        {"SL-14", "cores 4, gpu 9; cpus 1, gpu 2", in_compatible("1 of 9 gpu stay idle: …")},
    }};

std::string a_wasteful_profile_is_registered(const profile_rules& rules) {
  auto registry = registry_with("cores 1; cpus 1", rules);
  const auto known = registry.register_profile(profile_of("cores 16, gpu 1; cpus 1, gpu 1"));
  return known ? "registered with " + std::to_string(known->notes.size()) + " note" : refused(known.error());
}

const table slots_rows{
    "slots",
    {
        {"SL-9", "a profile with 8 cores on an executor with 2", slots_on_a_real_executor, same("2 cpus")},
        {"SL-13", "a profile that wastes 15 cores", a_wasteful_profile_is_registered,
         in_compatible("registered with 1 note")},
    }};

} // namespace
} // namespace troupe::conformance
