// expect: would arrive in another process without what it points to
#include "common.hpp"

std::int64_t size_of(const char* text) { return text[0]; }

int main() {
  troupe::job job{"sizes"};
  job.stage("sizes").run(troupe::task<"size_of", size_of>).arguments({"a literal is a pointer"});
}
