// expect: save_as_text writes records of type std::string
#include "common.hpp"

int main() { session().range(0, 9).save_as_text("x"); }
