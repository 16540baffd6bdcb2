// expect: this type does not say how it travels
#include "common.hpp"

struct reading {
  std::int64_t at;
  std::string text;
};

int main() {
  session()
      .range(0, 9)
      .map([](std::int64_t n) {
        return std::pair{n, std::vector{reading{n, {}}}};
      })
      .group_by_key()
      .map([](const auto& group) { return group.second.size(); })
      .collect();
}
