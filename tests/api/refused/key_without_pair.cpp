// expect: operations by key need records of type std::pair<key, value>
#include "common.hpp"

int main() { session().text_files("x").reduce_by_key(std::plus<>{}).count(); }
