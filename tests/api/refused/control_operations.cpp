// expect:
#include "common.hpp"

#include <cstdio>

// clang-format off
// The examples of docs/operations.md, which must compile; made by tests/checks/operations --fix.
int main() {
  auto session = ::session();
  const auto words = session.text_files("x");
  const auto numbers = session.range(0, 9);
  const auto pairs = words.map([](std::string word) { return std::pair{std::move(word), std::int64_t{1}}; });
  static_cast<void>(words.collect());
  static_cast<void>(words.count());
  static_cast<void>(pairs.count_by_key());
  static_cast<void>(words.first());
  static_cast<void>(words.foreach([](const std::string& word) { std::puts(word.c_str()); }));
  static_cast<void>(numbers.max());
  static_cast<void>(numbers.min());
  static_cast<void>(numbers.reduce(std::plus<>{}));
  static_cast<void>(words.save_as_text("words"));
  static_cast<void>(numbers.sum());
  static_cast<void>(words.take(10));
  static_cast<void>(words.top(3));
  static_cast<void>(pairs.aggregate_by_key(0.0, [](double s, auto n) { return s + 0.5 * n; }, std::plus<>{}));
  static_cast<void>(words.barrier());
  static_cast<void>(words.cache());
  static_cast<void>(words.coalesce(1));
  static_cast<void>(pairs.cogroup(pairs));
  static_cast<void>(words.distinct());
  static_cast<void>(words.filter([](const std::string& word) { return word.size() > 3; }));
  static_cast<void>(words.flat_map([](const std::string& word) { return std::vector{word, word}; }));
  static_cast<void>(pairs.full_join(pairs));
  static_cast<void>(pairs.group_by_key());
  static_cast<void>(words.indeterminate());
  static_cast<void>(pairs.join(pairs));
  static_cast<void>(words.key_by([](const std::string& word) { return word.size(); }));
  static_cast<void>(pairs.keys());
  static_cast<void>(pairs.left_join(pairs));
  static_cast<void>(words.map([](const std::string& word) { return word.size(); }));
  static_cast<void>(words.map_partitions([](std::vector<std::string> all) { return all; }));
  static_cast<void>(pairs.map_values([](std::int64_t n) { return n * n; }));
  static_cast<void>(words.name());
  static_cast<void>(words.named("the words"));
  static_cast<void>(words.partitions());
  static_cast<void>(words.persist(troupe::storage_level::disk));
  static_cast<void>(pairs.reduce_by_key(std::plus<>{}));
  static_cast<void>(words.repartition(8));
  static_cast<void>(words.sample(0.1));
  static_cast<void>(words.sort_by([](const std::string& word) { return word.size(); }));
  static_cast<void>(pairs.sort_by_key(troupe::sort_order::descending));
  static_cast<void>(words.sorted());
  static_cast<void>(words.union_with(words));
  static_cast<void>(words.unpersist());
  static_cast<void>(pairs.values());
  static_cast<void>(words.with_resources(troupe::resource_profile{}));
  static_cast<void>(words.zip_with_index());
  static_cast<void>(session.accumulator("bad lines"));
  static_cast<void>(session.broadcast(std::vector<int>{1, 2}));
  static_cast<void>(session.cancel_group("nightly"));
  static_cast<void>(session.in_group("nightly"));
  static_cast<void>(session.in_pool("reports"));
  static_cast<void>(session.parallelize(std::vector<std::string>{"a", "b"}));
  static_cast<void>(session.range(0, 100));
  static_cast<void>(session.text_files("logs/*.txt"));
  static_cast<void>(session.whole_text_files("logs/*.txt"));
}
