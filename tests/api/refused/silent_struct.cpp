// expect: void troupe_serialize(Archive& archive, T& value)
#include "common.hpp"

struct point {
  double x, y;
  std::string label;
};

int main() {
  session().range(0, 9).map([](std::int64_t n) { return point{1.0 * n, 0, {}}; }).collect();
}
