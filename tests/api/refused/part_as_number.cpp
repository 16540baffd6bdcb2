// expect: a part of a resource is exact: write it as a text, such as "0.5" or "1/3"
#include "common.hpp"

int main() { troupe::task_resource_requests{}.cpus(1).resource("gpu", 0.5); }
