// expect: this function cannot be called with the captures given by troupe::with
#include "common.hpp"

int main() {
  session().text_files("x").filter([](std::string& line) { return line.empty(); }).count();
}
