// expect: a lambda that captures cannot travel to another process
#include "common.hpp"

struct model {
  long limit = 3;
  std::uint64_t fitting() {
    return session().range(0, 9).filter([this](std::int64_t n) { return n < limit; }).count();
  }
};

int main() { model{}.fitting(); }
