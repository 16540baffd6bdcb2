// expect: a task function is R f(), R f(argument), R f(captures, argument)
#include "common.hpp"

int sum(int a, int b, int c) { return a + b + c; }

int main() {
  troupe::job j{"sums"};
  session().run(j, j.stage("sum").run(troupe::task<"sum", sum>).arguments({1, 2}));
}
