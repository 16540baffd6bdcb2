// expect: this type does not say how it travels
#include "common.hpp"

struct reading {
  std::int64_t at;
  std::string text;
};

bool later(const reading& r, int n) { return n > r.at; }

int main() {
  troupe::job j{"readings"};
  session().run(j, j.stage("later").run(troupe::task<"later", later>, reading{}).arguments({1, 2}));
}
