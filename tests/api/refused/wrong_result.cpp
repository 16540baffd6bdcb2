// expect: this function returns another type than the operation needs
#include "common.hpp"

int main() {
  session().range(0, 9).reduce([](std::int64_t, std::int64_t) { return std::string{"no number"}; });
}
