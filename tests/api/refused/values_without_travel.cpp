// expect: this type does not say how it travels
#include "common.hpp"

struct reading {
  std::int64_t at;
  std::string text;
};

int main() { session().parallelize(std::vector<reading>{{}}).count(); }
