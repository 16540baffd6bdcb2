#include <troupe/runtime/api/text_output.hpp>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <utility>

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <troupe/runtime/api/job_error.hpp>
#include <troupe/runtime/api/serialize.hpp>
#include <troupe/runtime/config/path_text.hpp>
#include <troupe/runtime/resources/quote.hpp>
#include <troupe/runtime/storage/descriptor.hpp>

namespace troupe::detail {

namespace fs = std::filesystem;

namespace {

constexpr auto place_apart = "_temporary";

std::string part_name(std::uint32_t partition) {
  std::array<char, 24> name{};
  std::snprintf(name.data(), name.size(), "part-%05u", partition);
  return name.data();
}

[[noreturn]] void cannot(const char* verb, const std::string& path, const std::error_code& why) {
  throw job_error(make_error(ec::io, std::string{"cannot "} + verb + " '" + path + "': " + why.message()));
}

class text_writer final : public terminal<std::string> {
public:
  text_writer(const task_context& context, std::string_view captures)
    : name_(part_name(context.partition) + ".attempt-" + std::to_string(context.attempt) + "-of-executor-" +
            std::to_string(context.executor.value)),
      path_(decode_value<std::string>(captures) + "/" + name_),
      file_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {
    if (!file_) fail("make");
    buffer_.reserve(buffer_bytes);
  }
  text_writer(const text_writer&) = delete;
  text_writer& operator=(const text_writer&) = delete;
  /// Of an attempt that has not succeeded nothing stays: on a full disk that is the room that the next one needs.
  ~text_writer() override {
    if (!finished_) ::unlink(path_.c_str());
  }
  static std::unique_ptr<terminal_sink> make(task_context& context, std::string_view captures) {
    return std::make_unique<text_writer>(context, captures);
  }

  void push(std::string&& line) override {
    if (buffer_.size() + line.size() >= buffer_bytes) {
      flush(buffer_);
      buffer_.clear();
    }
    if (line.size() >= buffer_bytes)
      flush(line);
    else
      buffer_ += line;
    buffer_ += '\n';
  }
  void finish() override {
    flush(buffer_);
    if (!file_.close()) fail("write");
    finished_ = true;
  }
  std::string take_result() override { return encode_value(name_); }

private:
  static constexpr std::size_t buffer_bytes = std::size_t{256} * 1024;

  void flush(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto n = ::write(file_.get(), bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail("write");
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  [[noreturn]] void fail(const char* verb) const {
    throw std::runtime_error(std::string{"cannot "} + verb + " '" + path_ + "': " + std::strerror(errno) +
                             "; every executor must see the output directory under the same path");
  }

  const std::string name_;
  const std::string path_;
  descriptor file_;
  std::string buffer_;
  bool finished_ = false;
};

/// Whether nothing else is in a folder.
bool has_only(const std::string& directory, const std::string& name) {
  std::error_code failed;
  for (fs::directory_iterator entry{directory, failed}, end; !failed && entry != end; entry.increment(failed))
    if (entry->path().filename() != name) return false;
  return !failed;
}

} // namespace

text_directory::text_directory(const std::string& path) {
  if (path.empty()) throw job_error(make_error(ec::invalid_argument, "the output directory has no name"));
  if (has_part_for_a_shell(path))
    throw job_error(
        make_error(ec::invalid_argument, "the output directory '" + path +
                                             "' has ~ or $, which are for a shell to expand; give the path, "
                                             "as with std::getenv"));
  std::error_code code;
  path_ = fs::absolute(path, code); // as it is: what '..' behind a link means is for the system to say
  if (code) cannot("find", path, code);
  apart_ = path_ + "/" + place_apart;
  staging_ = apart_ + "/XXXXXX";
  made_ = fs::create_directories(path_, code);
  if (code) cannot("make the directory", path_, code);
  const bool is_empty = made_ || fs::is_empty(path_, code);
  if (code) cannot("read the directory", path_, code);
  // Whoever makes the place apart has the directory to himself.
  if (!is_empty || (!fs::create_directory(apart_, code) && !code))
    throw job_error(make_error(ec::invalid_argument,
                               "the output directory '" + path_ + "' is not empty: " +
                                   (has_only(path_, place_apart) ? "a program that was killed has left " + apart_ +
                                                                       ", or one is just writing: "
                                                                       "remove that where none is"
                                                                 : std::string{"remove it, or name another one"})));
  if (!code && !::mkdtemp(staging_.data())) code = {errno, std::generic_category()};
  if (!code)
    fs::permissions(staging_, fs::status(apart_, code).permissions(), code); // executors may be somebody else's
  if (!code) return;
  roll_back();
  cannot("make a directory in", path_, code);
}

text_directory::~text_directory() {
  if (!committed_) roll_back();
}

void text_directory::roll_back() noexcept {
  std::error_code ignored;
  remove_apart();
  for (std::uint32_t p = 0; p < published_; ++p) fs::remove(path_ + "/" + part_name(p), ignored);
  if (made_) fs::remove(path_, ignored);
}

/// Tasks that have not noticed yet that they are to end make no more files in what has gone.
void text_directory::remove_apart() noexcept {
  std::error_code ignored;
  fs::rename(staging_, apart_ + "/over", ignored);
  fs::remove_all(apart_, ignored);
}

void text_directory::publish(std::string_view name) {
  // It came from an executor: it says which attempt made the part, and nothing else.
  if (!name.starts_with(part_name(published_) + ".attempt-") || name.find('/') != std::string_view::npos)
    throw job_error(make_error(ec::malformed, "an executor says that it has written part " +
                                                  std::to_string(published_) + " of '" + path_ + "' as " +
                                                  quote(name)));
  std::error_code code;
  fs::rename(staging_ + "/" + std::string{name}, path_ + "/" + part_name(published_), code);
  if (code == std::errc::no_such_file_or_directory)
    throw job_error(make_error(ec::io, "an executor has written '" + staging_ + "/" + std::string{name} +
                                           "', which is not to be seen here: this program and all executors must see "
                                           "the output directory under the same path"));
  if (code) cannot("publish", staging_ + "/" + std::string{name}, code);
  ++published_;
}

void text_directory::commit() {
  remove_apart();
  const auto mark = path_ + "/_SUCCESS";
  if (!descriptor{::open(mark.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)})
    cannot("write", mark, {errno, std::generic_category()});
  committed_ = true;
}

operation text_terminal(const std::string& staging) { return make_operation<text_writer>(encode_value(staging)); }

} // namespace troupe::detail
