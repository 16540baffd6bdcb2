// expect: this troupe_serialize names fewer members than the struct has
#include "common.hpp"

struct reading {
  std::int64_t at;
  std::string text;
};
template <class Archive>
void troupe_serialize(Archive& archive, reading& r) {
  archive(r.at);
  archive(r.text);
}

int main() {
  session().range(0, 9).map([](std::int64_t n) { return reading{n, {}}; }).collect();
}
