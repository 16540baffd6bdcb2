// expect: this task function takes captures: .run(task, captures)
#include "common.hpp"

int scaled(int factor, int n) { return factor * n; }

int main() {
  troupe::job j{"scaled"};
  session().run(j, j.stage("scale").run(troupe::task<"scaled", scaled>).arguments({1, 2}));
}
