// expect: a task function is R f(), R f(argument), R f(captures, argument)
#include "common.hpp"

struct counter {
  int n = 0;
  int plus(int more) { return n + more; }
};

int main() {
  troupe::job j{"sums"};
  session().run(j, j.stage("sum").run(troupe::task<"sum", &counter::plus>).arguments({1, 2}));
}
