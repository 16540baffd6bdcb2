#include <troupe/runtime/api/input_files.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <troupe/runtime/api/operation_entry.hpp>
#include <troupe/runtime/api/serialize.hpp>

namespace troupe {

namespace {

using file_identity = std::pair<dev_t, ino_t>;

struct found_file {
  input_file file;
  bool link = false;
};

/// Files under their identity, so that a link to one that is known adds nothing.
class file_collection {
public:
  result<void> add_pattern(const std::string& pattern) {
    const auto absolute = std::filesystem::absolute(pattern).lexically_normal().string();
    const bool wildcard = pattern.find_first_of("*?[") != std::string::npos;
    if (!wildcard) return add_named(absolute);

    glob_t matches{};
    const int status = glob(absolute.c_str(), GLOB_NOSORT, nullptr, &matches);
    std::vector<std::string> paths;
    if (status == 0) paths.assign(matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
    globfree(&matches);
    if (status != 0 && status != GLOB_NOMATCH)
      return make_error(ec::io, "cannot read the folders of '" + pattern + "'");
    bool any = false;
    for (const auto& path : paths) any = add_if_regular(path) || any;
    if (!any) return make_error(ec::not_found, "no file matches '" + pattern + "'");
    return {};
  }

  std::vector<input_file> take() {
    std::vector<input_file> files;
    files.reserve(files_.size());
    for (auto& [identity, found] : files_) files.push_back(std::move(found.file));
    std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
    return files;
  }

private:
  result<void> add_named(const std::string& path) {
    if (add_if_regular(path)) return {};
    if (std::error_code ignored; std::filesystem::is_directory(path, ignored))
      return make_error(ec::invalid_argument, "'" + path + "' is a directory; write '" + path + "/*' for its files");
    return make_error(ec::not_found, "there is no file '" + path + "'");
  }

  bool add_if_regular(const std::string& path) {
    struct stat target {};
    struct stat itself {};
    if (stat(path.c_str(), &target) != 0 || !S_ISREG(target.st_mode) || lstat(path.c_str(), &itself) != 0) return false;
    found_file found{{path, static_cast<std::uint64_t>(target.st_size)}, S_ISLNK(itself.st_mode)};
    const auto [known, added] = files_.try_emplace(file_identity{target.st_dev, target.st_ino}, found);
    const auto order = [](const found_file& f) { return std::pair{f.link, std::string_view{f.file.path}}; };
    if (!added && order(found) < order(known->second)) known->second = std::move(found);
    return true;
  }

  std::map<file_identity, found_file> files_;
};

/// An open file; throws with the path in the message.
class text_reader {
public:
  explicit text_reader(const std::string& path) : path_(path), descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (descriptor_ < 0) fail("open");
  }
  ~text_reader() { close(descriptor_); }
  text_reader(const text_reader&) = delete;
  text_reader& operator=(const text_reader&) = delete;

  /// Fills `buffer` as far as it goes. @returns bytes read, 0 at the end
  std::size_t read_some(char* buffer, std::size_t size) {
    for (;;) {
      const auto n = read(descriptor_, buffer, size);
      if (n >= 0) return static_cast<std::size_t>(n);
      if (errno != EINTR) fail("read");
    }
  }

private:
  [[noreturn]] void fail(const char* verb) const {
    throw std::runtime_error(std::string{"cannot "} + verb + " '" + path_ + "': " + std::strerror(errno) +
                             "; every executor must see the input files under the same path");
  }

  const std::string& path_;
  int descriptor_;
};

constexpr std::size_t chunk_bytes = std::size_t{64} * 1024;

void push_line(std::string line, sink<std::string>& out) {
  if (!line.empty() && line.back() == '\r') line.pop_back();
  out.push(std::move(line));
}

void push_lines(const task_context& context, const std::string& path, std::string& buffer, sink<std::string>& out) {
  text_reader reader{path};
  std::string started; // the piece of a line that the last chunk ended with
  bool open_line = false;
  while (const auto n = reader.read_some(buffer.data(), buffer.size())) {
    detail::stop_if_cancelled(context);
    std::string_view chunk{buffer.data(), n};
    for (auto end = chunk.find('\n'); end != std::string_view::npos; end = chunk.find('\n')) {
      started.append(chunk.substr(0, end));
      push_line(std::exchange(started, {}), out);
      chunk.remove_prefix(end + 1);
    }
    started.append(chunk);
    open_line = !started.empty();
  }
  if (open_line) push_line(std::move(started), out);
}

struct text_lines {
  static void make(task_context& context, std::string_view, std::string_view argument, erased_sink& erased) {
    auto& out = detail::typed_sink<std::string>(erased);
    std::string buffer(chunk_bytes, '\0');
    for (const auto& path : decode_value<std::vector<std::string>>(argument)) push_lines(context, path, buffer, out);
  }
};

struct whole_text {
  static void make(task_context& context, std::string_view, std::string_view argument, erased_sink& erased) {
    auto& out = detail::typed_sink<std::pair<std::string, std::string>>(erased);
    std::string buffer(chunk_bytes, '\0');
    for (auto& path : decode_value<std::vector<std::string>>(argument)) {
      detail::stop_if_cancelled(context);
      std::string content;
      text_reader reader{path};
      while (const auto n = reader.read_some(buffer.data(), buffer.size())) content.append(buffer.data(), n);
      out.push({path, std::move(content)});
    }
  }
};

} // namespace

result<std::vector<input_file>> find_input_files(const std::vector<std::string>& patterns) {
  file_collection files;
  for (const auto& pattern : patterns)
    if (const auto added = files.add_pattern(pattern); !added) return added.error();
  auto found = files.take();
  if (found.empty()) return make_error(ec::invalid_argument, "no input files were named");
  return found;
}

namespace detail {

std::shared_ptr<const packed_column> group_files(const std::vector<input_file>& files, std::uint32_t partitions) {
  const auto most = static_cast<std::uint32_t>(std::min<std::size_t>(files.size(), max_tasks_per_stage));
  const auto groups = partitions == 0 ? most : std::min(partitions, most);
  std::uint64_t left = 0; // every file weighs a byte more than it has, so that empty ones count too
  for (const auto& file : files) left += file.bytes + 1;

  auto column = std::make_shared<packed_column>();
  std::size_t next = 0;
  for (std::uint32_t group = 0; group < groups; ++group) {
    const std::uint64_t fair = left / (groups - group);
    const std::size_t last = files.size() - (groups - group - 1); // leave one file for each later group
    std::vector<std::string> paths;
    std::uint64_t taken = 0;
    do {
      taken += files[next].bytes + 1;
      paths.push_back(files[next++].path);
    } while (next < last && (group + 1 == groups || 2 * taken + files[next].bytes + 1 <= 2 * fair));
    left -= taken;
    column->push_back(encode_value(paths));
  }
  return column;
}

operation text_lines_source() { return make_operation<text_lines>(); }
operation whole_text_source() { return make_operation<whole_text>(); }

} // namespace detail

} // namespace troupe
