// expect: Cure: write next to it, in its namespace,
#include "common.hpp"

namespace lab {
struct reading {
  std::int64_t at;
  std::string text;
};
} // namespace lab
template <class Archive>
void troupe_serialize(Archive& archive, lab::reading& r) {
  archive(r.at, r.text);
}

int main() {
  session().range(0, 9).map([](std::int64_t n) { return lab::reading{n, {}}; }).collect();
}
