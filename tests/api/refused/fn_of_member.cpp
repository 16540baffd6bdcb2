// expect: troupe::fn<…> takes the name of a function that is not a member
#include "common.hpp"

struct counter {
  std::int64_t n = 0;
  std::int64_t plus(std::int64_t more) { return n + more; }
};

int main() { session().range(0, 9).map(troupe::fn<&counter::plus>).count(); }
