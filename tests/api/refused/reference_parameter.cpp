// expect: this function cannot be called with the captures given by troupe::with
#include "common.hpp"

int main() {
  session()
      .text_files("x")
      .map([](std::string& line) {
        return std::pair{std::move(line), 1L};
      })
      .reduce_by_key(std::plus<>{})
      .map([](const auto& pair) { return pair.first; })
      .collect();
}
