// expect: this type does not say how it travels
#include "common.hpp"

struct reading {
  std::int64_t at;
  std::string text;
};

reading measure(int n) { return {n, {}}; }

int main() {
  troupe::job j{"readings"};
  for (const auto& r : session().run(j, j.stage("read").run(troupe::task<"measure", measure>).arguments({1, 2})))
    static_cast<void>(r);
}
