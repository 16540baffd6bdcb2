// expect: would arrive in another process without what it points to
#include "common.hpp"

int main() { session().broadcast("a literal is a pointer"); }
