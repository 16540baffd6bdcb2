// expect: Cure: send the value itself, e.g. std::string{text}
#include "common.hpp"

int main() {
  session()
      .text_files("x")
      .filter(troupe::with("needle"),
              [](const char* needle, const std::string& line) { return line.find(needle) != std::string::npos; })
      .count();
}
