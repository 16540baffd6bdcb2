// expect: this type does not say how it travels
#include "common.hpp"

struct reading {
  std::int64_t at;
  std::string text;
};

int main() {
  session().range(0, 9).map([](std::int64_t n) { return reading{n, {}}; }).sorted().count();
}
