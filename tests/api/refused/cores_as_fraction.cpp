// expect: an executor has whole cores and devices: write a whole number
#include "common.hpp"

int main() { troupe::executor_resource_requests{}.cores(1.5); }
