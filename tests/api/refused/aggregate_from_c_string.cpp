// expect: would arrive in another process without what it points to
#include "common.hpp"

int main() {
  session()
      .text_files("x")
      .key_by([](const std::string& line) { return line.size(); })
      .aggregate_by_key(
          "", [](std::string all, const std::string& s) { return all + s; }, std::plus<>{})
      .collect();
}
