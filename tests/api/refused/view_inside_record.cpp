// expect: records may not be pointers, references, C strings or views, nor hold any
#include "common.hpp"

int main() {
  session()
      .range(0, 9)
      .map([](std::int64_t n) {
        return std::pair<std::string_view, std::int64_t>{"text", n};
      })
      .map([](const auto& p) { return std::string{p.first}; })
      .collect();
}
