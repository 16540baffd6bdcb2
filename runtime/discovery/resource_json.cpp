#include <troupe/runtime/discovery/resource_json.hpp>

#include <algorithm>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include <troupe/runtime/resources/capacity.hpp>
#include <troupe/runtime/resources/quote.hpp>

namespace troupe {
namespace {

using detail::quote;

/// Takes the parser's events one by one, so that no tree of a stranger's making is ever built.
class resource_reader {
public:
  using json = nlohmann::json;

  bool null() { return scalar(); }
  bool boolean(bool) { return scalar(); }
  bool number_integer(json::number_integer_t) { return scalar(); }
  bool number_unsigned(json::number_unsigned_t) { return scalar(); }
  bool number_float(json::number_float_t, const std::string&) { return scalar(); }
  bool binary(json::binary_t&) { return scalar(); }

  bool string(std::string& text) {
    if (depth_ == 1 && key_ == "name") {
      found_.name = std::move(text);
      return is_valid_resource_name(found_.name) ||
             fault("name " + quote(found_.name) + ": " + std::string{resource_name_grammar});
    }
    return in_addresses() ? address(text) : scalar();
  }

  bool key(std::string& text) {
    if (depth_ == 1) {
      key_ = std::move(text);
      if (!keys_.insert(key_).second) return fault("key " + quote(key_) + " is there twice");
    }
    return true;
  }

  bool start_object(std::size_t) { return depth_ == 0 || is_ignored() ? enter() : scalar(); }
  bool end_object() { return leave(); }
  bool start_array(std::size_t) {
    const bool is_list = depth_ == 1 && key_ == "addresses";
    return is_list || is_ignored() ? enter() : scalar();
  }
  bool end_array() { return leave(); }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) {
    return fault("byte " + std::to_string(position) + " is not JSON (or not UTF-8)");
  }

  /// What was read. @pre the parser reported success
  result<resource_information> finish() {
    if (found_.name.empty()) fault("it has no name");
    if (!fault_.empty()) return make_error(ec::malformed, fault_);
    return std::move(found_);
  }
  const std::string& why() const noexcept { return fault_; }

private:
  static constexpr int max_depth = 16;

  bool in_addresses() const noexcept { return depth_ == 2 && key_ == "addresses"; }
  bool is_ignored() const noexcept { return depth_ >= 1 && key_ != "name" && key_ != "addresses"; }

  bool enter() { return ++depth_ <= max_depth || fault("it is nested deeper than 16 levels"); }
  bool leave() {
    --depth_;
    return true;
  }
  /// A value that is neither the name nor an address.
  bool scalar() {
    if (is_ignored()) return true;
    if (depth_ == 0) return fault("it is not an object");
    return fault(key_ == "name" ? "name must be a string" : "addresses must be a list of strings");
  }
  bool address(std::string& text) {
    if (found_.addresses.size() == max_discovered_addresses) return fault("it has more than 4096 addresses");
    if (!is_valid_address(text)) return fault("address " + quote(text) + ": " + std::string{address_grammar});
    if (!seen_.insert(text).second) return fault("address " + quote(text) + " is there twice");
    found_.addresses.push_back(std::move(text));
    return true;
  }
  bool fault(std::string what) {
    if (fault_.empty()) fault_ = std::move(what);
    return false;
  }

  resource_information found_;
  std::string fault_;
  std::string key_; ///< of the outermost object, where the parser is now
  std::set<std::string> keys_;
  std::set<std::string> seen_;
  int depth_ = 0;
};

} // namespace

result<resource_information> parse_resource_json(std::string_view text) {
  resource_reader reader;
  const bool parsed = nlohmann::json::sax_parse(text.begin(), text.end(), &reader);
  auto found = parsed ? reader.finish() : result<resource_information>{make_error(ec::malformed, reader.why())};
  if (!found)
    found.error().message = "cannot read " + quote(text) + " as a resource: " + found.error().message +
                            R"(; expected {"name": "gpu", "addresses": ["0", "1"]})";
  return found;
}

} // namespace troupe
