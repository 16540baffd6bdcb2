// Text in, text out, and what lies between: records of one's own, a value for all tasks, stages for two machines, a
// dataset that is kept for a second job, a sort.
#include <cctype>
#include <iostream>
#include <troupe/troupe.hpp>

struct scored_line {
  double score = 0;
  std::string text;
};
/// How it travels: one function, next to the type, that names its members.
template <class Archive>
void troupe_serialize(Archive& archive, scored_line& line) {
  archive(line.score, line.text);
}

using weights = std::map<std::string, double>;

scored_line score(const troupe::broadcast<weights>& of_words, const std::string& text) {
  scored_line line{0, text};
  std::string word;
  for (const char c : text + " ") {
    if (std::isalpha(static_cast<unsigned char>(c))) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else {
      if (const auto found = of_words->find(word); found != of_words->end()) line.score += found->second;
      word.clear();
    }
  }
  return line;
}

/// Executors of one core, with so much memory; a gpu would be one more word: .resource("gpu", 1)
troupe::resource_profile executors_of(const std::string& memory) {
  return troupe::resource_profile_builder{}
      .require(troupe::executor_resource_requests{}.cores(1).memory(memory))
      .require(troupe::task_resource_requests{}.cpus(1))
      .build();
}

void body(troupe::session& session) {
  if (session.arguments().size() != 2) throw std::invalid_argument("scored_lines: needs FILES and OUTPUT");
  // Goes to each host once, however many tasks use it; what a function needs is handed to it, not captured.
  const auto of_words = session.broadcast(weights{{"copy", 1}, {"free", 2}, {"software", 1.5}});
  const auto lines = session.text_files(session.arguments()[0])
                         .filter([](const std::string& line) { return !line.empty(); })
                         .with_resources(executors_of("128m")) // reads
                         .map(troupe::with(of_words), troupe::fn<score>)
                         .with_resources(executors_of("256m")) // scores each partition as soon as it was read
                         .persist(troupe::storage_level::memory_and_disk);
  std::cout << lines.count() << " lines\n"; // computes them, and leaves them where they are
  lines.filter([](const scored_line& line) { return line.score > 0; })
      .map([](scored_line line) {
        return std::pair{line.score, std::move(line.text)};
      })
      .sort_by_key(troupe::sort_order::descending) // on disk, where it is more than there is memory
      .map([](const std::pair<double, std::string>& line) { return std::to_string(line.first) + '\t' + line.second; })
      .save_as_text(session.arguments()[1]); // part-00000, …, and _SUCCESS when all of them are there
  lines.unpersist();
}

int main(int argc, char** argv) { return troupe::run(argc, argv, body); }
