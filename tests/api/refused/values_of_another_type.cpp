// expect: this function cannot be called with the captures given by troupe::with
#include "common.hpp"

int main() {
  session()
      .range(0, 9)
      .map([](std::int64_t n) {
        return std::pair{n, n};
      })
      .reduce_by_key([](std::string a, const std::string&) { return a; })
      .collect();
}
