// What the file of events says of profiles (EV).

#include <nlohmann/json.hpp>

#include <troupe/runtime/events/event_json.hpp>
#include <troupe/runtime/resources/profile_rules.hpp>
#include <troupe/tests/conformance/profile_texts.hpp>
#include <troupe/tests/conformance/rule.hpp>

namespace troupe::conformance {
namespace {

using nlohmann::json;

/// The line of a profile that is registered, without what every line has.
std::string announced(const std::string& text, const profile_rules& rules) {
  auto registry = registry_with("cores 4; cpus 1", rules);
  const auto known = registry.register_profile(profile_of(text));
  if (!known) return refused(known.error());
  const auto& profile = registry.profiles().at(known->profile.value);
  auto line =
      nlohmann::ordered_json::parse(events::to_json({1, 0, events::profile_added{profile.profile, profile.content}}));
  for (const auto* everywhere : {"Number", "Timestamp", "Unix Nanoseconds"}) line.erase(everywhere);
  return line.dump();
}

/// Names of the resources in the line of a profile.
std::string halves(const std::string& text, const profile_rules& rules) {
  const auto line = json::parse(announced(text, rules));
  std::string out;
  for (const auto* half : {"Executor Resource Requests", "Task Resource Requests"}) {
    for (const auto& [name, request] : line[half].items()) out += name + " ";
    out += "; ";
  }
  return out;
}

const table announcements_rows{
    "announcements",
    announced,
    {
        {"EV-1", "cores 2, memory 1g, gpu 2 ./s; cpus 1, gpu 0.5",
         same(R"({"Event":"SparkListenerResourceProfileAdded","Resource Profile Id":1,"Executor Resource Requests":{)"
              R"("cores":{"Resource Name":"cores","Amount":2,"Discovery Script":"","Vendor":""},)"
              R"("gpu":{"Resource Name":"gpu","Amount":2,"Discovery Script":"./s","Vendor":""},)"
              R"("memory":{"Resource Name":"memory","Amount":1024,"Discovery Script":"","Vendor":"",)"
              R"("Bytes":1073741824}…},"Task Resource Requests":{)"
              R"("cpus":{"Resource Name":"cpus","Amount":1.0},"gpu":{"Resource Name":"gpu","Amount":0.5}}})")},
    }};

const table halves_rows{"halves",
                        halves,
                        {
                            {"EV-2", "; cpus 2", same("cores memory ; cpus ; ")},
                        }};

} // namespace
} // namespace troupe::conformance
