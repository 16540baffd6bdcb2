// expect: without what it points to
#include "common.hpp"

int main() {
  const std::vector<std::string_view> needles{"a", "b"};
  session().text_files("x").filter(troupe::with(needles), [](const auto&, const std::string&) { return true; }).count();
}
