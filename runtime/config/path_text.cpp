#include <troupe/runtime/config/path_text.hpp>

#include <cstdlib>
#include <system_error>

namespace troupe {
namespace {

bool is_first_of_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

std::size_t end_of_name(std::string_view text, std::size_t at) {
  if (at >= text.size() || !is_first_of_name(text[at])) return at;
  while (at < text.size() && (is_first_of_name(text[at]) || (text[at] >= '0' && text[at] <= '9'))) ++at;
  return at;
}

error refused(const std::string& text) { return make_error(ec::invalid_configuration, text); }

class path_expander {
public:
  path_expander(std::string_view path, const variable_lookup& lookup,
                const std::function<std::string(std::string_view)>& insert)
    : path_(path), lookup_(lookup), insert_(insert) {}

  result<std::string> expand() {
    if (path_.starts_with('~')) {
      if (path_.size() > 1 && path_[1] != '/')
        return refused("a folder of another user, such as ~name, is not looked up; write its path, or ./" +
                       std::string{path_} + " for a name that begins so");
      if (auto ok = put("HOME"); !ok) return ok.error();
      at_ = 1;
    }
    while (at_ < path_.size()) {
      if (path_[at_] != '$') {
        out_ += path_[at_++];
      } else if (auto ok = take_dollar(); !ok) {
        return ok.error();
      }
    }
    return std::move(out_);
  }

private:
  result<void> take_dollar() {
    const char next = at_ + 1 < path_.size() ? path_[at_ + 1] : '\0';
    if (next == '(')
      return refused("$(…) is for a shell: write what it would print, or give it by a variable, such as ${OUT}");
    if (next == '{') {
      const auto close = path_.find('}', at_);
      const auto end = end_of_name(path_, at_ + 2);
      if (close == std::string_view::npos || end != close || end == at_ + 2)
        return refused("between ${ and } stands the name of a variable alone; write $$ for a $");
      const auto name = std::string{path_.substr(at_ + 2, end - at_ - 2)};
      at_ = close + 1;
      return put(name);
    }
    const auto end = end_of_name(path_, at_ + 1);
    if (end == at_ + 1) {
      out_ += '$';
      at_ += next == '$' ? 2 : 1;
      return {};
    }
    const auto name = std::string{path_.substr(at_ + 1, end - at_ - 1)};
    at_ = end;
    return put(name);
  }

  result<void> put(const std::string& name) {
    const auto value = lookup_(name);
    if (!value || value->empty())
      return refused("the variable " + name + " is " + (value ? "empty" : "not set") +
                     "; set it, or write the path; $$ stands for a $");
    out_ += insert_ ? insert_(*value) : *value;
    return {};
  }

  std::string_view path_;
  const variable_lookup& lookup_;
  const std::function<std::string(std::string_view)>& insert_;
  std::size_t at_ = 0;
  std::string out_;
};

} // namespace

std::optional<std::string> environment_variable(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>{value};
}

bool is_for_a_shell(std::string_view text) {
  if (text == "~" || text.starts_with("~/")) return true;
  for (auto at = text.find('$'); at != std::string_view::npos; at = text.find('$', at + 1)) {
    const char next = at + 1 < text.size() ? text[at + 1] : '\0';
    if (is_first_of_name(next) || next == '{' || next == '(') return true;
  }
  return false;
}

bool has_variables(std::string_view path) { return path.starts_with('~') || path.find('$') != std::string_view::npos; }

result<std::string> expand_path(std::string_view path, const variable_lookup& lookup,
                                const std::function<std::string(std::string_view)>& insert) {
  return path_expander{path, lookup, insert}.expand();
}

std::string plain_path(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  fs::path out = path.root_path();
  for (const auto& part : path.relative_path()) {
    if (part == ".") continue;
    if (part != ".." || out.empty() || out.filename() == part) {
      out /= part;
      continue;
    }
    std::error_code unknown;
    const bool is_link = fs::is_symlink(fs::symlink_status(out, unknown));
    const auto real = is_link ? fs::canonical(out, unknown) : out;
    out = is_link && unknown ? out / part : real.parent_path(); // what leads nowhere is left as it is
  }
  return out.string();
}

std::string as_path_text(std::string_view path) {
  std::string out;
  for (const char c : path) out += c == '$' ? std::string{"$$"} : std::string(1, c);
  return out;
}

} // namespace troupe
