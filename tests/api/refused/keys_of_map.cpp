// expect: the keys of these pairs are constant
#include "common.hpp"

int main() {
  session()
      .text_files("x")
      .flat_map([](const std::string& line) {
        return std::map<std::string, std::int64_t>{{line, 1}};
      })
      .reduce_by_key(std::plus<>{})
      .count();
}
