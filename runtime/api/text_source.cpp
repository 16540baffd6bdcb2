#include <troupe/runtime/api/text_source.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <troupe/runtime/api/input_files.hpp>
#include <troupe/runtime/api/operation_entry.hpp>
#include <troupe/runtime/api/serialize.hpp>
#include <troupe/runtime/storage/descriptor.hpp>

namespace troupe::detail {

namespace {

constexpr std::size_t chunk_bytes = std::size_t{256} * 1024;

/// An open file; throws with the path in the message.
class text_reader {
public:
  explicit text_reader(const std::string& path) : path_(path), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (!file_) fail("open");
  }

  /// Fills `buffer` as far as it goes. @returns bytes read, 0 at the end
  std::size_t read_at(std::uint64_t offset, char* buffer, std::size_t size) const {
    for (;;) {
      const auto n = ::pread(file_.get(), buffer, size, static_cast<off_t>(offset));
      if (n >= 0) return static_cast<std::size_t>(n);
      if (errno != EINTR) fail("read");
    }
  }
  /// Throws: it ends before what the job was made for.
  [[noreturn]] void fail_as_shrunk(std::uint64_t size) const {
    struct stat now {};
    if (::fstat(file_.get(), &now) != 0) fail("read");
    throw std::runtime_error("'" + path_ + "' has shrunk while the job read it: it had " + std::to_string(size) +
                             " bytes when the job was made and has " + std::to_string(now.st_size) +
                             " now; run the job when the file is complete");
  }

private:
  [[noreturn]] void fail(const char* verb) const {
    throw std::runtime_error(std::string{"cannot "} + verb + " '" + path_ + "': " + std::strerror(errno) +
                             "; every executor must see the input files under the same path");
  }

  const std::string& path_;
  descriptor file_;
};

/// Pushes the lines of one range.
class line_pusher {
public:
  line_pusher(const task_context& context, const file_range& range, std::string& buffer, sink<std::string>& out)
    : context_(context), range_(range), file_(range.path), buffer_(buffer), out_(out) {}

  void run() {
    // A line that begins where the range does is told from the rest of one by the end before it.
    std::uint64_t at = range_.begin == 0 ? 0 : range_.begin - 1;
    bool skipping = range_.begin != 0;
    std::uint64_t line_begin = range_.begin;
    std::string started; // the line at hand
    while (line_begin < range_.end) {
      if (skipping && at >= range_.end) return; // no line begins here: a longer one is read by where it does
      stop_if_cancelled(context_);
      const auto n = file_.read_at(at, buffer_.data(), buffer_.size());
      if (n == 0) {
        if (at < range_.size) file_.fail_as_shrunk(range_.size);
        if (!skipping && at > line_begin) push(started);
        return;
      }
      const auto* const chunk = buffer_.data();
      std::size_t done = 0;
      while (line_begin < range_.end) {
        const auto* const end = static_cast<const char*>(std::memchr(chunk + done, '\n', n - done));
        if (!end) {
          if (!skipping) started.append(chunk + done, n - done);
          break;
        }
        stop_if_cancelled(context_); // what becomes of a line may take long
        const auto length = static_cast<std::size_t>(end - chunk) - done;
        if (!std::exchange(skipping, false)) {
          started.append(chunk + done, length);
          push(started);
          started.clear(); // its memory stays, unless somebody has taken it
        }
        done += length + 1;
        line_begin = at + done;
      }
      at += n;
    }
  }

private:
  void push(std::string& line) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    // Whoever keeps it is not to keep the memory of a longer one that came before.
    if (line.capacity() > 2 * line.size() + 64)
      out_.push(std::string{line});
    else
      out_.push(std::move(line));
  }

  const task_context& context_;
  const file_range& range_;
  const text_reader file_;
  std::string& buffer_;
  sink<std::string>& out_;
};

struct text_lines {
  static void make(task_context& context, std::string_view, std::string_view argument, erased_sink& erased) {
    auto& out = typed_sink<std::string>(erased);
    std::string buffer(chunk_bytes, '\0');
    for (const auto& range : decode_value<std::vector<file_range>>(argument))
      line_pusher{context, range, buffer, out}.run();
  }
};

struct whole_text {
  static void make(task_context& context, std::string_view, std::string_view argument, erased_sink& erased) {
    auto& out = typed_sink<std::pair<std::string, std::string>>(erased);
    std::string buffer(chunk_bytes, '\0');
    for (auto& range : decode_value<std::vector<file_range>>(argument)) {
      std::string content;
      const text_reader reader{range.path};
      while (const auto n = reader.read_at(content.size(), buffer.data(), buffer.size())) {
        stop_if_cancelled(context);
        content.append(buffer.data(), n);
      }
      if (content.size() < range.size) reader.fail_as_shrunk(range.size);
      out.push({std::move(range.path), std::move(content)});
    }
  }
};

} // namespace

operation text_lines_source() { return make_operation<text_lines>(); }
operation whole_text_source() { return make_operation<whole_text>(); }

} // namespace troupe::detail
