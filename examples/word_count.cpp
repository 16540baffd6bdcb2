#include <iostream>
#include <sstream>
#include <troupe/troupe.hpp>

std::vector<std::string> words(const std::string& line) {
  std::istringstream in{line};
  return {std::istream_iterator<std::string>{in}, {}};
}

int main(int argc, char** argv) {
  return troupe::run(argc, argv, [](troupe::session& session) {
    auto counts = session.text_files(session.arguments())
                      .flat_map(troupe::fn<words>)
                      .map([](std::string word) {
                        return std::pair{std::move(word), 1L};
                      })
                      .reduce_by_key(std::plus<>{});
    for (const auto& [word, count] : counts.top(10)) std::cout << count << '\t' << word << '\n';
  });
}
