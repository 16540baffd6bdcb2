// expect: this function cannot be called with the captures given by troupe::with
#include "common.hpp"

int main() {
  session().range(0, 9).foreach ([](const std::string&) {});
}
