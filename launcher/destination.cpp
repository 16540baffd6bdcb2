#include <troupe/launcher/destination.hpp>

#include <utility>
#include <variant>

#include <unistd.h>

#include <troupe/launcher/run_directory.hpp>
#include <troupe/runtime/config/keys.hpp>
#include <troupe/runtime/config/master.hpp>
#include <troupe/runtime/config/path_text.hpp>

namespace troupe {

bool goes_to_driver(const settings& s) {
  const auto master = parse_master(s.get(keys::master));
  return master && std::holds_alternative<endpoint>(*master);
}

std::set<std::string> usual_bases() {
  return {"/run/user/" + std::to_string(geteuid()) + "/troupe", run_directory::temporary_base()};
}

destination destination_of(const settings& s, const std::optional<session_record>& found, std::string_view asked,
                           std::set<std::string> bases) {
  destination out;
  out.master = s.get(keys::master);
  const auto base = run_directory::base_of(s.get(keys::run_directory));
  if (found) {
    out.because = "cluster " + found->name +
                  (asked.empty() ? ", the one that runs in " + base + ": tasks see its environment, not this shell's"
                                 : ", by --cluster=" + std::string{asked});
    return out;
  }
  const auto origin = s.origin_of(keys::master.name);
  const bool is_free = origin.kind == origin_kind::default_value;
  out.because = origin.kind == origin_kind::argument ? "--master"
                : !is_free                           ? to_string(origin)
                : origin.place.empty()               ? "nothing else was said"
                                                     : "the default of " + origin.place;
  if (!is_free || !origin.place.empty()) return out;
  bases.insert(base);
  std::set<std::string> known; // two paths may lead to one place
  for (const auto& place : bases)
    for (auto& session : running_sessions(place))
      if (known.insert(session.session_id).second) out.others.push_back(std::move(session));
  return out;
}

std::string to_string(const destination& where) {
  auto text = "jobs go to " + where.master + " (" + where.because + ")";
  for (const auto& other : where.others)
    text += "; cluster " + other.name + " of yours runs as well: --master=" + other.address +
            (other.secret_file.empty() ? std::string{}
                                       : " --conf troupe.security.secret-file=" + as_path_text(other.secret_file));
  return text;
}

} // namespace troupe
