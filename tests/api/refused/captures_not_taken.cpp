// expect: this function cannot be called with the captures given by troupe::with
#include "common.hpp"

int main() {
  session().text_files("x").filter(troupe::with(3), [](const std::string&) { return true; }).count();
}
