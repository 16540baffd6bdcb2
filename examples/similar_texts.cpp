// Which texts resemble each other most, by the cosine of their tf-idf vectors.
//
//   similar_texts [--counts FILE] [TEXT or 'PATTERN']...
//
// Stage A counts the terms of each text, stage B (after a shuffle) how many texts have each term, stage C (after
// another one) compares texts under a profile with half a GPU per task. `--counts` writes every term with its total and
// its document frequency, for checking. Without texts: the licences in /usr/share/common-licenses.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <map>
#include <tuple>

#include <troupe/troupe.hpp>

using term_counts = std::map<std::string, long>;
using text_counts = std::pair<std::string, term_counts>;                   // path, its terms
using posting = std::pair<std::string, long>;                              // path, occurrences of a term in it
using postings = std::pair<std::string, std::vector<posting>>;             // term, the texts that have it
using total = std::pair<std::string, std::pair<long, long>>;               // term, (occurrences, texts)
using weight = std::tuple<std::string, std::string, double>;               // path, term, tf-idf
using block = std::pair<std::uint32_t, std::uint32_t>;                     // two groups of texts
using similarity = std::pair<std::pair<std::string, std::string>, double>; // two paths, cosine

// Terms are runs of [A-Za-z], in lower case.
text_counts count_terms(const std::pair<std::string, std::string>& file) {
  text_counts result{file.first, {}};
  std::string term;
  const auto add = [&] {
    if (!term.empty()) ++result.second[term];
    term.clear();
  };
  for (const char c : file.second) {
    if (c >= 'A' && c <= 'Z')
      term += static_cast<char>(c - 'A' + 'a');
    else if (c >= 'a' && c <= 'z')
      term += c;
    else
      add();
  }
  add();
  return result;
}

total sum(const postings& term) {
  long occurrences = 0;
  for (const auto& [text, count] : term.second) occurrences += count;
  return {term.first, {occurrences, static_cast<long>(term.second.size())}};
}

// Texts fall into groups, and every two groups are one block of work: a text goes to all blocks of its group.
constexpr std::uint32_t groups = 4;
block block_of(std::uint32_t a, std::uint32_t b) { return {std::min(a, b), std::max(a, b)}; }
std::uint32_t group_of(const std::string& text) { return troupe::bucket_of(troupe::stable_hash(text), groups); }

void weigh(const long& texts, const postings& term, troupe::emitter<std::pair<block, weight>>& emit) {
  const double rarity = std::log(static_cast<double>(texts) / static_cast<double>(term.second.size()));
  for (const auto& [text, count] : term.second)
    for (std::uint32_t other = 0; other < groups; ++other)
      emit({block_of(group_of(text), other), {text, term.first, static_cast<double>(count) * rarity}});
}

void compare(const std::pair<block, std::vector<weight>>& work, troupe::emitter<similarity>& emit) {
  std::map<std::string, std::map<std::string, double>> vectors;
  for (const auto& [text, term, value] : work.second) vectors[text][term] = value;
  const auto dot = [](const auto& a, const auto& b) {
    double sum = 0;
    for (const auto& [term, value] : a)
      if (const auto match = b.find(term); match != b.end()) sum += value * match->second;
    return sum;
  };
  for (auto a = vectors.begin(); a != vectors.end(); ++a)
    for (auto b = std::next(a); b != vectors.end(); ++b) {
      if (block_of(group_of(a->first), group_of(b->first)) != work.first) continue; // in another block
      const double lengths = std::sqrt(dot(a->second, a->second) * dot(b->second, b->second));
      emit({{a->first, b->first}, lengths > 0 ? dot(a->second, b->second) / lengths : 0});
    }
}

void print_placements(const troupe::session& session) {
  std::map<troupe::stage_id, std::string> names;
  for (const auto& stage : session.last_job().stages) names[stage.stage] = stage.name;
  std::map<std::tuple<troupe::stage_id, std::uint64_t, std::string>, std::uint32_t> tasks;
  for (const auto& placement : session.last_placements()) {
    std::string gpus;
    if (const auto held = placement.holding.resources.find("gpu"); held != placement.holding.resources.end())
      for (const auto& [address, amount] : held->second) gpus += ", gpu " + address + " (" + to_string(amount) + ")";
    tasks[{placement.stage, placement.executor.value, gpus}] += placement.count;
  }
  std::cout << "\nWhat ran where:\n";
  for (const auto& [key, count] : tasks)
    std::cout << "  " << std::left << std::setw(24) << names[std::get<0>(key)] << std::right << std::setw(4) << count
              << (count == 1 ? " task " : " tasks") << " on executor " << std::get<1>(key) << std::get<2>(key) << '\n';
}

void body(troupe::session& session) {
  std::vector<std::string> files = session.arguments();
  std::string counts_file;
  if (files.size() >= 2 && files[0] == "--counts") {
    counts_file = files[1];
    files.erase(files.begin(), files.begin() + 2);
  }
  if (files.empty()) files.emplace_back("/usr/share/common-licenses/*");
  const auto gpu = troupe::resource_profile_builder{}
                       .require(troupe::executor_resource_requests{}.cores(2).memory("256m").resource("gpu", 1))
                       .require(troupe::task_resource_requests{}.cpus(1).resource("gpu", "0.5"))
                       .build();

  const auto texts = session.whole_text_files(files); // one partition per text
  const long number = texts.partitions();
  const auto terms = texts.map(troupe::fn<count_terms>)
                         .named("A: term counts")
                         .flat_map([](const text_counts& t, troupe::emitter<std::pair<std::string, posting>>& emit) {
                           for (const auto& [term, count] : t.second) emit({term, {t.first, count}});
                         })
                         .group_by_key()
                         .named("B: document frequencies");
  auto totals = terms.map(troupe::fn<sum>).collect();
  const auto pairs = terms.flat_map(troupe::with(number), troupe::fn<weigh>)
                         .group_by_key()
                         .flat_map(troupe::fn<compare>)
                         .named("C: similarities")
                         .with_resources(gpu)
                         .top(10);

  const auto name = [](const std::string& path) { return std::filesystem::path{path}.filename().string(); };
  std::cout << "The most similar of " << number << " texts:\n" << std::fixed << std::setprecision(4);
  for (const auto& [texts_of_pair, cosine] : pairs)
    std::cout << "  " << cosine << "  " << name(texts_of_pair.first) << "  " << name(texts_of_pair.second) << '\n';

  std::sort(totals.begin(), totals.end(), troupe::largest_first{}); // by occurrences
  std::cout << "\nThe most frequent of " << totals.size() << " terms (occurrences, texts):\n";
  for (std::size_t i = 0; i < std::min<std::size_t>(10, totals.size()); ++i)
    std::cout << "  " << std::left << std::setw(12) << totals[i].first << std::right << std::setw(6)
              << totals[i].second.first << std::setw(4) << totals[i].second.second << '\n';
  print_placements(session);
  for (const auto& resource : session.fake_resources())
    std::cout << "The addresses of " << resource << " are made up by the configuration; no such device was used.\n";

  if (counts_file.empty()) return;
  std::ofstream out{counts_file};
  for (const auto& [term, numbers] : totals) out << term << ' ' << numbers.first << ' ' << numbers.second << '\n';
  if (!out.flush()) throw std::runtime_error("cannot write '" + counts_file + "'");
}

int main(int argc, char** argv) {
  return troupe::run(argc, argv, body, {.defaults = {"troupe.gpu.discovery=probe-or-fake"}});
}
