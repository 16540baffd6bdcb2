#include <troupe/runtime/execution/failure_text.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <memory>
#include <typeinfo>

#include <cxxabi.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <troupe/runtime/storage/descriptor.hpp>

namespace troupe {

namespace {

/// Bytes of the valid UTF-8 sequence at the begin of `text`; 0 where there is none.
std::size_t sequence_length(std::string_view text) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto lead = at(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xc2 && lead < 0xe0   ? 2
                             : lead >= 0xe0 && lead < 0xf0 ? 3
                             : lead >= 0xf0 && lead < 0xf5 ? 4
                                                           : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((at(i) & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, surrogates and what lies beyond U+10FFFF.
  if ((lead == 0xe0 && at(1) < 0xa0) || (lead == 0xed && at(1) >= 0xa0) || (lead == 0xf0 && at(1) < 0x90) ||
      (lead == 0xf4 && at(1) >= 0x90))
    return 0;
  return length;
}

/// A regular file that is read here and there; as if it were empty where it cannot be.
class readable_file {
public:
  explicit readable_file(const std::string& path) {
    // O_NONBLOCK: the path may name a pipe that nobody writes to.
    if (!path.empty()) fd_ = descriptor{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    struct stat status {};
    if (fd_ && ::fstat(fd_.get(), &status) == 0 && S_ISREG(status.st_mode))
      size = static_cast<std::size_t>(status.st_size);
  }
  std::string read(std::size_t from, std::size_t most) const {
    std::string text(std::min(most, size - std::min(size, from)), '\0');
    std::size_t filled = 0;
    while (filled < text.size()) {
      const auto n = ::pread(fd_.get(), text.data() + filled, text.size() - filled, static_cast<off_t>(from + filled));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      filled += static_cast<std::size_t>(n);
    }
    text.resize(filled);
    return text;
  }

  std::size_t size = 0;

private:
  descriptor fd_;
};

/// Where the last `max_stderr_lines` lines begin.
std::size_t begin_of_last_lines(std::string_view text) {
  std::size_t lines = 0;
  auto begin = text.size();
  // The newline that ends the last line opens none.
  if (begin > 0 && text[begin - 1] == '\n') --begin;
  for (; begin > 0; --begin)
    if (text[begin - 1] == '\n' && ++lines == max_stderr_lines) break;
  return begin;
}

/// Behind the newline that ends the first `max_stderr_head_lines` lines.
std::size_t end_of_first_lines(std::string_view text) {
  std::size_t end = 0;
  for (std::size_t lines = 0; lines < max_stderr_head_lines; ++lines) {
    const auto newline = text.find('\n', end);
    if (newline == text.npos) return text.size();
    end = newline + 1;
  }
  return end;
}

} // namespace

std::string bounded_text(std::string_view text, std::size_t limit) {
  constexpr std::string_view cut_mark = " [cut]";
  const bool cut = text.size() > limit;
  const auto room = cut ? limit - std::min(limit, cut_mark.size()) : text.size();
  std::string out;
  out.reserve(std::min(text.size(), limit));
  std::size_t i = 0;
  while (i < text.size()) {
    const auto length = sequence_length(text.substr(i));
    if (out.size() + std::max<std::size_t>(length, 1) > room) break;
    if (length == 0) {
      out.push_back('?');
      ++i;
    } else {
      out.append(text.substr(i, length));
      i += length;
    }
  }
  if (cut) out.append(cut_mark.substr(0, limit - out.size()));
  return out;
}

std::string tail_of_file(const std::string& path) {
  const readable_file file{path};
  const auto from = file.size - std::min(file.size, max_stderr_tail);
  const auto tail = file.read(from, max_stderr_tail);
  return bounded_text(std::string_view{tail}.substr(begin_of_last_lines(tail)), max_stderr_tail);
}

std::string excerpt_of_file(const std::string& path) {
  constexpr std::size_t room_for_mark = 64;
  constexpr auto tail_room = max_stderr_tail - max_stderr_head - room_for_mark;
  const readable_file file{path};
  const auto head = file.read(0, max_stderr_head);
  const auto from = file.size - std::min(file.size, tail_room);
  const auto tail = file.read(from, tail_room);
  const auto head_end = end_of_first_lines(head);
  const auto tail_begin = from + begin_of_last_lines(tail);
  if (tail_begin <= head_end) // so the tail holds all that follows the head
    return bounded_text(head.substr(0, head_end) + tail.substr(std::min(head_end - from, tail.size())),
                        max_stderr_tail);
  auto text = bounded_text(std::string_view{head}.substr(0, head_end), max_stderr_head);
  if (!text.empty() && text.back() != '\n') text += '\n';
  text += "[" + std::to_string(tail_begin - head_end) + " bytes are left out here]\n";
  return text + bounded_text(std::string_view{tail}.substr(tail_begin - from), tail_room);
}

std::string text_of_exception() {
  try {
    throw;
  } catch (const std::exception& e) {
    return e.what() == nullptr ? "an exception without a text" : e.what();
  } catch (const std::string& text) {
    return text;
  } catch (const char* text) {
    return text == nullptr ? "a text that is null" : text;
  } catch (int number) {
    return "the number " + std::to_string(number) + " was thrown";
  } catch (long number) {
    return "the number " + std::to_string(number) + " was thrown";
  } catch (...) {
    const auto* const type = abi::__cxa_current_exception_type();
    if (type == nullptr) return "an exception of another language was thrown";
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> name{abi::__cxa_demangle(type->name(), nullptr, nullptr, &status),
                                                      &std::free};
    return "an exception of type " + std::string{status == 0 ? name.get() : type->name()} +
           " was thrown, which is no std::exception";
  }
}

std::string describe_time_limit(std::string_view what, duration timeout) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count();
  return std::string{what} + " was ended because it ran for longer than its time-out of " + std::to_string(ms) +
         "ms (task-timeout, troupe.task.timeout)";
}

} // namespace troupe
