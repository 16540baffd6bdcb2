// expect: this type does not say how it travels
#include "common.hpp"

class stays {
public:
  explicit stays(std::size_t n) : n_(n) {}
  std::size_t size() const { return n_; }

private:
  std::size_t n_;
};

int main() {
  session().text_files("x").map([](const std::string& line) { return stays{line.size()}; }).cache().count();
}
