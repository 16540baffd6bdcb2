#include <troupe/runtime/config/yaml_document.hpp>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <set>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <troupe/runtime/spelling.hpp>

namespace troupe {
namespace {

/// Leaves the parser from inside a callback; caught in parse_yaml.
struct refusal_at {
  int line;
  std::string message;
};

/// Builds the tree from the parser's events. yaml-cpp's own tree keeps equal keys and resolves aliases silently.
class tree_builder final : public YAML::EventHandler {
public:
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ > 0) refuse(mark, "a second document begins here; a file holds one");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    add(mark, yaml_node::kind::null, {});
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    refuse(mark, "aliases (*name) are not supported; write the value out");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_tag(mark, tag);
    refuse_anchor(mark, anchor);
    // Only an escape can make one; it would cut the text short wherever the system takes it.
    if (value.find('\0') != std::string::npos) refuse(mark, "a text holds a zero byte (\\0)");
    if (awaits_key()) {
      take_key(mark, value);
    } else {
      add(mark, yaml_node::kind::text, value);
    }
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    refuse_tag(mark, tag);
    refuse_anchor(mark, anchor);
    open(mark, yaml_node::kind::list);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    refuse_tag(mark, tag);
    refuse_anchor(mark, anchor);
    open(mark, yaml_node::kind::map);
  }
  void OnMapEnd() override { close(); }

  yaml_node take_root() { return std::move(root_); }

private:
  struct level {
    yaml_node node;
    std::set<std::string> keys; ///< of a map
    bool has_key = false;       ///< a key of the map is read, its value is not
    std::string key;
    int key_line = 0;
  };

  [[noreturn]] static void refuse(const YAML::Mark& mark, std::string message) {
    throw refusal_at{mark.line + 1, std::move(message)};
  }
  static void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != 0) refuse(mark, "anchors (&name) are not supported; write the value out where it is used");
  }
  static void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!") refuse(mark, "tags (" + tag + ") are not supported; remove it");
  }
  /// Keys of the maps around the open one, with a dot behind each.
  std::string path() const {
    std::string out;
    for (std::size_t i = 0; i + 1 < open_.size(); ++i)
      if (open_[i].has_key) out += open_[i].key + '.';
    return out;
  }
  bool awaits_key() const { return !open_.empty() && open_.back().node.is_map() && !open_.back().has_key; }

  void take_key(const YAML::Mark& mark, const std::string& name) {
    level& map = open_.back();
    if (name == "<<") refuse(mark, "merge keys (<<) are not supported; write the values out");
    if (name.empty()) refuse(mark, "a key is empty");
    if (!map.keys.insert(name).second) {
      refuse(mark, path() + name + " is given twice; the first one is in line " +
                       std::to_string(map.node.find(name)->key_line));
    }
    map.has_key = true;
    map.key = name;
    map.key_line = mark.line + 1;
  }
  void count(const YAML::Mark& mark) {
    if (++nodes_ > max_yaml_nodes)
      refuse(mark, "the file holds more than " + std::to_string(max_yaml_nodes) + " values");
  }
  void add(const YAML::Mark& mark, yaml_node::kind type, std::string text) {
    if (awaits_key()) refuse(mark, "a key must be a text");
    count(mark);
    yaml_node node;
    node.type = type;
    node.line = mark.line + 1;
    node.text = std::move(text);
    place(std::move(node));
  }
  void open(const YAML::Mark& mark, yaml_node::kind type) {
    if (awaits_key()) refuse(mark, "a key must be a text");
    count(mark);
    if (open_.size() >= static_cast<std::size_t>(max_yaml_depth))
      refuse(mark, "values are nested more than " + std::to_string(max_yaml_depth) + " levels deep");
    level opened;
    opened.node.type = type;
    opened.node.line = mark.line + 1;
    open_.push_back(std::move(opened));
  }
  void close() {
    yaml_node node = std::move(open_.back().node);
    open_.pop_back();
    place(std::move(node));
  }
  void place(yaml_node node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    level& parent = open_.back();
    if (parent.node.is_map()) {
      node.key = std::move(parent.key);
      node.key_line = parent.key_line;
      parent.has_key = false;
    }
    parent.node.children.push_back(std::move(node));
  }

  std::vector<level> open_;
  yaml_node root_;
  std::size_t nodes_ = 0;
  int documents_ = 0;
};

/// Error unless `text` is UTF-8 without control characters, so that what an editor shows is what is parsed.
result<void> check_characters(std::string_view text, std::string_view file) {
  int line = 1;
  bool at_line_start = true;
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == '\t' && at_line_start)
      return yaml_error(file, line, "the line is indented by a tab; YAML indents by blanks");
    at_line_start = byte == '\n';
    if (byte == '\n') ++line;
    if (byte < 0x80) {
      if ((byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') || byte == 0x7f)
        return yaml_error(file, line, "there is a control character (byte " + std::to_string(byte) + ")");
      ++i;
      continue;
    }
    const std::size_t length = byte >= 0xf0 && byte <= 0xf4 ? 4 : byte >= 0xe0 ? 3 : 2;
    bool valid = byte >= 0xc2 && byte <= 0xf4 && i + length <= text.size();
    for (std::size_t k = 1; valid && k < length; ++k) valid = (static_cast<unsigned char>(text[i + k]) & 0xc0) == 0x80;
    if (!valid) return yaml_error(file, line, "the text is not UTF-8 (byte " + std::to_string(byte) + ")");
    i += length;
  }
  return {};
}

