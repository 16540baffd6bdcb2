// A program with options of its own, which it reads as any other program does, and with work before and behind its job.

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include <getopt.h>
#include <unistd.h>

#include <troupe/troupe.hpp>

namespace {

std::string log_file;
std::int64_t limit = 10;

void note(const std::string& what) {
  if (!log_file.empty()) std::ofstream{log_file, std::ios::app} << what << "\n";
}

struct noted_at_the_end {
  ~noted_at_the_end() { note("destroyed"); }
} global;

/// What this very program says when a task starts it.
std::string said_by(const std::string& program) {
  std::string out;
  FILE* const said = ::popen((program + " --hello").c_str(), "r");
  if (said == nullptr) return "not started";
  for (int c = 0; (c = std::getc(said)) != EOF;) out += static_cast<char>(c);
  ::pclose(said);
  return out;
}

std::string thrown; ///< what the job throws

void throw_it(const std::string& what) {
  if (what == "number") throw 42;
  if (what == "crash") {
    std::cout << "the last words\n"; // not flushed: the executor does it line by line
    std::raise(SIGSEGV);
  }
  if (what == "text") throw "no good";
  if (what == "string") throw std::string{"a string"};
  if (what == "other") throw noted_at_the_end{};
}

void job(troupe::session& s) {
  throw_it(thrown);
  if (thrown.starts_with("task-"))
    s.range(0, 1, 1)
        .map(troupe::with(thrown.substr(5)),
             [](const std::string& what, std::int64_t n) {
               throw_it(what);
               return n;
             })
        .collect();
  const auto limits = s.range(0, 4, 4).map([](std::int64_t) { return limit; }).collect();
  for (const auto each : limits) std::cout << "limit " << each << "\n";
  const auto program = std::filesystem::read_symlink("/proc/self/exe").string();
  const auto said =
      s.range(0, 1, 1).map(troupe::with(program), [](const std::string& own, std::int64_t) { return said_by(own); });
  std::cout << "started by a task it said " << said.collect().front() << std::endl;
}

} // namespace

int main(int argc, char** argv) {
  const option known[] = {{"limit", required_argument, nullptr, 'l'},
                          {"log", required_argument, nullptr, 'o'},
                          {"hello", no_argument, nullptr, 'h'},
                          {"throw", required_argument, nullptr, 'x'},
                          {"folder", required_argument, nullptr, 'f'},
                          // Troupe's, which it finds for itself
                          {"master", required_argument, nullptr, 't'},
                          {"conf", required_argument, nullptr, 't'},
                          {"config-file", required_argument, nullptr, 't'},
                          {}};
  for (int found = 0; (found = getopt_long(argc, argv, "", known, nullptr)) != -1;) {
    if (found == 'l') limit = std::stoll(optarg);
    if (found == 'o') log_file = optarg;
    if (found == 'x') thrown = optarg;
    if (found == 'f' && ::chdir(optarg) != 0) return 65;
    if (found == 'h') return std::puts(std::getenv("TROUPE_EXECUTOR") == nullptr ? "hello" : "marked") < 0;
    if (found == '?') {
      std::cerr << "usage: around_job [--limit N] [--log FILE]\n";
      return 64;
    }
  }
  note("begin");
  std::atexit([] { note("exit"); });
  std::printf("before the job\n"); // it stays in its buffer, which a fork would copy
  const int code = troupe::run(argc, argv, job);
  note("end");
  return code;
}
