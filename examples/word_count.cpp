// The ten most frequent words of some text files: word_count [FILE or 'PATTERN']...
#include <iostream>
#include <sstream>

#include <troupe/troupe.hpp>

std::vector<std::string> words(const std::string& line) {
  std::istringstream in{line};
  return {std::istream_iterator<std::string>{in}, {}};
}

int main(int argc, char** argv) {
  return troupe::run(argc, argv, [](troupe::session& session) {
    const auto& files = session.arguments();
    auto counts = session.text_files(files.empty() ? std::vector<std::string>{"/usr/share/common-licenses/*"} : files)
                      .flat_map(troupe::fn<words>)
                      .map([](std::string word) {
                        return std::pair{std::move(word), 1L};
                      })
                      .reduce_by_key(std::plus<>{});
    for (const auto& [word, count] : counts.top(10)) std::cout << count << '\t' << word << '\n';
  });
}
