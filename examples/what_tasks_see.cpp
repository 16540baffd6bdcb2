// What tasks see of the program that makes their job: the program of docs/what-tasks-see.md.

#include <iostream>
#include <troupe/troupe.hpp>

long limit = 10; // a global variable

// Wrong: tasks read a variable that the job's body has set.
std::size_t by_global(troupe::session& session, long wanted) {
  limit = wanted;
  return session.range(0, 100, 4).filter([](std::int64_t n) { return n < limit; }).count();
}

// Right: the value travels with the function.
std::size_t by_capture(troupe::session& session, long wanted) {
  return session.range(0, 100, 4)
      .filter(troupe::with(wanted), [](long most, std::int64_t n) { return n < most; })
      .count();
}

int main(int argc, char** argv) {
  return troupe::run(argc, argv, [](troupe::session& session) {
    std::cout << "by global: " << by_global(session, 90) << '\n';
    std::cout << "by capture: " << by_capture(session, 90) << '\n';
  });
}
