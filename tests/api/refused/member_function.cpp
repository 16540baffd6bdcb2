// expect: a lambda that says which member
#include "common.hpp"

int main() { session().text_files("x").map(&std::string::size).collect(); }
