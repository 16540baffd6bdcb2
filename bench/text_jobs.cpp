// Jobs on text: counts the words of files, or sorts their lines, and writes the outcome.
//
//   text_jobs [--master WHERE] word-count|sort OUTPUT FILE...
//
// OUTPUT is a directory that is made. Prints one line of JSON: the seconds that the job took in a session that had
// started, and those since the program began.
#include <chrono>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include <troupe/troupe.hpp>

namespace {

using steady = std::chrono::steady_clock;
double since(steady::time_point start) { return std::chrono::duration<double>(steady::now() - start).count(); }

void words(const std::string& line, troupe::emitter<std::pair<std::string, std::int64_t>>& each) {
  troupe::for_each_word(line, [&](std::string_view word) { each(word, 1); });
}

void word_count(const troupe::dataset<std::string>& lines, const std::string& output) {
  lines.flat_map(troupe::fn<words>)
      .reduce_by_key(std::plus<>{})
      .map([](const std::pair<std::string, std::int64_t>& counted) {
        return std::to_string(counted.second) + ' ' + counted.first;
      })
      .save_as_text(output);
}

} // namespace

int main(int argc, char** argv) {
  const auto begin = steady::now();
  return troupe::run(argc, argv, [&](troupe::session& session) {
    const auto& arguments = session.arguments();
    if (arguments.size() < 3 || (arguments[0] != "word-count" && arguments[0] != "sort"))
      throw std::runtime_error("usage: text_jobs [--master WHERE] word-count|sort OUTPUT FILE...");
    const auto start = steady::now();
    const auto lines = session.text_files(std::vector<std::string>{arguments.begin() + 2, arguments.end()});
    if (arguments[0] == "sort")
      lines.sorted().save_as_text(arguments[1]);
    else
      word_count(lines, arguments[1]);
    std::cout << "{\"what\": \"" << arguments[0] << "\", \"job_seconds\": " << since(start)
              << ", \"seconds\": " << since(begin) << "}" << std::endl;
  });
}
