// expect: records may not be pointers, references, C strings or views
#include "common.hpp"

int main() {
  session()
      .text_files("x")
      .key_by([](const std::string& line) { return std::string_view{line}; })
      .group_by_key()
      .count();
}
