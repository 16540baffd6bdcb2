// expect: must return a container of records, or take a last parameter troupe::emitter<U>&
#include "common.hpp"

int main() {
  session().range(0, 9).flat_map([](const std::string& s, troupe::emitter<std::string>& emit) { emit(s); }).count();
}
