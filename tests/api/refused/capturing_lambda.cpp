// expect: Cure: pass the values explicitly, .map(troupe::with(value)
#include "common.hpp"

int main() {
  const long limit = 3;
  session().range(0, 9).filter([limit](std::int64_t n) { return n < limit; }).count();
}
