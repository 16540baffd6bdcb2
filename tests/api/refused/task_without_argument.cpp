// expect: this task function takes an argument: use .arguments(values)
#include "common.hpp"

int square(int n) { return n * n; }

int main() {
  troupe::job j{"squares"};
  session().run(j, j.stage("square").run(troupe::task<"square", square>).tasks(3));
}
