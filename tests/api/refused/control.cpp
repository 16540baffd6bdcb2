// expect:
#include "common.hpp"

// The other programs differ from this one in one place each: it must compile.
std::vector<std::string> words(const std::string& line) { return {line}; }

int main() {
  const long limit = 3;
  session()
      .text_files("x")
      .flat_map(troupe::fn<words>)
      .filter(troupe::with(limit), [](long l, const std::string& word) { return static_cast<long>(word.size()) < l; })
      .map([](std::string word) {
        return std::pair{word, 1L};
      })
      .reduce_by_key(std::plus<>{})
      .top(3);
}
