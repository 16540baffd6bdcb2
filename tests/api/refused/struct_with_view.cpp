// expect: void troupe_serialize(Archive& archive, T& value)
#include "common.hpp"

struct word {
  std::int64_t line;
  std::string_view text;
};

int main() {
  session().range(0, 9).map([](std::int64_t n) { return word{n, "text"}; }).collect();
}
