#include <iostream>
#include <troupe/troupe.hpp>

void words(const std::string& line, troupe::emitter<std::pair<std::string, long>>& each) {
  troupe::for_each_word(line, [&](std::string_view word) { each(word, 1); });
}

int main(int argc, char** argv) {
  return troupe::run(argc, argv, [](troupe::session& session) {
    auto counts = session.text_files(session.arguments()).flat_map(troupe::fn<words>).reduce_by_key(std::plus<>{});
    for (const auto& [word, count] : counts.top(10)) std::cout << count << '\t' << word << '\n';
  });
}
