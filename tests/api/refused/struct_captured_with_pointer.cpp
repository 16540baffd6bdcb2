// expect: void troupe_serialize(Archive& archive, T& value)
#include "common.hpp"

struct limits {
  std::int64_t least;
  const std::int64_t* most;
};

int main() {
  session()
      .range(0, 9)
      .filter(troupe::with(limits{}), [](const limits& l, std::int64_t n) { return n < *l.most; })
      .count();
}
