// expect: let its members be neither constant nor references
#include "common.hpp"

struct reading {
  const std::int64_t at = 0;
  std::string text;
};
template <class Archive>
void troupe_serialize(Archive& archive, reading& r) {
  archive(r.at, r.text);
}

int main() {
  session().range(0, 9).map([](std::int64_t n) { return reading{n, {}}; }).collect();
}
