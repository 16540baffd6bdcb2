// expect: a task function takes its argument by value or by const reference
#include "common.hpp"

int grow(int& n) { return ++n; }

int main() {
  troupe::job job{"grow"};
  job.stage("grow").run(troupe::task<"grow", grow>).arguments({1});
}
