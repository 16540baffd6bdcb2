// expect: an executor has whole cores and devices: write a whole number
#include "common.hpp"

int main() { troupe::executor_resource_requests{}.resource("gpu", 1.5, "./find-gpus", "nvidia"); }
