// expect: auto& and T& take none
#include "common.hpp"

int main() {
  auto sizes = session().text_files("x").map([](auto& line) { return line.size(); }).collect();
  for (const auto size : sizes) static_cast<void>(size);
}
