// expect: this type has no default constructor
#include "common.hpp"

struct reading {
  explicit reading(std::int64_t n) : at(n) {}
  std::int64_t at;
};
template <class Archive>
void troupe_serialize(Archive& archive, reading& r) {
  archive(r.at);
}

int main() {
  session().range(0, 9).map([](std::int64_t n) { return reading{n}; }).collect();
}
