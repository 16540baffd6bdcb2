// expect: Cure: name it at compile time, .map(troupe::fn<words>) in place of .map(words)
#include "common.hpp"

std::vector<std::string> words(const std::string& line) { return {line}; }

int main() { session().text_files("x").flat_map(words).count(); }