std::string kind_name(const yaml_node& node) {
  switch (node.type) {
  case yaml_node::kind::null: return "nothing";
  case yaml_node::kind::text: return "the text `" + node.text + "`";
  case yaml_node::kind::list: return "a list";
  case yaml_node::kind::map: return "a map";
  }
  return {};
}

/// A file that was named and cannot be had is a fault of the configuration, whatever the system's reason.
error unreadable(std::string_view verb, const std::string& path) {
  return make_error(ec::invalid_configuration,
                    "cannot " + std::string{verb} + " " + path + ": " + std::strerror(errno));
}

} // namespace

const yaml_node* yaml_node::find(std::string_view name) const noexcept {
  for (const auto& child : children) {
    if (child.key == name) return &child;
  }
  return nullptr;
}

error yaml_error(std::string_view file, int line, std::string_view message) {
  std::string out{file};
  out += ':';
  out += std::to_string(line);
  out += ": ";
  out += message;
  return make_error(ec::invalid_configuration, std::move(out));
}

result<yaml_document> parse_yaml(std::string_view text, std::string file) {
  if (text.size() > max_yaml_bytes)
    return yaml_error(file, 1, "the file is larger than " + std::to_string(max_yaml_bytes) + " bytes");
  if (text.substr(0, 3) == "\xef\xbb\xbf") text.remove_prefix(3);
  if (auto checked = check_characters(text, file); !checked) return checked.error();
  tree_builder builder;
  try {
    std::string closed{text};
    // yaml-cpp takes the last line break for the end of a quoted text that is not closed, but not the end of a comment.
    closed += text.ends_with('\n') ? "#" : "\n#";
    std::istringstream in{closed};
    YAML::Parser parser{in};
    while (parser.HandleNextDocument(builder)) {}
  } catch (const refusal_at& refused) {
    return yaml_error(file, refused.line, refused.message);
  } catch (const YAML::Exception& e) {
    return yaml_error(file, e.mark.line + 1, "this is not YAML: " + e.msg);
  }
  yaml_document out{std::move(file), builder.take_root()};
  if (out.root.is_null()) return yaml_error(out.file, 1, "the file holds no value; it must be a map of keys to values");
  if (!out.root.is_map())
    return yaml_error(out.file, out.root.line,
                      "the file holds " + kind_name(out.root) + "; it must be a map of keys to values");
  return out;
}

result<std::string> read_config_file(const std::string& path) {
  // Not blocking, so that a pipe of that name is refused instead of waited for.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    return unreadable("open", path);
  }
  struct closer {
    int descriptor;
    ~closer() { ::close(descriptor); }
  } const guard{fd};
  struct stat info {};
  if (::fstat(fd, &info) != 0) return unreadable("read", path);
  if (!S_ISREG(info.st_mode)) return make_error(ec::invalid_configuration, path + " is not a regular file");
  std::string text;
  char buffer[16384];
  while (true) {
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return unreadable("read", path);
    if (got == 0) return text;
    text.append(buffer, static_cast<std::size_t>(got));
    if (text.size() > max_yaml_bytes)
      return make_error(ec::invalid_configuration,
                        path + " is larger than " + std::to_string(max_yaml_bytes) + " bytes");
  }
}

result<yaml_document> load_yaml(const std::string& path) {
  auto text = read_config_file(path);
  if (!text) return text.error();
  return parse_yaml(*text, path);
}

result<void> check_fields(std::string_view file, const yaml_node& node, std::string_view what,
                          std::span<const std::string_view> fields) {
  if (!node.is_map()) return yaml_error(file, node.line, std::string{what} + " must be a map, not " + kind_name(node));
  for (const auto& child : node.children) {
    bool known = false;
    for (const auto field : fields) known = known || child.key == field;
    if (known) continue;
    return yaml_error(file, child.key_line,
                      std::string{what} + " has no field `" + child.key + "`" +
                          spelling_hint(child.key, std::vector<std::string>(fields.begin(), fields.end())));
  }
  return {};
}

result<std::string> read_text(std::string_view file, const yaml_node& node, std::string_view what) {
  if (!node.is_text())
    return yaml_error(file, node.line, std::string{what} + " must be a text, not " + kind_name(node));
  if (node.text.empty()) return yaml_error(file, node.line, std::string{what} + " is empty");
  return node.text;
}

result<std::vector<std::string>> read_texts(std::string_view file, const yaml_node& node, std::string_view what) {
  if (!node.is_list())
    return yaml_error(file, node.line, std::string{what} + " must be a list, not " + kind_name(node));
  if (node.children.empty()) return yaml_error(file, node.line, std::string{what} + " is an empty list");
  std::vector<std::string> out;
  out.reserve(node.children.size());
  for (const auto& child : node.children) {
    if (!child.is_text())
      return yaml_error(file, child.line,
                        std::string{what} + " must be a list of texts; one of them is " + kind_name(child));
    out.push_back(child.text);
  }
  return out;
}

} // namespace troupe
