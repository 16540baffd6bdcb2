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
  // O_NONBLOCK: the path may name a pipe that nobody writes to.
  const int fd = path.empty() ? -1 : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return {};
  std::string tail;
  struct stat status {};
  if (::fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
    const auto from = std::max<off_t>(0, status.st_size - static_cast<off_t>(max_stderr_tail));
    tail.resize(static_cast<std::size_t>(status.st_size - from));
    std::size_t filled = 0;
    while (filled < tail.size()) {
      const auto n = ::pread(fd, tail.data() + filled, tail.size() - filled, from + static_cast<off_t>(filled));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      filled += static_cast<std::size_t>(n);
    }
    tail.resize(filled);
  }
  ::close(fd);
  std::size_t lines = 0;
  auto begin = tail.size();
  // The newline that ends the last line opens none.
  if (begin > 0 && tail[begin - 1] == '\n') --begin;
  for (; begin > 0; --begin) {
    if (tail[begin - 1] == '\n' && ++lines == max_stderr_lines) break;
  }
  return bounded_text(std::string_view{tail}.substr(begin), max_stderr_tail);
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
